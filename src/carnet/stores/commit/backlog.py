"""The jobs of one kind that wait behind others of the same caller.

Law 1. Of one caller a batch holds jobs of so many units at the most, or one job; the next ones wait
       in their order. So nobody waits longer for what another has queued (A99).
Law 2. A job is moved twice at the most, however many wait.
"""

from asyncio import Future
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from carnet.stores.commit.batch import Job

SHARE: Final = 8  # units, where others write too
ALL: Final = 1 << 60
UNIT_BYTES: Final = 16 * 1024  # of what is to be written, counted as a job more

Weigh = Callable[[Any], tuple[str, int]]  # whose a payload is, and how many bytes it has


class Backlog:
    """What is taken now, and what waits."""

    __slots__ = ("_queues", "_weigh", "room", "waiting")

    def __init__(self, weigh: Weigh) -> None:
        """`weigh` tells whose a job is."""
        self._weigh = weigh
        self._queues: dict[str, deque[tuple[Job, int]]] = {}
        self.waiting: set[Future[Any]] = set()  # of those that wait
        self.room: dict[str, int] = {}  # what each had left of its share, of those in the last one

    def share(self, jobs: list[Job], most: int = SHARE) -> list[Job]:
        """Of what waits and these new ones, those of the next batch."""
        if most == ALL and not self._queues:  # who is alone has all of them
            self.room = {self._weigh(payload)[0]: ALL for payload, _ in jobs}
            return jobs
        taken: list[Job] = []
        room = self.room = dict[str, int]()
        for caller in tuple(self._queues):
            room[caller] = self._next(caller, taken, most)
        for job in jobs:
            caller, size = self._weigh(job[0])
            units = 1 + size // UNIT_BYTES
            left = room.get(caller, most)
            if caller not in self._queues and (units <= left or left == most):
                room[caller] = max(0, left - units)
                taken.append(job)
            else:
                self._queues.setdefault(caller, deque()).append((job, units))
                self.waiting.add(job[1])
        return taken

    def rest(self) -> list[Job]:
        """All that wait; they wait here no more."""
        found = self.jobs()
        self._queues.clear()
        self.waiting.clear()
        return found

    def jobs(self) -> list[Job]:
        """All that wait."""
        return [job for queue in self._queues.values() for job, _ in queue]

    def _next(self, caller: str, taken: list[Job], most: int) -> int:
        """Take the caller's part of what it has waiting; what is left of its share."""
        queue, left = self._queues[caller], most
        while queue and (queue[0][1] <= left or left == most):
            job, units = queue.popleft()
            left = max(0, left - units)
            self.waiting.discard(job[1])
            taken.append(job)
        if not queue:
            del self._queues[caller]
        return left
