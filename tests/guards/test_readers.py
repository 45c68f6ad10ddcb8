"""The room that readers of what was recorded have."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from carnet.errors import Overloaded
from carnet.guards.readers import Readers


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_callers_readers_share_its_room_and_wait_for_one_another() -> None:
    readers = Readers(per_caller=10, in_all=100)
    async with AsyncExitStack() as first:
        await first.enter_async_context(readers.room("a", 6))
        second = asyncio.create_task(readers.enter("a", 6))
        await settled()
        assert not second.done()
        async with readers.room("b", 6):  # another's is not used up
            assert readers.total == 12
    await second
    assert readers.total == 6
    readers.leave("a", 6)
    assert readers.total == 0


async def test_a_quarter_is_left_to_those_who_hold_nothing() -> None:
    readers = Readers(per_caller=80, in_all=80)
    await readers.enter("a", 50)
    waiting = asyncio.create_task(readers.enter("a", 20))  # beyond 60
    await settled()
    assert not waiting.done()
    await readers.enter("b", 20)
    readers.leave("b", 20)
    readers.leave("a", 50)
    await waiting


async def test_what_is_larger_than_every_bound_is_read_alone() -> None:
    readers = Readers(per_caller=10, in_all=20)
    await readers.enter("a", 5)
    large = asyncio.create_task(readers.enter("b", 1000))
    await settled()
    assert not large.done()
    readers.leave("a", 5)
    await large
    readers.leave("b", 1000)


async def test_nobody_waits_for_ever_and_who_gave_up_holds_nothing() -> None:
    readers = Readers(per_caller=10, in_all=20, seconds=0.01)
    await readers.enter("a", 10)
    with pytest.raises(Overloaded):
        await readers.enter("a", 10)
    assert readers.total == 10
    readers.leave("a", 10)  # and is not waited for
    assert readers.total == 0


async def test_who_lets_some_of_it_go_still_holds_the_rest() -> None:
    readers = Readers(per_caller=10, in_all=100)
    await readers.enter("a", 4)
    await readers.enter("a", 5)
    readers.leave("a", 5)
    assert readers.total == 4
    more = asyncio.create_task(readers.enter("a", 7))
    await settled()
    assert not more.done()
    readers.leave("a", 4)
    await more


async def test_room_that_is_lent_is_free_for_others_until_it_is_held_again() -> None:
    readers = Readers(per_caller=10, in_all=20)
    await readers.enter("a", 8)
    waiting = asyncio.create_task(readers.enter("a", 8))
    await settled()
    assert not waiting.done()
    with readers.lent("a", 8):
        await waiting
        assert readers.total == 8
    assert readers.total == 16
    readers.leave("a", 8)
    readers.leave("a", 8)
    assert readers.total == 0
