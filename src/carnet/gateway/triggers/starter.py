"""Has what a schedule or a hook says answered, as if its owner had said it herself.

Law 1. It opens a conversation of hers, which she finds among the others, and nobody has read.
Law 2. It is a call as any other: the gate judges it by the token that made the trigger, with all of
       the limits of that, and the agent cannot tell it from what she says.
Law 3. Its key names it: begun again after a crash it is the same message, and goes on in the same
       turn if that has no end, or its gateway was stopped. What has failed is not run again: its
       owner is told, and decides.
"""

from collections.abc import Callable

from carnet.core.call import Call
from carnet.core.chain.turn import Turn
from carnet.core.people.identity import Caller, Secret, owner_of
from carnet.errors import (
    CarnetError,
    ConversationBusy,
    ConversationNotFound,
    ShuttingDown,
    TokenInvalid,
)
from carnet.gateway.conversations.answers import Answers
from carnet.gateway.conversations.claims import ThreadClaims
from carnet.guards.caller.authentication import caller_of
from carnet.guards.limits import Concurrency
from carnet.ports.calls.admission import Admission
from carnet.ports.calls.agent import Journal
from carnet.ports.calls.conversations import (
    BegunAnswer,
    Conversations,
    KeptConversation,
    KeptMessage,
)
from carnet.ports.calls.triggers import Firing, FiringEnd, NoteBegun
from carnet.ports.trust.trust import LendingTokens
from carnet.wire.dialects.engine_chat.client_request import SentMessage


class ConversationStarter:
    """Begins the conversation of a firing, and sees it to its end for now."""

    def __init__(
        self,
        conversations: Conversations,
        claims: ThreadClaims,
        answers: Answers,
        tokens: LendingTokens,
        *,
        admission: Admission,
        journal: Journal,
        concurrency: Concurrency,
        relay: Callable[[Call], Call] | None = None,
    ) -> None:
        """`answers` writes down what was answered; `journal` has it given.

        `relay` has those asked whom an answer mentions.
        """
        self._relay = relay
        self._conversations = conversations
        self._claims = claims
        self._answers = answers
        self._tokens = tokens
        self._admission = admission
        self._journal = journal
        self._concurrency = concurrency

    async def __call__(self, firing: Firing, note: NoteBegun, /) -> FiringEnd:
        """Have it answered, and wait for the end of that."""
        owner = owner_of(firing.person, "")
        sent = SentMessage(content=firing.content, client_id=firing.key)
        new = self._claims.message(
            owner, sent, firing.agent, conversation=None, trigger=firing.kind
        )
        begun = await self._conversations.begin(new)
        if await note(begun.conversation.id):
            with self._tokens.lent(firing.token) as lent:
                await self._answer(begun, lent)
        return await self._end(owner, begun)

    async def _answer(self, begun: BegunAnswer, lent: Secret) -> None:
        """Have it answered, if it is not already."""
        place: BegunAnswer | None = begun
        token = self._tokens.find(lent)
        try:
            if token is None:
                raise TokenInvalid
            if not begun.is_new:
                place = await self._again(begun, caller_of(token))
            if place is None:
                return
            claim = await self._claims.claim(
                place,
                authorization=Secret(f"Bearer {lent.reveal()}"),
                correlation=None,
                relays=self._relay is not None,
            )
            call = await self._admission.admit(claim)
        except CarnetError as error:
            if place is not None and not isinstance(error, ConversationBusy):
                owner = begun.conversation.owner
                await self._conversations.release(owner, place.answer.id, error.code)
            raise
        if self._relay is not None and not call.known:
            call = self._relay(call)
        await self._give(call, place)

    async def _give(self, call: Call, begun: BegunAnswer) -> None:
        owner, answer = begun.conversation.owner, begun.answer
        is_written = False
        try:
            await self._journal.whole(call)
            is_written = await self._answers.settle(owner, answer)
        finally:
            self._concurrency.leave(call.caller.actor.name, stream=True)
            if not is_written:  # it is, when its turn has ended, whatever becomes of us
                self._answers.follow(owner, answer)

    async def _again(self, begun: BegunAnswer, caller: Caller) -> BegunAnswer | None:
        """Go on with what somebody has begun and not ended; None if it has ended, or waits."""
        conversation, answer = await self._look(begun)
        if conversation.answering == answer.id:
            raise ConversationBusy  # by who is alive, or not known to be dead yet
        turn = await self._conversations.turn_of(conversation.owner, answer)
        is_over = answer.state in {"whole", "failed"} or answer.waits
        if is_over or (turn is not None and _has_failed(turn)):
            return None
        new = await self._claims.again(conversation, begun.question, answer, caller)
        return await self._conversations.begin_answer(new)

    async def _look(self, begun: BegunAnswer) -> tuple[KeptConversation, KeptMessage]:
        """A conversation and its answer as they are now."""
        owner, id = begun.conversation.owner, begun.conversation.id
        if begun.conversation.answering == begun.answer.id:
            await self._answers.look_at(begun.conversation, begun.answer)
        conversation = await self._conversations.find(owner, id)
        answer = None
        if conversation is not None:
            answer = await self._conversations.message(conversation, begun.answer.id)
        if conversation is None or answer is None:
            raise ConversationNotFound
        return conversation, answer

    async def _end(self, owner: str, begun: BegunAnswer) -> FiringEnd:
        """How it stands: what she is told of it."""
        conversation = await self._conversations.find(owner, begun.conversation.id)
        if conversation is None:
            raise ConversationNotFound
        answer = await self._conversations.message(conversation, begun.answer.id)
        if answer is None:
            raise ConversationNotFound
        if answer.waits:
            return FiringEnd(state="waiting", conversation=conversation.id, code=answer.code)
        is_whole = answer.state == "whole"
        return FiringEnd(
            state="done" if is_whole else "failed", conversation=conversation.id, code=answer.code
        )


def _has_failed(turn: Turn) -> bool:
    """Whether a turn has an end that is not for us to change: its agent's, or its owner's."""
    return turn.state == "failed" and turn.code != ShuttingDown.code
