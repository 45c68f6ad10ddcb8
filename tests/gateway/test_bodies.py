"""Whose large bodies are read when."""

import asyncio

import pytest

from carnet.gateway.bodies import PLACES, REST, LargeBodies
from carnet.testing.wait import until_so


async def test_one_caller_has_so_many_places_and_another_has_its_own() -> None:
    bodies = LargeBodies()
    held = [await bodies.enter("alice") for _ in range(PLACES)]
    waiting = asyncio.ensure_future(bodies.enter("alice"))
    bobs = await asyncio.wait_for(bodies.enter("bob"), 30)
    assert not waiting.done()
    held.pop().leave()
    for place in (await asyncio.wait_for(waiting, 30), bobs, *held):
        place.leave()


async def test_a_body_that_is_given_up_while_it_waits_takes_no_place() -> None:
    bodies = LargeBodies()
    held = [await bodies.enter("alice") for _ in range(PLACES)]
    waiting = asyncio.ensure_future(bodies.enter("alice"))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    for place in held:
        place.leave()
    again = [await asyncio.wait_for(bodies.enter("alice"), 30) for _ in range(PLACES)]
    for place in again:
        place.leave()


async def test_the_next_body_of_a_caller_rests_as_a_multiple_of_what_the_last_one_took() -> None:
    place, loop = await LargeBodies().enter("alice"), asyncio.get_running_loop()
    took: list[float] = []

    def work(rounds: int) -> int:
        return sum(range(rounds))

    await place.read(work, 3_000_000)
    took.append(place._caller.seconds)  # noqa: SLF001  what is measured is nobody else's to see
    began = loop.time()
    await place.read(work, 1)
    assert loop.time() - began >= REST * took[0] / 2
    place.leave()


async def test_what_cannot_be_read_costs_its_caller_a_rest_as_well() -> None:
    place = await LargeBodies().enter("alice")

    def fail(_: int) -> int:
        raise ValueError(sum(range(3_000_000)))

    with pytest.raises(ValueError, match="4499998500000"):
        await place.read(fail, 1)
    assert place._caller.rests_until > asyncio.get_running_loop().time()  # noqa: SLF001
    place.leave()


async def test_a_caller_that_has_nothing_on_its_way_is_forgotten() -> None:
    bodies = LargeBodies()
    (await bodies.enter("alice")).leave()
    await until_so(lambda: not bodies._callers)  # noqa: SLF001
