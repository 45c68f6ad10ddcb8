"""What gateways tell one another about readers, when many come and go at once."""

import asyncio
from collections.abc import Sequence
from typing import Any

from carnet.core.chain.turn import Turn
from carnet.stores.upkeep.cluster import StoredCluster
from tests.stores.support.scenes import ALICE


class Requests:
    """A database that holds requests and takes its time, for some longer than for others."""

    abandoned = "1 = 1"

    def __init__(self) -> None:
        self.rows: set[tuple[Any, ...]] = set()
        self.deletes = 0

    async def execute(self, sql: str, args: Sequence[Any] = ()) -> int:
        await asyncio.sleep(0.002 if sql.startswith("DELETE") else 0.001)
        if sql.startswith("DELETE"):
            self.deletes += 1
            self.rows.discard(tuple(args[:2]))
        else:
            self.rows.add(tuple(args[:2]))
        return 1

    async def fetch(self, _: str, __: Sequence[Any] = ()) -> list[Any]:
        return []


def a_turn(n: int) -> Turn:
    return Turn(n=n, agent="echo", run="r", turn=f"t{n}", payer=ALICE.account, created=0)


async def test_many_who_leave_at_once_are_told_once_each() -> None:
    requests = Requests()
    cluster = StoredCluster(requests, "w")  # type: ignore[arg-type]
    await asyncio.gather(*(cluster.leave(a_turn(n)) for n in range(50)))
    assert requests.deletes == 50


async def test_who_comes_back_is_not_overtaken_by_its_own_farewell() -> None:
    requests = Requests()
    cluster = StoredCluster(requests, "w")  # type: ignore[arg-type]
    await cluster.attend(a_turn(1))
    leaving = asyncio.create_task(cluster.leave(a_turn(1)))
    await asyncio.sleep(0)
    await cluster.attend(a_turn(1))
    await leaving
    assert requests.rows == {(1, 1)}
