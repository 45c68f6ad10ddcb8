"""A turn that runs in one process and is read in another: two journals over the same turns."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import aclosing

import pytest
from msgspec.structs import replace

from carnet.core.chain.turn import Turn
from carnet.core.messages.events import Done, Event, Failed, Text, joined_text
from carnet.errors import OutcomeUnknown, StorageUnavailable
from carnet.runtime.turns.runner import TurnRunner
from carnet.runtime.visit.visit import Visit
from carnet.testing.clock import FakeClock, FakeIds
from carnet.testing.wait import until_so
from tests.guards.scene import target
from tests.runtime.stage import Stage, in_run, native, streamed


class Requests:
    """Neighbours in memory: what each wants of the other's turns."""

    def __init__(self) -> None:
        self.readers: list[int] = []
        self.asked: list[int] = []
        self.is_down = False

    async def attend(self, turn: Turn) -> None:
        self.readers.append(turn.n)

    async def leave(self, turn: Turn) -> None:
        self.readers.remove(turn.n)

    async def are_reading(self, turn: Turn) -> bool:
        if self.is_down:
            raise StorageUnavailable
        return turn.n in self.readers

    async def cancel(self, turns: Collection[int], *, seconds: float) -> int:
        assert seconds > 0
        self.asked += turns
        return len(turns)


class Two(Stage):
    """The journal that runs a turn, and `there`, which only reads it."""

    def __init__(self, cluster: Requests | None = None) -> None:
        self.go = asyncio.Event()
        self.left = asyncio.Event()
        agents = [target("held", agent=native(self._held))]
        super().__init__(*agents)
        self.cluster = cluster or Requests()
        self.journal, self.there = [
            TurnRunner(
                turns=self.turns,
                clock=FakeClock(),
                ids=FakeIds(),
                currency="credits",
                worker=worker,
                cluster=self.cluster,
            )
            for worker in ("here", "there")
        ]

    async def _held(self, visit: Visit) -> AsyncIterator[str]:
        try:
            yield "first "
            await self.go.wait()
            yield visit.text
        finally:
            self.left.set()

    async def begin(self) -> tuple["asyncio.Task[list[Event]]", list[Event]]:
        """Start the turn; what is received of it here and, as it comes, there."""
        here = asyncio.create_task(self.listen(self.journal))
        await until_so(lambda: bool(self.turns.batches.get(1)))
        received: list[Event] = []
        self.reading = asyncio.create_task(self.listen(self.there, received))
        await until_so(lambda: Text("first ") in received)
        return here, received

    async def listen(self, journal: TurnRunner, received: list[Event] | None = None) -> list[Event]:
        call = await self.gate.admit(replace(streamed("held"), marks=in_run()))
        received = [] if received is None else received
        async with aclosing(journal.batches(call)) as batches:
            async for batch in batches:
                received += batch
        return received


async def test_a_reader_elsewhere_gets_events_while_they_are_written() -> None:
    stage = Two()
    here, received = await stage.begin()
    assert (stage.turns.turns[1].state, stage.cluster.readers) == ("running", [1])
    again = asyncio.create_task(stage.listen(stage.there))
    await asyncio.sleep(0)
    stage.go.set()
    assert await here == await stage.reading == await again == received
    assert joined_text(received) == "first hi"
    assert [event for event in received if isinstance(event, Done | Failed)] == [Done()]
    assert (len(stage.turns.debits), stage.cluster.readers) == (1, [])


async def test_a_turn_goes_on_until_its_last_reader_elsewhere_has_left() -> None:
    stage = Two()
    here, _ = await stage.begin()
    here.cancel()
    await asyncio.wait([here], timeout=0.6)
    assert not stage.left.is_set()
    stage.reading.cancel()
    await until_so(stage.left.is_set)
    await until_so(lambda: stage.turns.turns[1].code == "cancelled")
    assert stage.cluster.readers == []


async def test_a_turn_without_a_reader_here_ends_if_nobody_can_tell_of_others() -> None:
    stage = Two()
    here, _ = await stage.begin()
    stage.cluster.is_down = True
    here.cancel()
    await until_so(stage.left.is_set)
    assert (await stage.reading)[-1].code == "cancelled"  # type: ignore[union-attr]


async def test_an_attempt_that_was_replaced_is_unknown_to_its_readers_elsewhere() -> None:
    stage = Two()
    here, _ = await stage.begin()
    stage.turns.turns[1] = replace(stage.turns.turns[1], fence=9)
    assert (await stage.reading)[-1] == Failed.of(OutcomeUnknown())
    stage.go.set()
    assert (await here)[-1] == Failed.of(OutcomeUnknown())


async def test_a_store_that_cannot_be_read_is_told_to_readers_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Two()
    here, _ = await stage.begin()

    async def down(_: Turn) -> Turn:
        raise StorageUnavailable

    monkeypatch.setattr(stage.turns, "reload", down)
    assert (await stage.reading)[-1] == Failed.of(StorageUnavailable())
    stage.go.set()
    assert (await here)[-1] == Done()


async def test_what_does_not_run_here_is_cancelled_elsewhere() -> None:
    stage = Two()
    here, _ = await stage.begin()
    assert await stage.there.cancel({1, 2}) == 2
    assert sorted(stage.cluster.asked) == [1, 2]
    stage.journal.stop({1, 2})
    assert (await here)[-1].code == "cancelled"  # type: ignore[union-attr]
    assert (await stage.reading)[-1].code == "cancelled"  # type: ignore[union-attr]


class Slow(Requests):
    """The wish is there before its answer is."""

    def __init__(self) -> None:
        super().__init__()
        self.requested = asyncio.Event()

    async def attend(self, turn: Turn) -> None:
        await super().attend(turn)
        self.requested.set()
        await asyncio.sleep(60)


async def test_a_reader_that_leaves_while_its_wish_is_on_its_way_takes_it_back() -> None:
    slow = Slow()
    stage = Two(slow)
    here = asyncio.create_task(stage.listen(stage.journal))
    await until_so(lambda: bool(stage.turns.batches.get(1)))
    reading = asyncio.create_task(stage.listen(stage.there))
    await asyncio.wait_for(slow.requested.wait(), 30)
    reading.cancel()
    await until_so(lambda: not slow.readers)
    stage.go.set()
    await here
