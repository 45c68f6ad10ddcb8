"""An agent whose answer is relayed to those whom it mentions (R37).

It stands before the agent that a person talks to, in one call of one of her conversations.

Law 1. Who is mentioned in a whole answer is asked what was answered, one hop further, as a call out
       of the same turn; what it says follows under its own name.
Law 2. One asks another at most once in a turn, and nobody at the last hop of the chain. There is a
       bound to all of them together.
Law 3. Who is not known, may not be called or fails is no failure of the answer: it stands, and of
       the one that failed stands why.
Law 4. Of an orchestrator the words of each whom it has asked are relayed as theirs, one hop further
       than they were spoken; how it names them in its list mentions nobody.
Law 5. What somebody asks for who was mentioned, the turn asks for. It runs on with the answer: what
       was said until then is kept, and is neither thought of nor paid for again.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from carnet.core.call import Call
from carnet.core.chain.carnet import Carnet, DepthLimits
from carnet.core.messages.events import (
    RELAYED,
    SPOKEN_BY,
    Done,
    End,
    Event,
    Extension,
    Message,
    Text,
    Usage,
    Waiting,
    read_events,
    write_events,
)
from carnet.core.messages.interrupt import Interrupt
from carnet.core.messages.mentions import mentions, named
from carnet.core.messages.output import Output
from carnet.errors import CarnetError, ChainFinal, DepthExceeded, LoopDetected
from carnet.ports.calls.agent import Router, Target
from carnet.ports.calls.steps import Steps
from carnet.ports.engine.calls import AgentAsk, CalleeWaits
from carnet.runtime.visit.loop_visit import CallsOut, LoopVisit, ordinal_of
from carnet.runtime.visit.steps import KeptSteps

MOST_RELAYS: Final = 8  # of one turn
PLACE: Final = 2_000_000  # among the steps of its turn, of what was said before somebody waited
ORCHESTRATOR: Final = "orchestrator"  # the kind whose answers are the words of others
MOST_KEPT: Final = 256 * 1024  # bytes of that; quoted in a step, they may be twice as many
_STEP: Final = "relay"
# A chain that has passed there, or may go no further: that is no news to anybody.
_NOT_ASKED: Final = frozenset({LoopDetected.code, DepthExceeded.code, ChainFinal.code})


class RelayParts(Struct, frozen=True, kw_only=True, eq=False):
    """What answers are relayed with."""

    router: Router  # finds who is mentioned
    calls: CallsOut
    limits: DepthLimits  # of chains that begin here
    steps: Steps | None = None  # keep what was said while somebody waits


def with_relays(call: Call, parts: RelayParts) -> Call:
    """The same call, with an agent whose answer is relayed."""
    target = call.target
    relay = Relay(target, call, parts)
    return replace(call, target=replace(target, agent=relay))


class Relay:
    """The agent of one call, and those whom it mentions."""

    def __init__(self, target: Target, call: Call, parts: RelayParts) -> None:
        """`call` is what calls are made out of."""
        self._target = target
        self._call = call
        self._router = parts.router
        self._calls = parts.calls
        self._limits = parts.limits
        self._steps = KeptSteps(call.record, parts.steps, None)

    async def __call__(self, call: Call, out: Output, /) -> End:
        """Have the agent answer, then those whom it mentions."""
        # With what was answered meanwhile; the document is that of the turn, and not of a callee.
        self._call = replace(call, carnet=self._call.carnet)
        spoken = SpokenOutput(out)
        end = await self._speak(call, spoken)
        if not isinstance(end, Done):
            return end
        asked = await self._relay(spoken, out)
        if not asked:
            return end
        kept = spoken.kept()
        if kept is not None:  # else it is said anew
            await self._steps.do(PLACE, _STEP, kept, (), {})
        return Waiting(tuple(asked))

    async def _speak(self, call: Call, spoken: "SpokenOutput") -> End:
        """What the agent says, or has said before the turn waited for somebody mentioned in it."""
        before = await self._steps.find(PLACE) if call.resolved else None
        if before is None:
            return await self._target.agent(call, spoken)
        for event in read_events(before["events"].encode()):
            await spoken.write(event)
        if self._target.is_remote and before["cost"] is not None:  # told as a whole, each time
            spoken.usage(Usage(cost=before["cost"]))
        return Done()

    def _first(self, spoken: "SpokenOutput") -> Iterator["_Speech"]:
        """Whose words may mention somebody, what they are, and where they were spoken."""
        call = self._call
        if self._target.kind != ORCHESTRATOR:
            # Who is elsewhere stands one hop further than the turn that it is called in.
            here = call.carnet if call.onward is None else self._placed(call.onward)
            yield _Speech(self._target.name, spoken.text, here)
            return
        for author, ordinal, text in spoken.authors:
            try:
                target = self._router.find(author)
            except CarnetError:  # it was there when it was asked
                continue
            yield _Speech(target.name, text, self._child(call.carnet, ordinal, target))

    def _child(self, here: Carnet, ordinal: int, target: Target) -> Carnet:
        """Where somebody stands who was called: those whom it mentions are called from there."""
        default = self._limits.of(target.chain)
        key, speaker = self._call.record.key, target.speaker
        return self._placed(
            here.next_hop(
                index=ordinal, speaker=speaker, key=key, default=default, stamp=target.chain
            )
        )

    def _placed(self, place: Carnet) -> Carnet:
        """The document of this turn, as deep as another one and in its place."""
        own = self._call.carnet
        return replace(
            own,
            turn=place.turn,
            parent_turn=own.turn,
            depth=place.depth,
            last_depth=place.last_depth,
            bound_by=place.bound_by,
        )

    async def _relay(self, spoken: "SpokenOutput", out: Output) -> Sequence[Interrupt]:
        """Ask who is mentioned, and who is mentioned by these; what they ask for first."""
        call = self._call
        waiting = deque(self._first(spoken))
        asked: set[tuple[str, str]] = set()
        questions: list[Interrupt] = []
        while waiting:
            speech = waiting.popleft()
            if speech.here.is_final(self._limits.default):
                continue
            inner = replace(call, carnet=speech.here)
            visit = LoopVisit(inner, out, self._calls, call.ask.capabilities)
            try:
                for target in self._mentioned(speech.text, speech.speaker, asked):
                    asked.add((speech.speaker, target.name))
                    # Without the sign of a mention: who repeats it asks nobody.
                    question = Message.user(f"{speech.speaker} says: {speech.text}")
                    ask = AgentAsk(to=target.name, messages=(question,), call=target.name)
                    if text := await _hear(visit, ask, out):
                        here = self._child(speech.here, ordinal_of(ask), target)
                        waiting.append(_Speech(target.name, text, here))
            finally:
                visit.close()
            questions += visit.questions
        return questions

    def _mentioned(self, text: str, speaker: str, asked: set[tuple[str, str]]) -> list[Target]:
        """Who is to be asked, of those in a text; each of them is somebody."""
        found: dict[str, Target] = {}  # by name: a name and an address may be one agent's
        for handle in mentions(text):
            try:
                target = self._router.find(named(handle))
            except CarnetError:  # a word that begins with @
                continue
            is_new = target.name not in {speaker, *found} and (speaker, target.name) not in asked
            may = self._call.caller.may(target.needs)
            if is_new and may and len(asked) + len(found) < MOST_RELAYS:
                found[target.name] = target
        return list(found.values())


class _Speech(Struct, frozen=True):
    """What somebody has said, and where: the document that calls are made out of then."""

    speaker: str
    text: str
    here: Carnet


async def _hear(visit: LoopVisit, ask: AgentAsk, out: Output) -> str:
    """What somebody says who was mentioned, told under its name; nothing while it waits."""
    text, code = "", None
    try:
        text = await visit.ask_agent(ask)
    except CalleeWaits:
        return ""
    except CarnetError as error:
        if error.code in _NOT_ASKED:
            return ""
        code = error.code
    await out.write(Extension(RELAYED, {"author": ask.to, "code": code}))
    if text:
        await out.write(Text(text))
    return text


class SpokenOutput:
    """Passes on what an agent says, and keeps it, with whose words are whose."""

    def __init__(self, out: Output) -> None:
        """Where it is passed on to."""
        self._out = out
        self._events: list[Event] = []
        self._marks: dict[int, int] = {}
        self._cost: int | None = None
        self.called = out.called

    @property
    def text(self) -> str:
        """All that was speech."""
        return "".join([each.text for each in self._events if isinstance(each, Text)])

    @property
    def authors(self) -> Sequence[tuple[str, int, str]]:
        """Who of others has said what in it, by the places of their calls."""
        found: list[tuple[str, int, str]] = []
        is_theirs = False
        for event in self._events:
            if isinstance(event, Extension) and event.name == SPOKEN_BY:
                is_theirs = event.payload is not None
                if is_theirs:
                    found.append((event.payload["author"], event.payload["place"], ""))
            elif isinstance(event, Text) and is_theirs:
                author, place, text = found.pop()
                found.append((author, place, text + event.text))
        return found

    def kept(self) -> Callable[[], Awaitable[dict[str, Any]]] | None:
        """What is kept of it while somebody waits, as a step; None where that is too much."""
        events = write_events(self._events)
        if len(events) > MOST_KEPT:
            return None

        async def kept() -> dict[str, Any]:
            return {"events": events.decode(), "cost": self._cost}

        return kept

    async def write(self, event: Event, /) -> None:
        """Take an event that is no end."""
        self._events.append(event)
        await self._out.write(event)

    def usage(self, usage: Usage, /) -> None:
        """Take what was used."""
        self._cost = usage.cost if usage.cost is not None else self._cost
        self._out.usage(usage)

    def mark(self) -> int:
        """How far it is, for `back`."""
        mark = self._out.mark()
        self._marks[mark] = len(self._events)
        return mark

    def back(self, mark: int, /) -> bool:
        """Take back the events since then, if nobody has seen any."""
        is_back = self._out.back(mark)
        if is_back:
            del self._events[self._marks.get(mark, 0) :]
        return is_back
