"""Any order of calls, repeats, departures, failures, drains and crashes keeps I1-I5 and I7.

`pytest --hypothesis-profile=explore tests/faults/invariants/test_invariants.py` searches further.
"""

import asyncio
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Coroutine
from contextlib import aclosing
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from msgspec.structs import replace

from carnet.core.call import Claim
from carnet.core.chain.carnet import DepthLimits, Mark
from carnet.core.messages.events import Done, Event, Failed, Text, joined_text
from carnet.errors import CarnetError, DepthExceeded, IdempotencyMismatch
from carnet.runtime.visit.dispatch import Dispatching
from carnet.runtime.visit.visit import Visit
from carnet.testing.wait import until_so
from tests.faults.invariants.worlds import DiskWorld, MemoryWorld, World
from tests.guards.scene import claim, target
from tests.runtime.stage import gate_and_journal, native

T = TypeVar("T")
Key = tuple[str, str, str]  # agent, run, token

LAST_DEPTH = 3
PRICES = {"echo": 7, "speak": 11, "family": 13, "deep": 3, "flaky": 17, "half": 19, "held": 23}
ENDING = sorted(PRICES.keys() - {"held"})
SLOW = ["held", "held", "family", "deep", "half", "speak"]  # worth a crash in their midst

runs = st.sampled_from(["conv_a", "conv_b"])
agents = st.sampled_from(ENDING)
tokens = st.sampled_from(["ck_roaming", "ck_alice"])  # without a limit, and with one
moments = st.integers(0, 12)
any_number = st.integers(0, 1000)


class Life:
    """A gateway between two crashes: agents, gate and journal over a world."""

    def __init__(self, world: World, ran: "Counter[int]") -> None:
        self.world = world
        self.alive = True
        self._ran = ran
        dispatching = Dispatching()
        functions = {name: getattr(self, f"_{name}") for name in PRICES}
        targets = [
            target(name, price=PRICES[name], agent=native(function, dispatching))
            for name, function in functions.items()
        ]
        self.gate, self.journal = gate_and_journal(
            world.turns, *targets, depths=DepthLimits(default=LAST_DEPTH), most=10**6
        )
        dispatching.connect(self.gate, self.journal)

    async def read(self, asked: Claim) -> list[Event]:
        """Admit and read to the end; a refusal raises."""
        return [
            event
            async for batch in self.journal.batches(await self.gate.admit(asked))
            for event in batch
        ]

    def _note(self, visit: Visit) -> bool:
        """Count an execution; whether it is one of an odd attempt."""
        record = visit.call.record
        if self.alive:
            self._ran[record.n] += 1
        return record.attempt % 2 == 1

    async def _echo(self, visit: Visit) -> str:
        self._note(visit)
        return visit.text

    async def _speak(self, visit: Visit) -> AsyncIterator[str]:
        self._note(visit)
        for word in visit.text.split():
            yield word
            await asyncio.sleep(0)

    async def _family(self, visit: Visit) -> str:
        self._note(visit)
        first = await visit.peer("echo").ask(visit.text)
        return first + await visit.peer("speak").ask(visit.text)

    async def _deep(self, visit: Visit) -> str:
        self._note(visit)
        try:
            return "> " + await visit.peer("deep").ask(visit.text)
        except DepthExceeded:
            return "bottom"

    async def _flaky(self, visit: Visit) -> str:
        if self._note(visit):
            raise RuntimeError("an odd attempt")
        return visit.text

    async def _half(self, visit: Visit) -> AsyncIterator[str]:
        odd = self._note(visit)
        yield await visit.peer("echo").ask(visit.text)
        if odd:
            raise RuntimeError("an odd attempt")

    async def _held(self, visit: Visit) -> AsyncIterator[str]:
        self._note(visit)
        yield "first"
        await asyncio.get_running_loop().create_future()


def asked(agent: str, run: str, token: str, *, text: str = "a b c", stream: bool = False) -> Claim:
    mark = Mark(stamp="tangle", depth=1, last_depth=LAST_DEPTH, run=run, turn=f"{run}.t0.{agent}")
    plain = claim(agent, token=token, text=text, digest=text.encode(), marks=(mark,))
    return replace(plain, ask=replace(plain.ask, stream=stream))


class Calls(RuleBasedStateMachine):
    """What callers and fate may do, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self._loop = asyncio.new_event_loop()
        self._ran: Counter[int] = Counter()
        self._done: dict[int, tuple[int, int | None]] = {}  # executions and cost when first seen
        self._acknowledged: dict[Key, str] = {}  # what was acknowledged
        world = self.make_world()
        self._do(world.open())
        self._life = Life(world, self._ran)

    def make_world(self) -> World:
        return MemoryWorld()

    def _do(self, act: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(asyncio.wait_for(act, 20))

    def _receive(self, key: Key, events: list[Event]) -> None:
        """I7: one end, and it is the last. I1: what was acknowledged is told again unchanged."""
        ends = [event for event in events if isinstance(event, Done | Failed)]
        assert ends == events[-1:]
        if isinstance(events[-1], Done):
            text = joined_text(events)
            assert self._acknowledged.setdefault(key, text) == text
        else:
            assert key not in self._acknowledged

    async def _ask(self, key: Key, *, stream: bool = False) -> None:
        before = self._life.world.records()
        try:
            events = await self._life.read(asked(*key, stream=stream))
        except CarnetError:
            assert self._life.world.records() == before  # a refusal leaves no trace
            assert key not in self._acknowledged
            return
        self._receive(key, events)

    @rule(agent=agents, run=runs, token=tokens, stream=st.booleans())
    def call(self, agent: str, run: str, token: str, *, stream: bool) -> None:
        self._do(self._ask((agent, run, token), stream=stream))

    @rule(agent=agents, run=runs, token=tokens)
    def call_many_times_at_once(self, agent: str, run: str, token: str) -> None:
        async def call_at_once() -> None:
            given = [self._life.read(asked(agent, run, token)) for _ in range(3)]
            received = await asyncio.gather(*given, return_exceptions=True)
            for events in received:
                if isinstance(events, list):
                    self._receive((agent, run, token), events)
                else:
                    assert isinstance(events, CarnetError), events

        self._do(call_at_once())

    def _acknowledged_before(self, number: int) -> Key | None:
        # Not a precondition: what was told depends on threads, and the search must not.
        known = sorted(self._acknowledged)
        return known[number % len(known)] if known else None

    @rule(number=any_number, stream=st.booleans())
    def repeat(self, number: int, *, stream: bool) -> None:
        if (key := self._acknowledged_before(number)) is not None:
            self._do(self._ask(key, stream=stream))

    @rule(number=any_number)
    def repeat_with_another_body(self, number: int) -> None:
        if (key := self._acknowledged_before(number)) is None:
            return
        before = self._life.world.records(), self._life.world.billed()
        with pytest.raises(IdempotencyMismatch):
            self._do(self._life.read(asked(*key, text="else")))
        assert (self._life.world.records(), self._life.world.billed()) == before

    @rule(
        agent=st.sampled_from([*ENDING, "held"]), run=runs, token=tokens, received=st.integers(0, 2)
    )
    def leave_midway(self, agent: str, run: str, token: str, received: int) -> None:
        async def leave() -> None:
            try:
                call = await self._life.gate.admit(asked(agent, run, token, stream=True))
            except CarnetError:
                return
            async with aclosing(self._life.journal.batches(call)) as batches:
                texts = 0
                async for batch in batches:
                    texts += sum(type(event) is Text for event in batch)
                    if texts >= received or agent == "held":
                        break
            await until_so(lambda: self._life.journal.running == 0)

        self._do(leave())

    @rule(agent=st.sampled_from(SLOW), run=runs, token=tokens, moment=moments)
    def crash_during(self, agent: str, run: str, token: str, moment: int) -> None:
        """Crash some moments after a turn has begun, or has been answered without beginning."""
        key = (agent, run, token)

        async def crash() -> None:
            reading = asyncio.ensure_future(self._life.read(asked(*key, stream=True)))
            await until_so(lambda: self._life.journal.running > 0 or reading.done())
            for _ in range(moment):
                await asyncio.sleep(0 if moment % 2 else 0.0002)
            if reading.done() and not reading.exception():
                self._receive(key, reading.result())
            await self._crash(reading)

        self._do(crash())

    @rule()
    def crash(self) -> None:
        self._do(self._crash())

    async def _crash(self, reading: "asyncio.Task[list[Event]] | None" = None) -> None:
        old, image = self._life, self._life.world.image()
        old.alive = False
        if reading is not None:
            reading.cancel()
            await asyncio.wait([reading])
        await old.journal.drain(0)
        await old.world.close()
        await image.open()
        self._life = Life(image, self._ran)

    @rule(run=runs, token=tokens)
    def drain(self, run: str, token: str) -> None:
        async def drain() -> None:
            reading = asyncio.ensure_future(self._life.read(asked("held", run, token)))
            await until_so(lambda: self._life.journal.running > 0 or reading.done())
            await self._life.journal.drain(0)
            (received,) = await asyncio.gather(reading, return_exceptions=True)
            if isinstance(received, list):
                assert isinstance(received[-1], Failed)
                assert received[-1].code in {"shutting_down", "cancelled"}
            await self._crash()

        self._do(drain())

    @invariant()
    def i1_i2_what_is_done_stays_as_it_is_and_never_runs_again(self) -> None:
        for turn in self._life.world.records():
            ran = self._ran[turn.n]
            assert ran <= turn.attempt
            assert turn.state != "running"  # nothing is going on between the rules
            if turn.n in self._done:
                assert turn.state == "done"
            if turn.state == "done":
                assert self._done.setdefault(turn.n, (ran, turn.cost)) == (ran, turn.cost)

    @invariant()
    def i3_what_is_billed_is_what_was_done(self) -> None:
        world = self._life.world
        done = [turn for turn in world.records() if turn.state == "done"]
        assert world.billed() == sum(PRICES[turn.agent] for turn in done)
        assert world.held() == 0

    @invariant()
    def i4_i5_depth_grows_along_every_edge_and_the_run_stays(self) -> None:
        records = self._life.world.records()
        by_turn: dict[tuple[str, str], set[int]] = {}
        for turn in records:
            by_turn.setdefault((turn.run, turn.turn), set()).add(turn.depth)
            assert 1 <= turn.depth <= LAST_DEPTH
        for turn in records:
            if turn.parent_turn is not None:
                assert by_turn[turn.run, turn.parent_turn] == {turn.depth - 1}

    def teardown(self) -> None:
        """Everything that was acknowledged is still told the same; then let go."""
        try:
            for key in self._acknowledged:
                self._do(self._ask(key))
        finally:
            self._do(self._life.journal.drain(0))
            self._do(self._life.world.close())
            self._loop.close()


class CallsOnDisk(Calls):
    """The same over SQLite."""

    def make_world(self) -> World:
        self._folder = tempfile.TemporaryDirectory()
        return DiskWorld(Path(self._folder.name))

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            self._folder.cleanup()


# 25 for the usual profile; as many times more as another profile asks for.
SEARCH = settings(max_examples=settings().max_examples // 4, stateful_step_count=20)
TestCalls = Calls.TestCase
TestCalls.settings = SEARCH
TestCallsOnDisk = CallsOnDisk.TestCase
TestCallsOnDisk.settings = settings(SEARCH, max_examples=SEARCH.max_examples // 2)  # each is synced
