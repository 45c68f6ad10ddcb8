"""Reads are fair between callers: whoever asks for much waits for itself (A87)."""

import asyncio
from contextvars import copy_context

from carnet.ports.world.records import READER
from carnet.stores.database import Row
from carnet.stores.open import Store
from carnet.stores.shares import Shares
from carnet.testing.wait import until_so

SLOW = (
    "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 100000)"
    " SELECT COUNT(*) FROM c"
)
MANY = 12


def reading(store: Store, reader: str | None, ended: list[str], name: str) -> asyncio.Task[None]:
    async def read() -> None:
        READER.set(reader)
        await store.records._database.fetch(SLOW)  # noqa: SLF001  what every reader asks
        ended.append(name)

    return asyncio.get_running_loop().create_task(read(), context=copy_context())


async def test_a_query_waits_for_one_of_another_caller_and_not_for_all(store: Store) -> None:
    ended: list[str] = []
    hers = [reading(store, "token:mallory", ended, f"m{n}") for n in range(MANY)]
    await asyncio.sleep(0)  # all of hers have asked
    his = reading(store, "token:alice", ended, "a")
    own = reading(store, None, ended, "own")
    await asyncio.wait([his, own])
    assert len([name for name in ended if name.startswith("m")]) <= MANY // 2
    await asyncio.wait(hers)
    assert [name for name in ended if name.startswith("m")] == [f"m{n}" for n in range(MANY)]


async def test_who_comes_and_goes_has_one_place_all_the_same() -> None:
    shares, under_way = Shares(), list[asyncio.Future[list[Row]]]()

    def ask() -> "asyncio.Future[list[Row]]":
        under_way.append(asyncio.get_running_loop().create_future())
        return under_way[-1]

    async def read() -> list[Row]:
        READER.set("token:mallory")
        return await shares.fetch(ask)

    first, second = asyncio.create_task(read()), asyncio.create_task(read())
    await asyncio.sleep(0)
    first.cancel()
    for _ in range(5):
        await asyncio.sleep(0)
    assert len(under_way) == 1
    under_way[0].set_result([])
    await asyncio.wait([first])
    await until_so(lambda: len(under_way) == 2)
    under_way[1].set_result([(1,)])
    assert first.cancelled()
    assert await second == [(1,)]
