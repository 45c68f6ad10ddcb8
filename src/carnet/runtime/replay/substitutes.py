"""What an agent that is run again finds in the place of the world: its own record.

Law 1. A call to another agent is answered from the record under the id that it has, and what is
       asked must be what was asked. Nobody is called.
Law 2. A step gives what it gave. One that is not kept is not done.
Law 3. What is not in the record is noted, whatever the agent makes of the refusal.
Law 4. Calls that were under way at once are answered in the order in which they were then.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from carnet.core.call import Ask, Call
from carnet.core.chain.turn import Turn
from carnet.core.dialogue.events import TurnDiscarded, read_dialogue_event
from carnet.core.messages.events import CHILD, Event, Extension, Failed, Usage
from carnet.core.messages.outbound_call import OutboundCall
from carnet.core.people.address import speaker_of
from carnet.errors import CarnetError, DefinitionChanged
from carnet.guards.admission.child_request import child_request
from carnet.ports.calls.admission import ClientCallee, ClientLeave
from carnet.ports.calls.steps import Step
from carnet.runtime.dialogue.hosted.pages import STEP, KeptPart
from carnet.runtime.replay.order import AnswerOrder, SeenCall
from carnet.runtime.replay.record import RecordedRun, RecordedTurn, is_cut

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
        self._orders: dict[int, AnswerOrder] = {}

    def notes(self, turn: Turn) -> ReplayNotes:
        """Those of a turn."""
        return self._notes.setdefault(turn.n, ReplayNotes())

    def begin(self, call: Call, *, is_apart: bool = True) -> AnswerOrder:
        """Forget what was noted of a turn: it runs from its beginning."""
        self._notes.pop(call.record.n, None)
        order = AnswerOrder(list(self._seen(call)), is_apart=is_apart)
        self._orders[call.record.n] = order
        return order

    def _seen(self, parent: Call) -> Iterator[SeenCall]:
        """The calls whose answers a turn has seen, in that order: it has notes of them."""
        made = self._run.find(parent.record.n)
        # Functions that speak in a conversation of the turn are never its first level.
        documents = (parent.carnet, replace(parent.carnet, run_is_ours=False))
        for event in () if made is None else made.events:
            if not isinstance(event, Extension) or event.name != CHILD:
                continue
            index, speaker = int(event.payload["index"]), speaker_of(str(event.payload["to"]))
            for carnet in documents:
                turn = carnet.child_turn(index, speaker, parent.record.key)
                found = self._run.child(parent.record, turn)
                if found is not None:
                    yield index, found.turn
                    break

    async def __call__(
        self, parent: Call, name: str, ask: Ask, *, index: int, auth: str
    ) -> AsyncIterator[Event]:
        """The events of a child; of one that the agent has left, those that it may have seen."""
        del auth
        found, answered = await self._found(parent, name, ask, index)
        if found is None or self._order(parent).is_seen(index):
            for event in answered:
                yield event
            return
        spoken = found.spoken()
        for event in spoken:
            yield event
        await self._order(parent).wait(index, found.turn)
        for event in answered[len(spoken) :]:
            yield event

    async def whole(
        self, parent: Call, name: str, ask: Ask, *, index: int, auth: str
    ) -> Sequence[Event]:
        """All of them."""
        del auth
        found, answered = await self._found(parent, name, ask, index)
        if found is not None and not self._order(parent).is_seen(index):
            await self._order(parent).wait(index, found.turn)
        return answered

    async def _found(
        self, parent: Call, name: str, ask: Ask, index: int
    ) -> tuple[RecordedTurn | None, Sequence[Event]]:
        """What a child answers; its record, where the agent may not have seen all of that."""
        carnet, record, order = parent.carnet, parent.record, self._order(parent)
        carnet.refuse_if_final(self._last_depth)
        turn = carnet.child_turn(index, speaker_of(name), record.key)
        found = self._run.child(record, turn)
        if self._answer is not None:
            answered = await self._answer(parent, name, ask, index, found)
            if answered is not None:
                order.tell(index)
                return None, answered
        if found is None:
            raise self._refusal(record, turn, name)
        self._compare(record, found, name, ask)
        may_be_left = not is_cut(record) and (found.turn.state == "done" or is_cut(found.turn))
        if order.is_seen(index):
            await order.wait(index, found.turn)
            order.tell(index)
        return found if may_be_left else None, found.answer()

    def _order(self, parent: Call) -> AnswerOrder:
        return self._orders.get(parent.record.n) or self.begin(parent)

    def check(self, call: Call) -> None:
        """Nothing revokes what is over."""

    def most_cost(self, name: str, ask: Ask) -> int:
        """Nothing that a budget would have to be raised for."""
        del name, ask
        return 0

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

    def __init__(
        self,
        run: RecordedRun,
        notes: Callable[[Turn], ReplayNotes],
        *,
        driven: frozenset[int] = frozenset(),
    ) -> None:
        """`notes` are those of a turn; `driven` are turns whose conversations are driven anew."""
        self._run = run
        self._notes = notes
        self._driven = driven

    async def of(self, turn: Turn) -> Sequence[Step]:
        """What is kept of a turn, in order."""
        found = self._run.find(turn.n)
        steps = () if found is None else found.steps
        return [each for each in steps if turn.n not in self._driven or each.name != STEP]

    async def check(self, turn: Turn) -> None:
        """Do nothing that was not done: this is asked before a step is."""
        raise self._notes(turn).miss("a step that it did not do then")

    async def keep(self, turn: Turn, step: Step) -> None:
        """Keep nothing: nothing is done. What a conversation notes of itself is no step taken."""
        if step.name == STEP and (turn.n in self._driven or _is_failure(step)):
            return
        raise self._notes(turn).miss(f"the step {step.name!r}")


def _is_failure(page: Step) -> bool:
    """Whether a page of a conversation says of attempts alone that they have failed, once more."""
    events = msgspec.json.decode(page.result, type=KeptPart).events
    return all(isinstance(read_dialogue_event(bytes(each)), TurnDiscarded) for each in events)


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
