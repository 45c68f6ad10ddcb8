"""What is said in a conversation as the call that it is: to whom, with what was said before.

Whatever begins an answer comes through here: a client's message, a hook, a schedule. The agent that
is asked cannot tell them apart.

Law 1. Who is asked is decided by what was sent: the agent that it names, else the handle that it
       begins with, else the agent that was asked last, else the one of the configuration. Two
       handles or more go to the orchestrator, with the text as it is (R37).
Law 2. An answer that is given again is the same turn while that may run again: what its agent has
       done is not done twice.
Law 3. Of what a client tells of itself an agent is given what the configuration lists, and no more.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, Final

import msgspec
from msgspec import Struct

from carnet.core.call import Ask, Claim, Target, Thread
from carnet.core.chain.capabilities import RELAYING
from carnet.core.chain.carnet import Mark
from carnet.core.chain.turn_id import OUR_RUNS
from carnet.core.messages.mentions import leading_handles, named
from carnet.core.people.identity import Caller, Secret
from carnet.errors import AgentNotFound, CarnetError, ConversationBusy, InvalidRequest
from carnet.gateway.bodies import LARGE_BYTES
from carnet.gateway.conversations.transcript import history_of, is_retryable
from carnet.guards.target.target import permit
from carnet.ports.calls.agent import Router
from carnet.ports.calls.conversations import (
    BegunAnswer,
    Conversations,
    KeptConversation,
    KeptMessage,
    NewAnswer,
    NewMessage,
    Trigger,
)
from carnet.ports.world.clock import Clock, Ids
from carnet.wire.dialects.engine_chat.client_request import SentMessage
from carnet.wire.dialects.openai.request import write_request
from carnet.wire.grammar import json

DIALECT: Final = "owner"  # by which the turns of conversations are known
MOST_TITLE: Final = 80
ENGINE: Final = "engine"  # the kind of agents that tell what their tools gave
EVERY: Final = "*"
_OPEN: Final = frozenset({"queued", "running", "waiting"})  # states of a turn that has not ended


class FrontPolicy(Struct, frozen=True, kw_only=True):
    """What the configuration says of conversations."""

    agent: str | None = None  # that is asked where nobody is named
    orchestrator: str | None = None  # that is asked where several are
    relays: bool = True  # mentions in answers
    hold_seconds: float | None = None  # that a stream stays open at a question
    content_bytes: int = 262_144
    history: int = 200  # messages that an agent is told
    model_context: tuple[str, ...] = ()  # members of the client's context
    tool_context: tuple[str, ...] = ()
    currency: str = ""


class ThreadClaims:
    """Makes calls of what is said."""

    def __init__(
        self,
        conversations: Conversations,
        router: Router,
        policy: FrontPolicy,
        *,
        clock: Clock,
        ids: Ids,
    ) -> None:
        """`router` finds the agents, `ids` names what is new."""
        self._conversations = conversations
        self._router = router
        self._policy = policy
        self._clock = clock
        self._ids = ids

    def now(self) -> int:
        """The time, in microseconds since the epoch."""
        return self._clock.wall_us()

    # ------------------------------------------------------------------ whom

    def choose(self, sent: SentMessage, before: KeptConversation | None, caller: Caller) -> Target:
        """Who is asked; a refusal if nobody is, or not for this caller."""
        target = self._router.find(self._named(sent, before))
        permit(caller, target)
        return target

    def _named(self, sent: SentMessage, before: KeptConversation | None) -> str:
        if sent.agent is not None:
            return sent.agent
        handles, _ = leading_handles(sent.content)
        known = [self._known(named(each)) for each in handles]
        if len(known) > 1 and None not in known[:2]:
            if self._policy.orchestrator is None:
                raise InvalidRequest(
                    "content", "names several agents, and [owner] orchestrator names nobody for it"
                )
            return self._policy.orchestrator
        if known and known[0] is not None:
            return known[0]
        if before is not None:
            return before.agent
        if self._policy.agent is None:
            raise AgentNotFound("[owner] agent is not set", suggestion="")
        return self._policy.agent

    def _known(self, name: str) -> str | None:
        """A name that leads to somebody; other words that begin with @ are what was said."""
        try:
            return self._router.find(name).name
        except CarnetError:
            return None

    # ------------------------------------------------------------------ what is kept

    def message(
        self,
        owner: str,
        sent: SentMessage,
        agent: str,
        *,
        conversation: str | None,
        trigger: Trigger = "message",
    ) -> NewMessage:
        """What is to be kept of something that is said."""
        metadata = None if sent.metadata is None else json.write(sent.metadata)
        return NewMessage(
            owner=owner,
            conversation=conversation,
            new_conversation=f"cnv_{self._ids.ordered_uuid()}",
            id=self._message_id(),
            answer=self._message_id(),
            agent=agent,
            content=sent.content,
            title=title_of(sent.content),
            metadata=metadata,
            client_id=sent.client_id,
            digest=blake2b(msgspec.json.encode(sent), digest_size=32).digest(),
            edits=sent.edits,
            run=self._run(),
            turn=self._turn(),
            trigger=trigger,
            now=self.now(),
        )

    def another(
        self, conversation: KeptConversation, question: KeptMessage, agent: str
    ) -> NewAnswer:
        """A second answer to what was said."""
        return NewAnswer(
            owner=conversation.owner,
            conversation=conversation.id,
            to=question.id,
            id=self._message_id(),
            agent=agent,
            run=self._run(),
            turn=self._turn(),
            now=self.now(),
        )

    async def again(
        self,
        conversation: KeptConversation,
        question: KeptMessage,
        answer: KeptMessage,
        caller: Caller,
    ) -> NewAnswer:
        """The same answer, tried again: in its turn while that may run again, or has not ended."""
        turn = await self._conversations.turn_of(conversation.owner, answer)
        is_open = turn is not None and turn.state in _OPEN
        is_same = turn is None or (
            turn.actor == caller.actor.name and (is_retryable(turn) or is_open)
        )
        if is_open and not is_same:  # it would run beside the one that another token has begun
            raise ConversationBusy
        return NewAnswer(
            owner=conversation.owner,
            conversation=conversation.id,
            to=question.id,
            id=answer.id,
            agent=answer.author or conversation.agent,
            run=answer.run or self._run(),
            turn=answer.turn if is_same and answer.turn else self._turn(),
            now=self.now(),
        )

    def _message_id(self) -> str:
        return f"msg_{self._ids.ordered_uuid()}"

    def _run(self) -> str:
        return f"{OUR_RUNS}{self._ids.ordered_uuid()}"

    def _turn(self) -> str:
        return f"turn_{self._ids.uuid()}"

    # ------------------------------------------------------------------ the call

    async def claim(
        self,
        begun: BegunAnswer,
        *,
        authorization: Secret | None,
        correlation: str | None,
        relays: bool = False,
    ) -> Claim:
        """The call that an answer is asked for by; `relays` if mentions in it are relayed."""
        conversation, question, answer = begun.conversation, begun.question, begun.answer
        agent = answer.author or conversation.agent
        branch = await self._conversations.branch(
            conversation, last=question.n, limit=self._policy.history
        )
        thread, is_long = self._thread(conversation, question, answer), _size(branch) > LARGE_BYTES
        kind = self._router.find(agent).kind
        asked = partial(_asked, branch, agent, thread, with_tools=kind == ENGINE)
        ask, request = await asyncio.to_thread(asked) if is_long else asked()
        if relays:
            ask = msgspec.structs.replace(ask, capabilities=RELAYING)
        return Claim(
            dialect=DIALECT,
            agent=agent,
            ask=ask,
            # What was said before may have been added to since; it is the same request.
            digest=blake2b(f"{answer.id}\0{question.id}".encode(), digest_size=32).digest(),
            request=request,
            marks=(Mark(stamp=DIALECT, run=answer.run, turn=answer.turn, counts=False),),
            authorization=authorization,
            correlation=correlation,
        )

    def _thread(
        self, conversation: KeptConversation, question: KeptMessage, answer: KeptMessage
    ) -> Thread:
        metadata: dict[str, Any] = json.read_object(question.metadata) if question.metadata else {}
        context = metadata.get("client_context") or {}
        policy = self._policy
        return Thread(
            conversation=conversation.id,
            answer=answer.id,
            trigger=conversation.trigger,
            client_context=_passing(context, policy.tool_context),
            model_context=_passing(context, policy.model_context),
        )


def _size(branch: Sequence[KeptMessage]) -> int:
    return sum([len(message.parts) for message in branch])


def _asked(
    branch: Sequence[KeptMessage], agent: str, thread: Thread, *, with_tools: bool
) -> tuple[Ask, bytes]:
    """What an agent is asked at the end of a branch, and the same as it is recorded."""
    messages = history_of(branch, agent, with_tools=with_tools)
    ask = Ask(messages=messages, stream=True, thread=thread)
    return ask, write_request(ask, model=agent, stream=True)


def _passing(context: dict[str, Any], members: tuple[str, ...]) -> dict[str, Any]:
    return {name: context[name] for name in context if EVERY in members or name in members}


def title_of(content: str) -> str:
    """What a conversation is called until somebody names it: the first line that was said."""
    line = next((each for each in content.splitlines() if each.strip()), "")
    plain = " ".join("".join([sign if sign.isprintable() else " " for sign in line[:400]]).split())
    return plain if len(plain) <= MOST_TITLE else f"{plain[: MOST_TITLE - 1].rstrip()}…"
