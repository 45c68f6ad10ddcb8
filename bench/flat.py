"""Whether the last request of many costs what the first did.

One gateway, one store that grows, and a closed loop until all are answered. There is no warm-up:
the first request counts.
"""

import itertools
import time
from dataclasses import dataclass

from bench.cpu import Cores
from bench.load import Clients, Wrong, clients_at, whole
from bench.measures import Reading, Window
from bench.subjects import CONNECTIONS, Target

REQUESTS = 200_000
SIGNED_REQUESTS = 100_000
PARTS = 10
MOST_SECONDS = 900.0  # a loop that is not over by then has failed
LOOK_SECONDS = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Flat:
    """What each part of the requests has cost, in their order."""

    parts: list[Window]

    @property
    def each(self) -> list[float]:
        """Requests for a second of CPU time."""
        return [part.answered / part.cpu_seconds for part in self.parts]

    @property
    def ratio(self) -> float:
        """The last part against the first."""
        return self.each[-1] / self.each[0]

    @property
    def per_cpu_second(self) -> float:
        """All parts together."""
        return self.requests / sum(part.cpu_seconds for part in self.parts)

    @property
    def requests(self) -> int:
        return sum(part.answered for part in self.parts)


async def flat(
    target: Target, *, requests: int, cores: Cores, patience: float | None = None
) -> Flat:
    """Ask so many times, and read the CPU time after every tenth of them.

    With `patience` in seconds, one that slows down is left when that is over: what it has done by
    then is told.
    """
    each = requests // PARTS
    some = itertools.islice(target.requests, each * PARTS)
    async with clients_at(
        target.port, some, connections=CONNECTIONS, answer=whole(target.mark)
    ) as clients:
        deadline = time.perf_counter() + (patience or MOST_SECONDS)
        readings = [Reading.now(target.pid, cores, clients)]
        clients.start()
        for number in range(1, PARTS + 1):
            is_there = await _until(clients, number * each, deadline)
            if not is_there and patience is None:
                raise Wrong(f"{clients.answered} were answered within {MOST_SECONDS:.0f} s")
            readings.append(Reading.now(target.pid, cores, clients))
            if not is_there:
                break
    parts = [Window.between(*pair).large_enough() for pair in itertools.pairwise(readings)]
    return Flat(parts=parts)


async def _until(clients: Clients, answered: int, deadline: float) -> bool:
    """Wait until so many are answered; False if the time is over."""
    while clients.answered < answered:
        if time.perf_counter() > deadline:
            return False
        await clients.keep_going(LOOK_SECONDS)
    return True
