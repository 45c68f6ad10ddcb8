"""A turn that is known already, read again: from its record, or while it runs elsewhere.

Law 1. Who sends a call again is shown what the first was shown, from its first event.
Law 2. A turn of ours that was claimed and never began is ended as unknown after a while.
Law 3. A record is read a piece at a time, as its reader takes it.
Law 4. Of a record that is damaged nothing is served.
Law 5. Who did not begin a turn reads it as long as what let that one in holds, and no longer than
       its own deadline: then it is told to come again, and the turn goes on for whoever began it.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from functools import partial

from carnet.core.call import Call
from carnet.core.chain.turn import Turn
from carnet.core.messages.events import (
    Event,
    Extension,
    Failed,
    Usage,
    Waiting,
    is_terminal,
    read_in_pieces,
)
from carnet.core.people.proof import SECOND_US
from carnet.errors import Cancelled, InProgress, Internal, OutcomeUnknown
from carnet.ports.calls.admission import HasEnded
from carnet.ports.calls.turns import Turns
from carnet.ports.world.clock import Clock, Ids
from carnet.ports.world.cluster import Cluster
from carnet.ports.world.records import READER
from carnet.runtime.stream import closing
from carnet.runtime.turns.execution import Execution, log_fields, still_asked, usage_of
from carnet.runtime.turns.follower import Follower
from carnet.runtime.turns.unfinished import end_as_unknown

logger = logging.getLogger("carnet.runtime")

POLL_SECONDS = 0.1  # how often a turn is looked at that runs elsewhere or has not begun yet
FOLLOWER_SECONDS = 0.005  # and for each that runs elsewhere: many of them are looked at less often
LOOK_SECONDS = 1.0  # how often it is asked whether a reader may read on
TELL_SECONDS = 0.1  # before the end of its time a reader is told, so that it hears of it in time
ORPHAN_SECONDS = 2.0  # how long a claimed turn of ours may wait for its execution to begin


class Replay:
    """Reads turns that are known."""

    def __init__(
        self,
        *,
        turns: Turns,
        clock: Clock,
        ids: Ids,
        currency: str,
        worker: str,
        cluster: Cluster | None,
        here: Callable[[Turn], Execution | None],
    ) -> None:
        """`here` finds the execution of a turn that runs in this process."""
        self._turns = turns
        self._clock = clock
        self._ids = ids
        self._currency = currency
        self._worker = worker
        self._cluster = cluster
        self._here = here
        self._followers: dict[tuple[int, int], Follower] = {}  # by turn and fence

    async def read(
        self, call: Call, heartbeat: float | None
    ) -> AsyncGenerator[Sequence[Event], None]:
        """The committed groups of events of a turn that is known."""
        READER.set(call.caller.actor.name)
        record, waited = call.record, 0.0
        while record.state in {"running", "queued"}:
            running = self._here(record)
            if running is not None or record.worker != self._worker:
                # Begun since it was claimed, or running elsewhere.
                broadcast = (running or self._follower(call, record)).broadcast
                async with closing(broadcast.read(heartbeat)) as batches:
                    async for batch in batches:
                        yield batch
                return
            if waited >= ORPHAN_SECONDS:
                await end_as_unknown(self._turns, call, record, self._clock.wall_us())
            await asyncio.sleep(POLL_SECONDS)
            waited += POLL_SECONDS
            record = await self._turns.reload(record)
        since = 0
        noted: list[Event] = []  # beside what was said
        while events := await self._recorded(call, record, since, is_piece=True):
            since += len(events)
            noted += [event for event in events if type(event) is Extension]
            if is_terminal(events[-1]):
                yield (*events[:-1], usage_of(call, record, noted, self._currency), events[-1])
                return
            yield events
        # The process that ran it died; the caller may send it again.
        yield (Usage(), Failed.of(OutcomeUnknown()))

    def _follower(self, call: Call, record: Turn) -> Follower:
        """What shows a turn of another process here, to all who read it."""
        key = (record.n, record.fence)
        follower = self._followers.get(key)
        if follower is None or follower.is_over:
            follower = self._followers[key] = Follower(
                record,
                turns=self._turns,
                cluster=self._cluster,
                events=partial(self._recorded, call),
                usage=partial(usage_of, call, currency=self._currency),
                pause=lambda: max(POLL_SECONDS, FOLLOWER_SECONDS * len(self._followers)),
                on_end=self._forget,
            )
        return follower

    def _forget(self, follower: Follower) -> None:
        self._followers = {
            key: kept for key, kept in self._followers.items() if kept is not follower
        }

    async def size(self, record: Turn) -> int:
        """How many bytes were recorded of a turn."""
        return await self._turns.size(record)

    async def _recorded(
        self, call: Call, record: Turn, since: int, *, is_piece: bool = False
    ) -> list[Event]:
        try:
            batches = await self._turns.events(record, since, is_piece=is_piece)
        except Internal as damaged:  # the row is named in the log; nothing of it is served
            internal = Internal(damaged.detail, incident=self._ids.uuid())
            fields = {**log_fields(call, internal.code, damaged.detail), **internal.facts}
            logger.error("a record is damaged", extra=fields)  # noqa: TRY400  no fault of ours
            raise internal from None
        events: list[Event] = []
        for data in batches:
            for piece in read_in_pieces(data):
                events += piece
                await asyncio.sleep(0)  # others' turn
        if record.state == "waiting" and events and isinstance(events[-1], Waiting):
            events[-1] = await still_asked(self._turns, record, events[-1])
        return events


async def allowed(
    call: Call,
    batches: AsyncGenerator[Sequence[Event], None],
    *,
    has_ended: HasEnded,
    clock: Clock,
) -> AsyncGenerator[Sequence[Event], None]:
    """What a turn says to one who did not begin it, for as long as that one may read and waits."""
    deadline, refusal = call.carnet.deadline, Failed.of(Cancelled())
    async with closing(batches):
        following = asyncio.ensure_future(anext(batches, None))
        try:
            while not has_ended(call):
                pause = LOOK_SECONDS
                if deadline is not None:
                    left = deadline - TELL_SECONDS - clock.steady_us() / SECOND_US
                    pause = max(0.0, min(pause, left))
                await asyncio.wait([following], timeout=pause)
                if following.done():
                    batch = following.result()
                    if batch is None:
                        return
                    yield batch
                    following = asyncio.ensure_future(anext(batches, None))
                elif not pause:  # security:a44:deadline
                    refusal = Failed.of(InProgress(retry_after=1))
                    break
        finally:
            following.cancel()
            await asyncio.wait([following])
    yield (Usage(), refusal)
