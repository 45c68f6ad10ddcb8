"""Shares of the event loop."""

import asyncio

from carnet.http.shares import STEPS, LoopShares, shares_of


async def rounds(begun: list[str], count: int) -> list[list[str]]:
    """What is begun in each of the next rounds of the loop."""
    found = []
    for _ in range(count):
        before = len(begun)
        await asyncio.sleep(0)
        found.append(begun[before:])
    return found


def ask(shares: LoopShares, begun: list[str], caller: str) -> None:
    if shares.take(caller):
        begun.append(caller)
    else:
        shares.later(caller, lambda: begun.append(caller))


async def test_who_asks_for_much_is_given_a_part_in_each_round() -> None:
    shares, begun = LoopShares(asyncio.get_running_loop()), list[str]()
    for _ in range(2 * STEPS + 3):
        ask(shares, begun, "greedy")
    assert begun == ["greedy"] * STEPS
    ask(shares, begun, "modest")
    assert begun[-1] == "modest"  # at once
    assert await rounds(begun, 3) == [["greedy"] * STEPS, ["greedy"] * 3, []]


async def test_who_comes_later_waits_behind_its_own_alone() -> None:
    shares, begun = LoopShares(asyncio.get_running_loop()), list[str]()
    for _ in range(2 * STEPS):
        ask(shares, begun, "greedy")
    await asyncio.sleep(0)
    begun.clear()
    ask(shares, begun, "greedy")
    ask(shares, begun, "modest")
    assert begun == ["modest"]
    assert await rounds(begun, 2) == [["greedy"], []]


async def test_a_step_lets_others_come_between() -> None:
    shares, spoken = LoopShares(asyncio.get_running_loop()), list[str]()

    async def speak(caller: str, words: int) -> None:
        for _ in range(words):
            spoken.append(caller)
            await shares.step(caller)

    greedy = [asyncio.create_task(speak("greedy", 4)) for _ in range(3 * STEPS)]
    modest = asyncio.create_task(speak("modest", 4))
    await asyncio.gather(modest)
    # What each says first needs no turn, and that of the other is over after four rounds and one.
    assert spoken.count("greedy") <= len(greedy) + 5 * STEPS
    await asyncio.gather(*greedy)
    assert spoken.count("greedy") == 4 * len(greedy)


async def test_who_waits_no_more_takes_nobody_with_it() -> None:
    shares = LoopShares(asyncio.get_running_loop())
    waiting = asyncio.create_task(shares.step("one"))
    staying = asyncio.create_task(shares.step("one"))
    await asyncio.sleep(0)
    waiting.cancel()
    await staying
    assert waiting.cancelled()


async def test_a_step_that_fails_holds_up_nobody() -> None:
    loop = asyncio.get_running_loop()
    failures: list[object] = []
    loop.set_exception_handler(lambda _, context: failures.append(context["exception"]))
    shares, begun = LoopShares(loop), list[str]()

    def fail() -> None:
        raise ValueError

    shares.later("one", fail)
    shares.later("one", lambda: begun.append("one"))
    shares.later("other", lambda: begun.append("other"))
    await rounds(begun, 3)
    assert sorted(begun) == ["one", "other"]
    assert [type(each) for each in failures] == [ValueError]
    assert shares.callers == 0


async def test_nothing_is_kept_of_who_has_nothing_ready() -> None:
    shares, begun = LoopShares(asyncio.get_running_loop()), list[str]()
    for name in range(100):
        for _ in range(STEPS + 1):
            ask(shares, begun, str(name))
    await rounds(begun, 3)
    assert len(begun) == 100 * (STEPS + 1)
    assert shares.callers == 0


async def test_a_loop_has_one() -> None:
    loop, other = asyncio.get_running_loop(), asyncio.new_event_loop()
    assert shares_of(loop) is shares_of(loop)
    assert shares_of(other) is not shares_of(loop)
    other.close()
