"""Places that are shared: all are used, and nobody has more than a part of them."""

import asyncio

from carnet.runtime.tools.room import FairRoom


async def test_nobody_has_more_than_a_part_and_the_rest_is_for_others() -> None:
    room, inside, leave = FairRoom(5, each=2), list[str](), asyncio.Event()

    async def use(who: str) -> None:
        async with room.place(who):
            inside.append(who)
            await leave.wait()

    tasks = [asyncio.create_task(use(who)) for who in ("a", "a", "a", "a", "b", "b", "c", "c")]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert inside == ["a", "a", "b", "b", "c"]
    tasks[2].cancel()  # one that waits
    leave.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert sorted(inside) == ["a", "a", "a", "b", "b", "c", "c"]
    async with asyncio.timeout(1), room.place("a"), room.place("a"), room.place("b"):
        pass
