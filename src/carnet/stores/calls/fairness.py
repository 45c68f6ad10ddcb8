"""Which of the tasks that wait are begun next, where there is not room for all of them.

Law 1. A place that is free goes to whoever has the fewest tasks that run (A88). Tenants are told
       apart by the quota that pays: all whom a peer vouches for are that peer.
Law 2. Of one tenant no agent's tasks wait for those of another, and of one agent the ranks decide.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush

from carnet.stores.database import Row


def fairly(found: Sequence[Row], running: Mapping[str, int], most: int) -> list[int]:
    """The numbers of at most so many of these (turn, agent, quota, rank).

    The next is one of whoever has the fewest that run and were chosen; of several it is the one
    whose agent has the fewest that were chosen, and then the first by its rank.
    """
    queues: dict[tuple[str, str], list[Row]] = {}
    for row in sorted(found, key=lambda row: (row[3], row[0]), reverse=True):
        queues.setdefault((row[2], row[1]), []).append(row)
    tenants, agents = Counter(running), Counter[str]()
    chosen: list[int] = []
    heap = [
        (tenants[quota], 0, queue[-1][3], queue[-1][0], quota, agent)
        for (quota, agent), queue in queues.items()
    ]
    heapify(heap)
    while heap and len(chosen) < most:
        ran, taken, rank, n, quota, agent = heappop(heap)
        now = (tenants[quota], agents[agent], rank, n, quota, agent)
        if (ran, taken) != now[:2]:  # others of it were chosen meanwhile
            heappush(heap, now)
            continue
        queue = queues[quota, agent]
        chosen.append(queue.pop()[0])
        tenants[quota] += 1
        agents[agent] += 1
        if queue:
            following = queue[-1]
            heappush(
                heap, (tenants[quota], agents[agent], following[3], following[0], quota, agent)
            )
    return chosen
