"""Ending a turn whose end could not be recorded, and whether one that failed may run again.

Law 1. It is ended as unknown, without events and without a price: a repeat runs again under the
       same id. What it held of its payer's quota is released with it.
Law 2. What waits below a turn that has ended is ended too: nobody could use its answer.
Law 3. A task is not ended: it waits again, and is run again one attempt later.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable
from typing import Protocol

from carnet.core.call import Call
from carnet.core.chain.turn import Turn
from carnet.core.messages.events import Failed
from carnet.errors import (
    CarnetError,
    ChainFinal,
    DefinitionChanged,
    DepthExceeded,
    IdempotencyMismatch,
    PeerRefused,
    Refused,
)
from carnet.ports.calls.tasks import Tasks
from carnet.ports.calls.turns import Fenced, Turns, end_unknown
from carnet.ports.world.clock import Clock

logger = logging.getLogger("carnet.runtime")


class EndsWaiting(Protocol):
    """Ends turns that wait for an answer which is not wanted any more."""

    async def end_below(self, turn: Turn) -> None:
        """End what waits that was called in a turn that has ended, in process."""

    async def cancel(self, turns: Iterable[int], now: int) -> int:
        """End those of these turns that wait, and what waits below them; how many waited."""


WAITS_SECONDS = (0.0, 0.2, 0.5, 1.0, 2.0)  # the last one again and again


async def settle(
    turns: Turns,
    call: Call,
    clock: Clock,
    *,
    is_over: Callable[[], bool],
    tasks: Tasks | None = None,
) -> None:
    """End the turn as soon as the store can be written, or until it is over: a restart does too.

    It is tried once in any case: a gateway that stops lets its tasks go in this way.
    """
    attempt = 0
    while not attempt or not is_over():
        await asyncio.sleep(WAITS_SECONDS[min(attempt, len(WAITS_SECONDS) - 1)])
        attempt += 1
        try:
            if call.is_queued and tasks is not None:
                # Where it is not ours any more, another worker has it.
                await tasks.release(call.record, clock.wall_us(), lost=not is_over())
            else:
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


async def end_waiting(
    tasks: Tasks, turns: Collection[int], now: int, ends: EndsWaiting | None
) -> int:
    """Ask for the end of those of these turns that wait, as tasks or for answers; how many do."""
    count = 0 if ends is None else await ends.cancel(turns, now)
    for n in turns:
        found = await tasks.of_turn(n)
        if found is not None and found.state == "pending":
            count += await tasks.cancel(found.id, now)
    return count


async def end_below(ends: EndsWaiting | None, call: Call) -> None:
    """End what waits that was called in a turn that has ended."""
    if ends is None:
        return
    try:
        await ends.end_below(call.record)
    except CarnetError:  # then it waits until its own time is over
        carnet = call.carnet
        logger.exception(
            "what waits below a turn is not ended", extra={"run": carnet.run, "turn": carnet.turn}
        )


def may_run_again(end: Failed, *, has_spoken: bool) -> bool:
    """Whether a repeat of a turn that failed so runs again.

    A refusal met before anything was said is not an answer: credit may be granted, a peer added.
    Only what is settled by the call itself stays.
    """
    if end.retryable:
        return True
    error = end.error()
    settled = (DepthExceeded, ChainFinal, IdempotencyMismatch, DefinitionChanged)
    is_refusal = isinstance(error, Refused | PeerRefused) and not isinstance(error, settled)
    return is_refusal and not has_spoken
