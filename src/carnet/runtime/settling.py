"""Ending a turn whose end could not be recorded.

Law. It is ended as unknown, without events and without a price: a repeat runs again under the same
id. What it held of its payer's purse is released with it.
"""

import asyncio
from collections.abc import Callable

from carnet.core.call import Call
from carnet.core.turn import Turn
from carnet.errors import CarnetError
from carnet.ports.clock import Clock
from carnet.ports.turns import Fenced, Turns, end_unknown

WAITS_SECONDS = (0.0, 0.2, 0.5, 1.0, 2.0)  # the last one again and again


async def settle(turns: Turns, call: Call, clock: Clock, *, is_over: Callable[[], bool]) -> None:
    """End the turn as soon as the store can be written, or until it is over: a restart does too."""
    attempt = 0
    while not is_over():
        await asyncio.sleep(WAITS_SECONDS[min(attempt, len(WAITS_SECONDS) - 1)])
        attempt += 1
        try:
            await end_as_unknown(turns, call, call.record, clock.wall_us())
        except CarnetError:
            continue
        return


async def end_as_unknown(turns: Turns, call: Call, record: Turn, now: int) -> None:
    """End a turn that nobody knows the end of; one that another worker has is left to it."""
    finish = end_unknown(record, call.payer, now=now, reserve=call.reserve)
    try:
        await turns.finish(finish)
    except Fenced:
        return
