"""What an agent that is run again finds in the place of the world: its own record.

Law 1. A call to another agent is answered from the record under the id that it has, and what is
       asked must be what was asked. Nobody is called.
Law 2. A step gives what it gave. One that is not kept is not done.
Law 3. What is not in the record is noted, whatever the agent makes of the refusal.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final

from carnet.core.call import Ask, Call
from carnet.core.chain.turn import Turn
from carnet.core.messages.events import Event, Failed, Usage
from carnet.core.messages.outbound_call import OutboundCall
from carnet.errors import CarnetError, DefinitionChanged
from carnet.guards.admission.children import child_request
from carnet.ports.calls.admission import ClientCallee, ClientLeave
from carnet.ports.calls.steps import Step
from carnet.runtime.replay.record import RecordedRun, RecordedTurn
from carnet.runtime.visit.children import speaker_of

MOST_SHOWN: Final = 500  # characters of what was asked otherwise

# Answers a child otherwise than from its record; None where it is answered from that.
Answer = Callable[[Call, str, Ask, int, RecordedTurn | None], Awaitable[Sequence[Event] | None]]


class ReplayNotes:
    """What was met while one turn ran again."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.missing: list[str] = []  # that is not in the record
        self.otherwise: list[str] = []  # calls that ask for something else

    def miss(self, what: str) -> CarnetError:
        """Note it; what the agent is refused with."""
        self.missing.append(what)
        return DefinitionChanged(what)


class RecordedDispatch:
    """Answers what an agent asks of others."""

    def __init__(self, run: RecordedRun, *, last_depth: int, answer: Answer | None = None) -> None:
        """`last_depth` is that of a chain without one; `answer` has the first word."""
        self._run = run
        self._last_depth = last_depth
        self._answer = answer
        self._notes: dict[int, ReplayNotes] = {}

    def notes(self, turn: Turn) -> ReplayNotes:
        """Those of a turn."""
        return self._notes.setdefault(turn.n, ReplayNotes())

    async def __call__(
        self, parent: Call, name: str, ask: Ask, *, index: int, auth: str
    ) -> AsyncIterator[Event]:
        """The events of a child."""
        for event in await self.whole(parent, name, ask, index=index, auth=auth):
            yield event

    async def whole(
        self, parent: Call, name: str, ask: Ask, *, index: int, auth: str
    ) -> Sequence[Event]:
        """All of them."""
        del auth
        carnet, record = parent.carnet, parent.record
        carnet.refuse_if_final(self._last_depth)
        turn = carnet.child_turn(index, speaker_of(name), record.key)
        found = self._run.child(record, turn)
        if self._answer is not None:
            answered = await self._answer(parent, name, ask, index, found)
            if answered is not None:
                return answered
        if found is None:
            raise self._refusal(record, turn, name)
        self._compare(record, found, name, ask)
        return found.answer()

    def check(self, call: Call) -> None:
        """Nothing revokes what is over."""

    def let_out(self, parent: Call, callee: ClientCallee, *, auth: str | None) -> ClientLeave:
        """Nothing leaves."""
        del auth
        raise self.notes(parent.record).miss(f"a call of its own to {callee.url}")

    def _compare(self, parent: Turn, found: RecordedTurn, name: str, ask: Ask) -> None:
        now = child_request(ask)
        if found.asked is not None and found.asked != now:
            asked, then = now.decode()[:MOST_SHOWN], found.asked.decode()[:MOST_SHOWN]
            self.notes(parent).otherwise.append(f"{name} was asked {then}, and now {asked}")

    def _refusal(self, parent: Turn, turn: str, name: str) -> CarnetError:
        """The error of a call that was refused then, or of one that was not made then."""
        made = self._run.find(parent.n)
        for call in () if made is None else made.outbound:
            if call.child_turn == turn and call.state == "refused":
                return Failed(call.code or "").error()
        return self.notes(parent).miss(f"its call {turn} to {name}")


class RecordedSteps:
    """Gives what was done."""

    def __init__(self, run: RecordedRun, notes: Callable[[Turn], ReplayNotes]) -> None:
        """`notes` are those of a turn."""
        self._run = run
        self._notes = notes

    async def of(self, turn: Turn) -> Sequence[Step]:
        """What is kept of a turn, in order."""
        found = self._run.find(turn.n)
        return () if found is None else found.steps

    async def check(self, turn: Turn) -> None:
        """Do nothing that was not done: this is asked before a step is."""
        raise self._notes(turn).miss("a step that it did not do then")

    async def keep(self, turn: Turn, step: Step) -> None:
        """Nothing is done, so nothing is kept."""
        raise self._notes(turn).miss(f"the step {step.name!r}")


class SilentProgress:
    """Tells nobody how far a task is."""

    def tell(self, turn: Turn, thousandths: int, note: str | None) -> None:
        """Nobody polls it."""


class ReplayOutput:
    """Keeps what an agent says."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.events: list[Event] = []

    async def write(self, event: Event, /) -> None:
        """Keep an event."""
        self.events.append(event)

    def usage(self, _: Usage, /) -> None:
        """It was paid for then."""

    def called(self, _: OutboundCall, /) -> None:
        """It is in the record."""

    def mark(self) -> int:
        """How far it is."""
        return len(self.events)

    def back(self, mark: int, /) -> bool:
        """Take back what came since."""
        del self.events[mark:]
        return True
