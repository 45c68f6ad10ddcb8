"""How a stream that is held looks at its question, and what it shows meanwhile."""

from collections.abc import Sequence
from contextlib import aclosing
from types import SimpleNamespace
from typing import Any, Self, cast

from carnet.core.call import Call
from carnet.core.messages.events import Event, Interrupted, Usage, Waiting
from carnet.core.messages.interrupt import Interrupt, InterruptRecord
from carnet.gateway.conversations.hold import LOOK_SECONDS, HeldJournal
from carnet.guards.readers import READER_BYTES, Readers

ASKED = Interrupt(kind="approval", id="int_1", message="May I?")
RECORD = SimpleNamespace(run="run-1", state="waiting")
CALLER = SimpleNamespace(actor=SimpleNamespace(name="token:alice"))
ASKING = SimpleNamespace(record=RECORD, known=True, caller=CALLER)


class World:
    """A store with one open question, and a clock that goes on while it is watched."""

    def __init__(self, size: int = 0) -> None:
        self.now = 0.0
        self.looks = 0
        self.bytes = size
        self.readers = Readers()
        self.room: list[int] = []  # that its readers hold, at each look

    def monotonic(self) -> float:
        return self.now

    async def interrupts(self, _: object) -> Sequence[InterruptRecord]:
        self.looks += 1
        self.room.append(self.readers.total)
        return [InterruptRecord(interrupt=ASKED, status="open", expires=0)]

    async def size(self, _: object) -> int:
        return self.bytes

    async def batches(self, *_: object) -> Any:
        yield (Usage(), Waiting((ASKED,)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    async def changed(self, seconds: float) -> bool:
        self.now += seconds
        return False


async def shown(world: World) -> list[Sequence[Event]]:
    parts = cast("Any", world)
    held = HeldJournal(
        *(parts, parts, lambda _: parts, parts),
        readers=world.readers,
        seconds=40.0,
        has_ended=lambda _: False,
        is_stopping=lambda: False,
    )
    room = world.readers.room(CALLER.actor.name, READER_BYTES)  # whoever tells a record holds it
    async with room, aclosing(held.batches(cast("Call", ASKING), 15.0)) as batches:
        return [batch async for batch in batches]


async def test_a_held_stream_is_not_silent_and_looks_once_a_second() -> None:
    world = World()
    question = (Usage(), Interrupted(ASKED))
    assert await shown(world) == [question, (), (), (Waiting((ASKED,)),)]
    assert world.now == 40.0
    assert world.looks <= 40.0 / LOOK_SECONDS + 1


async def test_a_stream_that_has_shown_much_is_not_held() -> None:
    world = World(2 * 1024 * 1024)
    assert await shown(world) == [(Usage(), Waiting((ASKED,)))]
    assert world.looks == 0


async def test_a_held_stream_gives_back_the_room_in_which_its_record_was_read() -> None:
    world = World()
    await shown(world)
    assert set(world.room) == {0}
    assert world.readers.total == 0
