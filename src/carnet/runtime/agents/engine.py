"""An agent that a loop answers: a call of the gateway as a request of the contract, and its end.

Law 1. What goes to the loop has passed through the form of the contract, also where the loop is in
       this process: what it could not be given over HTTP it is not given here either.
Law 2. The loop acts for the caller, with the caller's rights as the most that it may use.
Law 3. What a loop has done is kept as the steps of its turn: a turn that runs again does none of it
       twice, and is told from its beginning.
Law 4. A failure is told in the three codes of the contract; its cause is the operator's.
Law 5. An approval that a tool needs is asked for by this turn, under a name of its own. What agents
       ask for that the loop has called is asked for beside it, as it came.
Law 6. Before its model is asked the loop is told what is left of the tokens of the call. Where that
       is nothing, whoever pays is asked for more, or the call ends with `budget_exceeded`.
Law 7. Where others have called it, it is told at which hop of their chain it stands (R23). At the
       last one it calls nobody, whatever a model says or a function that is its tool.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from carnet.core.call import Ask, Call, Thread
from carnet.core.messages.events import End, Failed, Message, Usage, Waiting
from carnet.core.messages.interrupt import Resolution
from carnet.core.messages.output import Output
from carnet.core.people.identity import Caller, Ceiling
from carnet.core.people.permissions import both
from carnet.errors import BudgetExceeded, CarnetError
from carnet.ports.calls.steps import Steps
from carnet.ports.engine.loop import Engine, LoopTokens, LoopTurn
from carnet.ports.engine.tools import TurnTriggers
from carnet.ports.memory.memory import TurnMemory
from carnet.ports.memory.past import TurnPast
from carnet.ports.trust.people import People
from carnet.runtime.chain.call_chain import CHAIN
from carnet.runtime.visit.loop_visit import CallsOut, LoopVisit
from carnet.runtime.visit.steps import MOST_NAME, KeptSteps
from carnet.wire.dialects.engine_chat.actor import EngineActor
from carnet.wire.dialects.engine_chat.refusals import FAILURES, end_of
from carnet.wire.dialects.engine_chat.request import EngineRequest, read_request, write_request
from carnet.wire.dialects.openai.members import Passing
from carnet.wire.dialects.policy import own_id
from carnet.wire.grammar import json
from carnet.wire.stamps.mentionable import cue_of

LARGE_CHARACTERS: Final = 65_536  # of a request that is read beside the event loop
CALL_CHARACTERS: Final = 128  # that the form of a tool call is counted as
BEGUN: Final = 1_000_000  # the place, among its steps, of what says that the first tool has begun

AGENT: Final = "agent"  # whose budget it is that a loop has used up
_OF_TOKEN: Final = "token:"  # noqa: S105  what the names of those begin with


class Belongings(Struct, frozen=True, kw_only=True, eq=False):
    """What people have here, as a loop reaches that of whoever it answers."""

    people: People | None = None  # their names
    triggers: Callable[[Caller], TurnTriggers | None] = lambda _: None  # schedules and hooks
    memory: Callable[[Call], TurnMemory | None] = lambda _: None  # what the agent keeps for them
    past: Callable[[Call], TurnPast | None] = lambda _: None  # what they have said before


NOTHING: Final = Belongings()


class EngineAgent:
    """A loop as an Agent."""

    def __init__(
        self,
        engine: Engine,
        calls: CallsOut,
        *,
        name: str = "",
        system: str | None,
        passing: Passing,
        steps: Steps | None,
        belongings: Belongings = NOTHING,
        cues: bool = True,
    ) -> None:
        """`system` is said first; `passing` is what of callers' messages passes after it.

        `calls` are those it makes itself; `name` is its own, for a loop that answers several.
        `belongings` are those of the people for whom it acts. With `cues` its model is told where
        in its chain it stands.
        """
        self._cues = cues
        self._belongings = belongings
        self._engine = engine
        self._calls = calls
        self._name = name
        self._system = system
        self._passing = passing
        self._steps = steps

    async def __call__(self, call: Call, out: Output, /) -> End:
        """Have the loop answer."""
        kept, visit = KeptSteps(call.record, self._steps, None), LoopVisit(call, out, self._calls)

        def once(name: str, act: Callable[[], Awaitable[Any]], /) -> Awaitable[Any]:
            return kept.do(kept.take_place(name), name, act, (), {})

        async def begins(place: int, name: str, /) -> bool:
            now: list[bool] = []

            async def note() -> None:
                now.append(True)

            await kept.do(BEGUN + place, f"begin {name}"[:MOST_NAME], note, (), {})
            return bool(now)

        theirs, policy, find = self._belongings, self._calls.policy, self._calls.tokens
        tokens = None if find is None else find.of(call)
        turn = LoopTurn(
            request=await self._read(call),
            actor=actor_of(call.caller, theirs.people),
            name=call.carnet.turn,
            resolved=ResolvedCalls(call),
            once=once,
            begins=begins,
            agent=self._name,
            calls=visit,
            triggers=theirs.triggers(call.caller),
            is_final=visit.is_final,
            memory=theirs.memory(call),
            past=theirs.past(call),
            ask_policy=None if policy is None else partial(policy.ask_tool, call),
            budgets=call.caller.budgets,
            granted=visit.granted if call.resolved else (),
            asks=call.target.asks,
            tokens=tokens,
        )
        before = CHAIN.set(visit)
        try:
            end = await self._engine(turn, _CountingSink(out, tokens) if tokens else out)
        except CarnetError as error:
            short = None if tokens is None else tokens.short
            waits = self._waits(visit, error) if short is None else visit.ask_for_tokens(short)
            if waits is None:
                raise _failure(short or error) from error
            return waits
        finally:
            visit.close()
            CHAIN.reset(before)
        return visit.whole(end) if isinstance(end, Waiting) else end

    def _waits(self, visit: LoopVisit, error: CarnetError) -> Waiting | None:
        """What is asked for where a budget of this agent ended, as its operator has it."""
        if not (visit.call.target.asks and isinstance(error, BudgetExceeded)):
            return None
        return visit.ask_for_loop(error) if error.facts.get("budget") == AGENT else None

    async def _read(self, call: Call) -> EngineRequest:
        """What is asked; much is written and read beside the event loop."""
        if _length(call.ask) <= LARGE_CHARACTERS:
            return self._request(call)
        return await asyncio.to_thread(self._request, call)

    def _request(self, call: Call) -> EngineRequest:
        """What is asked, in the form of the contract; InvalidRequest for what it cannot carry."""
        ask = self._passing.kept(call.ask) if self._passing.removed(call.ask) else call.ask
        messages = _messages(ask)
        parts = (self._system, self._cue(call), _context(ask.thread))
        system = "\n\n".join([each for each in parts if each is not None])
        if system:
            messages = (Message.system(system), *messages)
        correlation = call.correlation or call.carnet.run
        asked = EngineRequest(messages=messages, correlation=correlation)
        thread = call.ask.thread
        if thread is not None:
            asked = replace(
                asked,
                conversation=thread.conversation,
                trigger=thread.trigger,
                client_context=thread.client_context or None,
            )
        return read_request(write_request(asked))

    def _cue(self, call: Call) -> str | None:
        """What it is told of its chain, if anything."""
        return cue_of(call.carnet, self._calls.last_depth) if self._cues else None


class _CountingSink:
    """Passes on what a loop says, and counts the tokens that it used."""

    __slots__ = ("_count", "_usage", "write")

    def __init__(self, out: Output, tokens: LoopTokens) -> None:
        self.write = out.write
        self._usage = out.usage
        self._count = tokens.count

    def usage(self, usage: Usage, /) -> None:
        self._usage(usage)
        self._count((usage.tokens_in or 0) + (usage.tokens_out or 0))


def _context(thread: Thread | None) -> str | None:
    """What the model is told of the client that a person uses, as its operator lets it."""
    if thread is None or not thread.model_context:
        return None
    return f"[The person's client says of itself: {json.write_text(thread.model_context)}]"


class ResolvedCalls(Mapping[str, Resolution]):
    """What was answered in a turn, by the ids of the tool calls that waited for it."""

    def __init__(self, call: Call) -> None:
        """The answers have names of this turn."""
        self._key = call.record.key
        self._answers = {each.interrupt.id: each.resolution for each in call.resolved}

    def __getitem__(self, id: str) -> Resolution:
        return self._answers[own_id(self._key, id)]

    def __iter__(self) -> Iterator[str]:
        """Nobody asks for the names."""
        return iter(())

    def __len__(self) -> int:
        return len(self._answers)


def actor_of(caller: Caller, people: People | None = None) -> EngineActor:
    """Who acts for a caller, and the most that may be used: its scopes within its ceiling.

    A person is called by her bare name, which no name of a machine can be (R25).
    """
    ceiling, scopes = caller.ceiling, caller.scopes
    allow = scopes if ceiling.allow is None else both(scopes, ceiling.allow)
    return EngineActor(_name_of(caller, people), Ceiling(allow=allow, deny=ceiling.deny))


def _name_of(caller: Caller, people: People | None) -> str:
    if caller.person is not None and people is not None:
        person = people.numbered(caller.person)
        if person is not None:
            return person.name
    name = caller.actor.name
    return f"service:{name.removeprefix(_OF_TOKEN)}" if name.startswith(_OF_TOKEN) else name


def _length(ask: Ask) -> int:
    """How much there is to read, about; what is no text may be anything."""
    if not ask.messages:
        text = (ask.payload or {}).get("text")
        return len(text) if isinstance(text, str) else LARGE_CHARACTERS + 1
    return sum(
        sum([len(part) for part in message.parts if isinstance(part, str)])
        + sum([len(call.arguments) + CALL_CHARACTERS for call in message.tool_calls])
        for message in ask.messages
    )


def _messages(ask: Ask) -> tuple[Message, ...]:
    if ask.messages:
        return ask.messages
    payload = ask.payload or {}
    text = payload.get("text")
    return (Message.user(text if isinstance(text, str) else json.write_text(payload)),)


def _failure(error: CarnetError) -> CarnetError:
    """What the caller is told: one of the three, or that the loop itself has a fault."""
    end = end_of(error)
    if not isinstance(end, Failed):
        return error
    kind = FAILURES[end.code]
    if isinstance(error, kind):
        return error
    failure = kind(error.detail or str(error))
    failure.words = error.words
    return failure
