"""What ends a dialogue: told by one clock."""

import asyncio
import time

import pytest

from carnet.errors import AgentFailed
from carnet.runtime.dialogue.callees import Callees
from carnet.runtime.dialogue.parts import DialogueParts
from carnet.runtime.dialogue.stop import DialogueStop, Stopped
from carnet.runtime.threads import Threads
from carnet.testing.clock import FakeClock, FakeIds


def parts_of(
    clock: FakeClock, threads: Threads | None = None, abort: asyncio.Event | None = None
) -> DialogueParts:
    ids = FakeIds()
    callees = Callees(clock=clock, ids=ids, currency="credits")
    return DialogueParts(clock=clock, ids=ids, callees=callees, threads=threads, abort=abort)


async def test_a_timer_that_rings_early_ends_nothing_and_a_late_one_is_not_waited_for() -> None:
    clock = FakeClock()
    parts = parts_of(clock)
    early = DialogueStop(parts, parts.steady() + 0.001)
    late = DialogueStop(parts, parts.steady() + 3600)
    await early.sleep(0.02)  # by then its timer has rung
    assert (early.look(), late.look()) == (None, None)
    clock.advance(3600)
    assert (early.look(), late.look()) == ("deadline", "deadline")
    early.close()
    late.close()


async def test_a_plain_function_that_blocks_is_left_in_its_thread() -> None:
    clock, done = FakeClock(), False

    def blocks(_: object) -> None:
        while not done:
            time.sleep(0.001)

    stop = DialogueStop(parts_of(clock, Threads(), abort := asyncio.Event()), None)
    asking = asyncio.ensure_future(stop.ask(blocks, None))
    await asyncio.sleep(0)  # the loop is not held
    abort.set()
    with pytest.raises(Stopped):
        await asking
    done = True
    stop.close()


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
async def test_a_function_does_not_end_the_gateway(error: type[BaseException]) -> None:
    def ends(_: object) -> None:
        raise error

    stop = DialogueStop(parts_of(FakeClock(), Threads()), None)
    with pytest.raises(AgentFailed):
        await stop.ask(ends, None)
    stop.close()
