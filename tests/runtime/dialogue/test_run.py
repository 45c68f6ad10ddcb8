"""Runs over crashes, failures and cancellations in any order: nothing acknowledged is lost."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

import carnet
from carnet.core.dialogue.events import DialogueEvent
from carnet.core.dialogue.record import DialogueRecord
from carnet.errors import StorageUnavailable
from carnet.runtime.dialogue.callees import Callees
from carnet.runtime.dialogue.nested import NestedConversations
from carnet.runtime.dialogue.parts import DialogueParts
from carnet.runtime.dialogue.place import DialoguePlace
from carnet.runtime.dialogue.run import DialogueRun
from carnet.runtime.stream import closing
from carnet.testing.clock import FakeClock, FakeIds
from carnet.testing.dialogues import MemoryDialogues

RUN = "r"
COST = 3


class DrivenRun(RuleBasedStateMachine):
    """One run that many drivers go on with; each may die, be aborted, or meet who fails."""

    def __init__(self) -> None:
        super().__init__()
        self.journal = MemoryDialogues()
        self.failing: list[bool] = []  # whether the next calls fail, one after the other
        self.acknowledged: dict[str, str] = {}  # the text of every turn that was shown as ended
        self.max_turns = 4
        self.cut_at: int | None = None  # the call in whose midst its driver is cancelled or aborted
        self.cut: Callable[[], object] | None = None
        self.calls: Counter[str] = Counter()

    def _speaker(self, name: str) -> Any:
        async def speak(visit: carnet.Visit) -> Any:
            self.calls[visit.carnet.turn] += 1
            yield carnet.Usage(cost=COST)
            await self._perhaps_cut()
            if self.failing and self.failing.pop(0):
                raise ConnectionResetError
            yield f"{name} after {len(visit.messages)}"

        speak.__name__ = speak.__qualname__ = name
        return speak

    async def _perhaps_cut(self) -> None:
        if self.cut_at is None or self.cut is None:
            return
        self.cut_at -= 1
        if self.cut_at < 0:
            self.cut()
            await asyncio.Event().wait()

    def _chair(self) -> Any:
        """A function that has others converse, and costs nothing itself."""

        async def chair(visit: carnet.Visit) -> str:
            people = [self._speaker("x"), self._speaker("y")]
            result = await visit.conversation(people, seed="Go.", max_turns=2)
            if result.halted.kind != "max_turns" or (self.failing and self.failing.pop(0)):
                raise ConnectionResetError
            return " ".join(turn.text for turn in result.transcript)

        return chair

    def _conversation(self) -> carnet.Conversation:
        swarm = carnet.Conversation("swarm", [self._speaker("x"), self._speaker("y")], max_turns=2)
        spare = carnet.Conversation("spare", [self._speaker("x"), self._speaker("y")], max_turns=2)
        return carnet.Conversation(
            "panel",
            [
                self._speaker("a"),
                carnet.Participant(target=swarm, on_failure=spare),
                self._chair(),
            ],
            max_turns=self.max_turns,
            policy=carnet.CallPolicy(retries=1, backoff=0),
        )

    async def _drive(self, *, shown: int, abort: asyncio.Event | None = None) -> None:
        """Drive it, and stop reading after so many events."""
        clock, ids = FakeClock(), FakeIds()
        callees = Callees(clock=clock, ids=ids, currency="credits")
        parts = DialogueParts(
            clock=clock, ids=ids, callees=callees, journal=self.journal, abort=abort
        )
        callees.converses = NestedConversations(parts)
        place = DialoguePlace(run_id=RUN, last_depth=3)
        run = DialogueRun(self._conversation(), place, parts, seed="Go.")
        async with closing(run.events()) as events:
            async for event in events:
                self._see(event)
                shown -= 1
                if shown < 0:
                    return

    def _see(self, event: DialogueEvent) -> None:
        if isinstance(event, carnet.TurnEnded):
            assert event.turn.turn_id not in self.acknowledged, "it was acknowledged before"
            self.acknowledged[event.turn.turn_id] = event.turn.text

    @rule(crash=st.integers(0, 30), failing=st.lists(st.booleans(), max_size=6))
    def a_driver_dies(self, crash: int, failing: list[bool]) -> None:
        self.journal.fails_after, self.failing = crash, failing
        with contextlib.suppress(StorageUnavailable):
            asyncio.run(self._drive(shown=999))
        self.journal.fails_after, self.failing = None, []

    @rule(shown=st.integers(0, 20), failing=st.lists(st.booleans(), max_size=6))
    def a_driver_is_cancelled(self, shown: int, failing: list[bool]) -> None:
        self.failing = failing
        asyncio.run(self._drive(shown=shown))
        self.failing = []

    @rule(at=st.integers(0, 8), aborts=st.booleans(), failing=st.lists(st.booleans(), max_size=3))
    def a_driver_is_cut_in_the_midst_of_a_call(
        self, *, at: int, aborts: bool, failing: list[bool]
    ) -> None:
        async def cut() -> None:
            abort = asyncio.Event()
            driving = asyncio.ensure_future(self._drive(shown=999, abort=abort))
            self.cut = abort.set if aborts else driving.cancel
            with contextlib.suppress(asyncio.CancelledError):
                await driving

        self.cut_at, self.failing = at, failing
        asyncio.run(cut())
        self.cut_at, self.cut, self.failing = None, None, []

    @rule()
    def the_limit_is_raised(self) -> None:
        self.max_turns = min(self.max_turns + 1, 8)

    @rule()
    def a_driver_comes_to_the_end(self) -> None:
        asyncio.run(self._drive(shown=999))
        record = self._record()
        assert record.halt is not None
        assert record.index >= min(self.max_turns, record.halt.turns or 0)
        texts = [turn.text for turn in record.turns]
        assert texts == [self._text(index) for index in range(len(texts))]
        within = sum(self._record(scope).spent for _, scope in self.journal.kept if scope)
        assert record.spent == self._paid_to("a") + within

    def _paid_to(self, speaker: str) -> int:
        """What its attempts have cost, as far as it is recorded."""
        events = self.journal.events(RUN)
        ended = [event.turn for event in events if isinstance(event, carnet.TurnEnded)]
        discarded = [event for event in events if isinstance(event, carnet.TurnDiscarded)]
        attempts: list[Any] = [*ended, *discarded]
        return sum(each.cost or 0 for each in attempts if each.speaker == speaker)

    def _text(self, index: int) -> str:
        """What is spoken in a turn, whatever happened before."""
        within = "[x] x after 1\n[y] y after 2", "x after 1 y after 2"
        return f"a after {index + 1}" if index % 3 == 0 else within[index % 3 - 1]

    def _record(self, scope: str = "") -> DialogueRecord:
        return DialogueRecord.of(self.journal.events(RUN, scope))

    @invariant()
    def what_was_acknowledged_is_recorded_as_it_was(self) -> None:
        kept = {turn.turn_id: turn.text for turn in self._record().turns}
        assert kept.items() >= self.acknowledged.items()

    @invariant()
    def every_turn_is_recorded_once_and_in_order(self) -> None:
        for _, scope in self.journal.kept:
            turns = self._record(scope).turns
            assert [turn.index for turn in turns] == list(range(len(turns)))

    @invariant()
    def what_was_spent_is_what_its_turns_and_attempts_cost(self) -> None:
        """Of the calls that were made it is all but those that died with their driver."""
        scopes = [scope for _, scope in self.journal.kept]
        lost = sum(self.calls.values()) * COST
        for scope in scopes:
            events = self.journal.events(RUN, scope)
            attempts = [e for e in events if isinstance(e, carnet.TurnStarted | carnet.TurnRetried)]
            ids = [event.attempt_id for event in attempts]
            assert len(set(ids)) == len(ids)
            assert self._record(scope).spent <= lost


def test_whatever_happens_to_its_drivers_a_run_comes_to_the_same_end() -> None:
    bounds = settings(max_examples=25, stateful_step_count=10, deadline=None)
    run_state_machine_as_test(DrivenRun, settings=bounds)
