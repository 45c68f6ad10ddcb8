"""What a person says to her agents: `POST /message`, and what is done about an answer.

Law 1. What she says is kept before anything runs. From then on every answer and every refusal names
       the conversation and the message, so that it can be tried again.
Law 2. Who sends the same again is shown the same answer: from its record, or while it is given.
Law 3. She speaks with her own rights: the gate judges each of her messages as any call.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from carnet.core.call import Call
from carnet.core.chain.turn import Turn
from carnet.core.people.identity import Caller, person_of
from carnet.errors import (
    CarnetError,
    ConversationBusy,
    ConversationNotFound,
    InvalidRequest,
    MessageNotFound,
)
from carnet.gateway.answer import Answering
from carnet.gateway.bodies import LARGE_BYTES
from carnet.gateway.conversations.answers import Answers, thread_of
from carnet.gateway.conversations.claims import FrontPolicy, ThreadClaims
from carnet.gateway.conversations.kept_answers import KeptAnswers, named
from carnet.http.exchange import Exchange, Row, check_json_body, read_authorization, reply_json
from carnet.ports.calls.agent import Journal
from carnet.ports.calls.conversations import (
    BegunAnswer,
    Conversations,
    KeptConversation,
    KeptMessage,
)
from carnet.ports.memory.memory import ErasedFile, Memories
from carnet.wire.dialects.dialect import GatewayFacts
from carnet.wire.dialects.engine_chat.client_request import SentMessage, read_sent
from carnet.wire.dialects.engine_chat.client_stream import ClientWriter
from carnet.wire.grammar import json

BESIDE_BYTES: Final = 131_072  # of a body, beside what is said: its escapes and its metadata
MOST_BYTES: Final = 4_096  # of a body that says which message is meant
REPEAT_BYTES: Final = 1024 * 1024  # that an answer which is told again is counted as
CONVERSATION: Final = "x-conversation-id"
LOOKED_BACK: Final = 16  # messages, for the last answer
OPEN: Final = frozenset({"running", "queued", "waiting"})


class OwnerForm:
    """How answers are written for a person's client."""

    begins_at_once = True

    def writer(self, call: Call, gateway: GatewayFacts, /) -> ClientWriter:
        """What writes the answer to a call."""
        return ClientWriter(thread_of(call), gateway.currency)


class MessageEndpoint:
    """Takes what people say, and what they want done about an answer."""

    def __init__(
        self,
        answering: Answering,
        conversations: Conversations,
        claims: ThreadClaims,
        answers: Answers,
        journal: Journal,
        policy: FrontPolicy,
        memories: Memories,
        relay: Callable[[Call], Call] | None = None,
    ) -> None:
        """`answering` has the calls admitted and answered; `journal` stops them.

        `memories` are what agents have kept of conversations; `relay` has those asked whom an
        answer mentions.
        """
        self._relay = relay
        self._memories = memories
        self._answering = answering
        self._conversations = conversations
        self._claims = claims
        self._answers = answers
        self._journal = journal
        self._policy = policy
        self._kept = KeptAnswers(conversations, answers, policy.currency)

    async def send(self, exchange: Exchange, caller: Caller) -> None:
        """POST /message."""
        began = self._answering.begin()
        check_json_body(exchange.headers)
        most = self._policy.content_bytes
        body = await exchange.read(2 * most + BESIDE_BYTES)
        read = partial(read_sent, body, most_bytes=most)
        sent = await asyncio.to_thread(read) if len(body) > LARGE_BYTES else read()
        conversation = exchange.headers.get(CONVERSATION) or None
        before = None
        if conversation is not None:
            before = await self._find(caller, conversation)
            await self._free(before)
        begun = await self._begin(caller, sent, before)
        if begun.is_new:
            await self._give(exchange, caller, begun, began)
        else:
            await self._repeat(exchange, caller, begun, began)

    async def _begin(
        self, caller: Caller, sent: SentMessage, before: KeptConversation | None
    ) -> BegunAnswer:
        target = self._claims.choose(sent, before, caller)
        id = None if before is None else before.id
        new = self._claims.message(caller.owner, sent, target.name, conversation=id)
        return await self._conversations.begin(new)

    async def retry(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """POST /conversations/{id}/retry: an answer that is not whole, tried again."""
        began = self._answering.begin()
        conversation, answer = await self._meant(exchange, caller, name)
        if answer.state == "whole":
            raise InvalidRequest("message", "has a whole answer; 'regenerate' gives another one")
        question = await self._question(conversation, answer)
        await self._free(conversation)
        new = await self._claims.again(conversation, question, answer, caller)
        await self._give(exchange, caller, await self._conversations.begin_answer(new), began)

    async def follow(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """GET /conversations/{id}/answer: the last answer as a stream, as it is given or kept.

        Nothing is run by it. What was asked for with another token is not read here while it is
        given, or waits.
        """
        began = self._answering.begin()
        await self._free(await self._find(caller, name))
        conversation, answer = await self._meant(exchange, caller, name)
        question = await self._question(conversation, answer)
        begun = BegunAnswer(conversation, question, answer, is_new=False)
        if not await self._join(exchange, caller, begun, began):
            if answer.waits:
                raise named(ConversationBusy(), begun)
            await self._tell_again(exchange, caller, begun)

    async def regenerate(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """POST /conversations/{id}/regenerate: another answer, beside the one there is."""
        began = self._answering.begin()
        conversation, answer = await self._meant(exchange, caller, name)
        question = await self._question(conversation, answer)
        await self._free(conversation)
        new = self._claims.another(conversation, question, answer.author or conversation.agent)
        await self._give(exchange, caller, await self._conversations.begin_answer(new), began)

    async def stop(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """POST /conversations/{id}/stop: end the answer that is being given."""
        conversation = await self._find(caller, name)
        answer, turn = await self._going_on(conversation)
        stopped = 0
        if answer is not None and turn is not None:
            with self._answers.read(answer):
                stopped = await self._journal.cancel([turn.n])
                await self._answers.settle(caller.owner, answer, is_seen=True)
        page = {"conversation_id": conversation.id, "stopped": bool(stopped)}
        await reply_json(exchange, page | {"message_id": answer.id if answer else None})

    async def _going_on(
        self, conversation: KeptConversation
    ) -> tuple[KeptMessage | None, Turn | None]:
        """The answer that is being given, also one that goes on by itself after an approval."""
        owner = conversation.owner
        if conversation.answering is not None:
            answer = await self._conversations.message(conversation, conversation.answering)
            if answer is not None:
                return answer, await self._conversations.turn_of(owner, answer)
        for newest in await self._conversations.branch(conversation, last=None, limit=1):
            turn = await self._conversations.turn_of(owner, newest)
            if turn is not None and turn.state in {"running", "queued"}:
                return newest, turn
        return None, None

    async def delete(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """DELETE /conversations/{id}: all of it, once nothing of it runs any more."""
        conversation = await self._find(caller, name)
        deletion = self._conversations.deletion
        open_turns = [n for n, state in await deletion.turns(conversation) if state in OPEN]
        if open_turns:
            await self._journal.cancel(open_turns)
            if any(state in OPEN for _, state in await deletion.turns(conversation)):
                raise ConversationBusy
        await self._free(await self._find(caller, name), has_ended=True)
        erased = await self._erase(conversation, [n for n, _ in await deletion.turns(conversation)])
        if not await deletion.delete(conversation, self._claims.now()):
            await self._find(caller, name)  # somebody else may have deleted it
            raise ConversationBusy
        pages = [{"agent": each.agent, "path": each.path, "later": each.later} for each in erased]
        await reply_json(exchange, {"deleted": conversation.id, "memory": pages})

    async def _erase(
        self, conversation: KeptConversation, turns: Sequence[int]
    ) -> Sequence[ErasedFile]:
        """Leave nothing of what agents wrote in it for its person; those files."""
        person = person_of(conversation.owner)
        if person is None:
            return ()
        return await self._memories.erase(person, conversation.n, self._claims.now(), turns)

    # ------------------------------------------------------------------ which

    async def _find(self, caller: Caller, name: str) -> KeptConversation:
        found = await self._conversations.find(caller.owner, name)
        if found is None:
            raise ConversationNotFound
        return found

    async def _meant(
        self, exchange: Exchange, caller: Caller, name: str
    ) -> tuple[KeptConversation, KeptMessage]:
        """The conversation, and the answer that a body names; by default the last one."""
        body = await exchange.read(MOST_BYTES)
        message: str | None = None
        if body:
            check_json_body(exchange.headers)
            asked = json.read_object(body)
            named_one = asked.get("message")
            if asked.keys() - {"message"} or not isinstance(named_one, str | None):
                raise InvalidRequest("message", "must be the id of an answer, and stand alone")
            message = named_one
        conversation = await self._find(caller, name)
        if message is not None:
            found = await self._conversations.message(conversation, message)
        else:
            branch = await self._conversations.branch(conversation, last=None, limit=LOOKED_BACK)
            # What was relayed belongs to the answer before it.
            found = next((each for each in branch if each.turn is not None), None)
        if found is None or found.role != "assistant":
            raise MessageNotFound
        return conversation, found

    async def _question(self, conversation: KeptConversation, answer: KeptMessage) -> KeptMessage:
        branch = await self._conversations.branch(conversation, last=answer.parent, limit=1)
        if not branch or branch[0].role != "user":
            raise MessageNotFound
        return branch[0]

    async def _free(self, conversation: KeptConversation, *, has_ended: bool = False) -> None:
        """See whether an answer that seems to be given has ended, or its process has died.

        Where it `has_ended` it is written down here, and not left to whoever shows it.
        """
        if conversation.answering is None:
            return
        answer = await self._conversations.message(conversation, conversation.answering)
        if answer is None:
            return
        if has_ended and await self._answers.settle(conversation.owner, answer, is_seen=True):
            return
        await self._answers.look_at(conversation, answer)

    # ------------------------------------------------------------------ answers

    async def _repeat(
        self, exchange: Exchange, caller: Caller, begun: BegunAnswer, began: float
    ) -> None:
        """Answer what was sent before: as it is kept, or as it is given now."""
        conversation, question, answer = begun.conversation, begun.question, begun.answer
        if await self._join(exchange, caller, begun, began):
            return
        if answer.state == "unanswered":
            new = await self._claims.again(conversation, question, answer, caller)
            begun = await self._conversations.begin_answer(new)
            await self._give(exchange, caller, begun, began)
            return
        await self._tell_again(exchange, caller, begun)

    async def _join(
        self, exchange: Exchange, caller: Caller, begun: BegunAnswer, began: float
    ) -> bool:
        """Have an answer read along that is being given, or waits; False if it is neither."""
        conversation, answer = begun.conversation, begun.answer
        is_given = conversation.answering == answer.id
        if not is_given and not answer.waits:
            return False
        turn = await self._conversations.turn_of(caller.owner, answer)
        if turn is not None and turn.actor == caller.actor.name:
            await self._give(exchange, caller, begun, began)
            return True
        # It is about to begin, or was asked for with another token, unless its process died.
        if is_given and not await self._answers.look_at(conversation, answer):
            raise named(ConversationBusy(), begun)
        return False

    async def _tell_again(self, exchange: Exchange, caller: Caller, begun: BegunAnswer) -> None:
        async with self._answering.readers.room(caller.actor.name, REPEAT_BYTES):
            await self._kept.tell(exchange, begun)

    async def _give(
        self, exchange: Exchange, caller: Caller, begun: BegunAnswer, began: float
    ) -> None:
        """Have an answer given as any call is answered."""
        try:
            claim = await self._claims.claim(
                begun,
                authorization=read_authorization(exchange.headers),
                correlation=exchange.line.correlation,
                relays=self._relay is not None,
            )
            call = await self._answering.admit(claim)
            if self._relay is not None and not call.known:
                call = self._relay(call)
        except CarnetError as error:
            if begun.is_new:  # else it is given to somebody
                await self._conversations.release(caller.owner, begun.answer.id, error.code)
            raise named(error, begun) from None
        try:
            with self._answers.read(begun.answer):
                await self._answering.answer(exchange, call, began)
        except CarnetError as error:
            raise named(error, begun) from None


_TEXT: Final = {"type": "string"}
SCHEMAS: Final[dict[str, Any]] = {
    "SentMessage": {
        "type": "object",
        "required": ["content"],
        "additionalProperties": False,
        "properties": {
            "content": {"type": "string", "minLength": 1},
            "metadata": {"type": "object", "properties": {"client_context": {"type": "object"}}},
            "client_message_id": {"type": "string", "minLength": 1, "maxLength": 128},
            "agent": {**_TEXT, "description": "An agent's name or address"},
            "edits": {**_TEXT, "description": "The id of a message that this one replaces"},
        },
    },
    "MeantMessage": {
        "type": "object",
        "additionalProperties": False,
        "properties": {"message": {**_TEXT, "description": "The id of an answer; else the last"}},
    },
}

ROUTES: Final = (
    Row(
        method="POST",
        path="/message",
        endpoint=MessageEndpoint.send,
        summary="Say something to an agent, in a conversation (X-Conversation-ID) or a new one",
        body="SentMessage",
        streams=True,
    ),
    Row(
        method="POST",
        path="/conversations/{conversation}/retry",
        endpoint=MessageEndpoint.retry,
        summary="Try an answer again that is not whole",
        body="MeantMessage",
        streams=True,
    ),
    Row(
        method="GET",
        path="/conversations/{conversation}/answer",
        endpoint=MessageEndpoint.follow,
        summary="The last answer as a stream, as it is being given or as it is kept",
        streams=True,
    ),
    Row(
        method="POST",
        path="/conversations/{conversation}/regenerate",
        endpoint=MessageEndpoint.regenerate,
        summary="Have another answer given, beside the one there is",
        body="MeantMessage",
        streams=True,
    ),
    Row(
        method="DELETE",
        path="/conversations/{conversation}",
        endpoint=MessageEndpoint.delete,
        permission="run:cancel",
        summary="Delete a conversation: its messages, and what was recorded of its calls",
        answer="Page",
    ),
    Row(
        method="POST",
        path="/conversations/{conversation}/stop",
        endpoint=MessageEndpoint.stop,
        permission="run:cancel",
        summary="Stop the answer that is being given",
        answer="Page",
    ),
)
