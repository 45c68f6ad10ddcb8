"""A turn that runs in another process, shown here while it goes on.

Law 1. Its readers see what they would see where it runs: the events from the first as they are
       committed, then the same end. One look at the store serves them all.
Law 2. While somebody reads it here, the process that runs it knows.
Law 3. An attempt that another has replaced ends here as unknown: what its readers were shown is no
       longer part of the answer.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence

from carnet.core.chain.turn import Turn
from carnet.core.messages.events import Event, Failed, Usage, is_terminal
from carnet.errors import CarnetError, OutcomeUnknown
from carnet.ports.calls.turns import Turns
from carnet.ports.world.cluster import Cluster
from carnet.runtime.turns.broadcast import Broadcast

ReadEvents = Callable[[Turn, int], Awaitable[list[Event]]]
ReadUsage = Callable[[Turn, Sequence[Event]], Usage]

_UNKNOWN: Sequence[Event] = (Usage(), Failed.of(OutcomeUnknown()))


class Follower:
    """Follows one attempt of one turn."""

    def __init__(
        self,
        record: Turn,
        *,
        turns: Turns,
        cluster: Cluster | None,
        events: ReadEvents,
        usage: ReadUsage,
        pause: Callable[[], float],
        on_end: Callable[["Follower"], None],
    ) -> None:
        """`events` and `usage` read the record, `pause` gives the seconds between two looks.

        `on_end` is told when it is over.
        """
        self._record = record
        self._turns = turns
        self._cluster = cluster
        self._events = events
        self._usage = usage
        self._pause = pause
        self._on_end = on_end
        self._stopped = False
        self.broadcast = Broadcast(self._stop)
        self._task = asyncio.get_running_loop().create_task(self._follow())

    @property
    def is_over(self) -> bool:
        """Whether nobody may begin to read it any more."""
        return self._stopped or self.broadcast.ended

    def _stop(self) -> None:
        self._stopped = True
        self._task.cancel()

    async def _follow(self) -> None:
        end = _UNKNOWN
        try:
            if self._cluster is None:
                end = await self._show()
            else:
                end = await self._attend(self._cluster)
        except CarnetError as error:
            end = (Usage(), Failed.of(error))
        finally:  # whatever it was, nobody may wait for ever
            self.broadcast.publish(end, last=True)
            self._on_end(self)

    async def _attend(self, cluster: Cluster) -> Sequence[Event]:
        try:
            await cluster.attend(self._record)
            return await self._show()
        finally:
            with contextlib.suppress(CarnetError):
                await cluster.leave(self._record)

    async def _show(self) -> Sequence[Event]:
        """Show events as they come; the batch that holds the end."""
        record, shown = self._record, 0
        while record.fence == self._record.fence:
            is_over = record.state not in {"running", "queued"}
            events = await self._events(record, shown)
            has_end = bool(events) and is_terminal(events[-1])
            if is_over:
                return self._ended(record, events) if has_end else (*events, *_UNKNOWN)
            if not has_end:  # else its record is read again: it holds what the turn has cost
                if events:
                    self.broadcast.publish(events)
                    shown += len(events)
                await asyncio.sleep(self._pause())
            record = await self._turns.reload(record)
        return _UNKNOWN

    def _ended(self, record: Turn, events: Sequence[Event]) -> Sequence[Event]:
        return (*events[:-1], self._usage(record, events), events[-1])
