"""What the branches of a fan-out ask for, shown and answered while the others go on.

Law 1. A question is recorded with the turn that the calls are made out of, and can be answered from
       then on by whoever began the chain here; nobody else is shown it before the turn waits.
Law 2. A branch goes on when all that it asks for is answered. An answer is brought to it once: what
       it asks for again with the same secret is asked as any question, when the turn waits.
Law 3. Before the turn waits, what nobody has answered is closed, so that no answer falls between.
Law 4. Where "go on without" is offered, and answered, the branch is left: it is brought nothing.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Final, Protocol

from carnet.core.call import Call
from carnet.core.messages.interrupt import Answered, Interrupt, InterruptRecord
from carnet.core.sealed_call import sealed_call_of, write_sealed_call
from carnet.errors import CarnetError
from carnet.ports.calls.questions import EarlyQuestions, OpenQuestions, Surface
from carnet.ports.world.clock import Clock

LOOK_SECONDS: Final = 0.25  # between two looks for answers, while other branches go on
# Answers what a call asks for, where there are rules.
ByRule = Callable[[Call, Sequence[Interrupt]], Awaitable[object]]


class SurfacedQuestions:
    """The same over a store."""

    def __init__(self, questions: OpenQuestions, clock: Clock) -> None:
        self._questions = questions
        self._clock = clock
        self.by_rule: ByRule | None = None  # given later: rules need all else to be built

    async def ask(self, call: Call, interrupts: Sequence[Interrupt]) -> None:
        """Let them be answered, if there is somebody here who can."""
        owners = tuple([call.person_asked(asked) for asked in interrupts])
        if None in owners:  # a caller elsewhere is told when the turn waits
            return
        records = await self._questions.ask(
            EarlyQuestions(
                turn=call.record,
                interrupts=tuple(interrupts),
                owners=owners,
                call_bytes=write_sealed_call(sealed_call_of(call, 0)),
                now=self._clock.wall_us(),
            )
        )
        is_open = [record.interrupt for record in records if record.status == "open"]
        if self.by_rule is not None and is_open:
            await self.by_rule(call, is_open)

    async def answers(self, call: Call) -> Sequence[Answered]:
        """What the turn of a call was answered so far."""
        return _answered(await self._questions.of(call.record))

    async def withhold(self, call: Call, ids: Collection[str]) -> Sequence[Answered]:
        """Close those of these that nobody has answered; what the turn was answered."""
        return _answered(await self._questions.withhold(call.record, ids))


def _answered(records: Sequence[InterruptRecord]) -> list[Answered]:
    return [each.answered for each in records if each.status == "resolved"]


class Asks(Protocol):
    """The turn whose branches ask."""

    @property
    def call(self) -> Call:
        """The admitted call."""

    @property
    def surface(self) -> Surface | None:
        """What shows questions while it runs; None: they are shown when it waits."""

    def asked(self, ids: frozenset[str]) -> tuple[Interrupt, ...]:
        """What these are that it asks for."""

    def take_answers(self, answers: Sequence[Answered]) -> None:
        """Bring these to what is called from now on."""


class BranchQuestions:
    """What the branches of one fan-out ask for."""

    def __init__(self, visit: Asks, *, offers_without: bool) -> None:
        self._visit = visit
        self._offers = offers_without
        self._ids: dict[int, frozenset[str]] = {}  # by the place of the branch
        self._shown: set[str] = set()  # ids that can be answered meanwhile
        self._brought: set[str] = set()  # states of those whose answers were brought
        self._new = asyncio.Event()
        resolved = visit.call.resolved if offers_without else ()
        self.left = {each.interrupt.id for each in resolved if each.resolution.is_without}

    def take(self, place: int, ids: frozenset[str]) -> bool:
        """Note what a branch asks for; whether it is to be left without asking."""
        if self.left & ids:
            return True
        self._ids[place] = ids
        self._new.set()
        return False

    def drop(self, place: int) -> None:
        """A branch asks no more."""
        self._ids.pop(place, None)

    async def answered(self) -> Mapping[int, bool]:
        """Wait for answers: branches that have all of theirs, and whether each is to be left."""
        while True:
            self._new.clear()
            with contextlib.suppress(CarnetError):  # the store is away: look again
                await self._show()
                if self._shown and (found := self._whole(await self._look())):
                    return found
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS if self._ids else None):
                    await self._new.wait()

    async def close(self) -> Mapping[int, bool]:
        """Have nobody answer any more; the same of what was answered at the last moment."""
        surface, shown = self._visit.surface, frozenset(self._shown)
        if surface is None or not shown:
            return {}
        self._shown = set()
        try:
            return self._whole(await surface.withhold(self._visit.call, shown))
        except CarnetError:  # the end of the turn cannot be written either
            return {}

    async def _show(self) -> None:
        surface, visit = self._visit.surface, self._visit
        asked = visit.asked(frozenset().union(*self._ids.values()))
        new = [
            each
            for each in asked
            if each.id not in self._shown and each.state and each.state not in self._brought
        ]
        if surface is None or not new:
            return
        ids = {each.id for each in new}
        self._shown |= ids  # also if nobody waits for the end of it
        try:
            await surface.ask(visit.call, new)
        except CarnetError:
            self._shown -= ids
            raise

    async def _look(self) -> Sequence[Answered]:
        surface = self._visit.surface
        return () if surface is None else await surface.answers(self._visit.call)

    def _whole(self, answers: Sequence[Answered]) -> Mapping[int, bool]:
        """The branches all of whose questions were answered; what they are told is brought."""
        by_id = {each.interrupt.id: each for each in answers}
        found: dict[int, bool] = {}
        for place, ids in self._ids.items():
            asked = self._visit.asked(ids)
            whole = [by_id[one.id] for one in asked if self._is_answer(one, by_id.get(one.id))]
            if not whole or len(whole) < len(ids):
                continue
            found[place] = self._offers and any(each.resolution.is_without for each in whole)
            self._brought |= {each.interrupt.state for each in whole}
            self._shown -= ids
            if not found[place]:
                self._visit.take_answers(whole)
        for place in found:
            self.drop(place)
        return found

    def _is_answer(self, asked: Interrupt, answered: Answered | None) -> bool:
        """Whether it is for this question, and not for one that had its name before."""
        is_known = asked.state in self._brought
        return answered is not None and not is_known and answered.interrupt.state == asked.state
