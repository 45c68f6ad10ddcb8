"""A function of the operator's that does not come back costs whoever it does not answer."""

import asyncio
import threading

import pytest

from carnet.runtime.operator_function import MOST_AT_ONCE, MOST_OF_ACTOR, OperatorFunction
from carnet.testing.wait import until_so


class Verifier:
    """Hangs for who is held, and answers everybody else."""

    def __init__(self) -> None:
        self.let = threading.Event()
        self.begun = 0

    def __call__(self, who: str) -> str:
        if who == "mallory":
            self.begun += 1
            self.let.wait()
        return f"hello {who}"


async def ask(function: OperatorFunction, who: str) -> object:
    try:
        return await function.ask(who, who)
    except TimeoutError:
        return "late"


async def is_answered(function: OperatorFunction, who: str) -> bool:
    return await ask(function, who) == f"hello {who}"


async def test_threads_that_hang_for_one_actor_leave_the_others_theirs() -> None:
    verifier = Verifier()
    function = OperatorFunction(verifier, seconds=0.2)
    for _ in range(MOST_AT_ONCE // MOST_OF_ACTOR + 1):
        late = await asyncio.gather(*[ask(function, "mallory") for _ in range(MOST_OF_ACTOR)])
        assert set(late) == {"late"}
    assert verifier.begun == MOST_OF_ACTOR  # which nobody could stop, and no more
    await until_so(lambda: is_answered(function, "trent"))
    verifier.let.set()
    await until_so(lambda: is_answered(function, "mallory"))
    function.close()


@pytest.mark.parametrize("error", [ValueError, SystemExit])
async def test_what_it_raises_gives_its_place_back(error: type[BaseException]) -> None:
    def raises(_: str) -> None:
        raise error

    function = OperatorFunction(raises, seconds=60)
    for _ in range(2 * MOST_OF_ACTOR):
        with pytest.raises(error):
            await function.ask("trent", "trent")


async def test_a_coroutine_that_is_late_gives_its_place_back() -> None:
    async def hangs(who: str) -> str:
        if who == "mallory":
            await asyncio.Event().wait()
        return f"hello {who}"

    function = OperatorFunction(hangs, seconds=0.2)
    for _ in range(2 * MOST_OF_ACTOR):
        assert await ask(function, "mallory") == "late"
    await until_so(lambda: is_answered(function, "trent"))
    function.close()
