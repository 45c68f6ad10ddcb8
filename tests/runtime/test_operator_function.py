"""A function of the operator's that hangs costs whom it was asked for, and nobody else."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from carnet.runtime.operator_function import MOST_AT_ONCE, MOST_OF_ACTOR, OperatorFunction

SOON = 0.05  # seconds after which an answer is late, where one is to be


class Gate:
    """Holds up whoever is named, until it is opened."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.asked: list[str] = []

    def plain(self, actor: str) -> str:
        self.asked.append(actor)
        if actor.startswith("hangs"):
            self.opened.wait(60)
        return actor

    async def blocks(self, actor: str) -> str:
        return self.plain(actor)  # which holds its loop up

    async def waits(self, actor: str) -> str:
        self.asked.append(actor)
        while actor.startswith("hangs") and not self.opened.is_set():
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                if actor == "hangs-on":
                    continue
                raise
        return actor


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.opened.set()


async def hang(function: OperatorFunction, actor: str, times: int) -> None:
    """Ask so often for somebody whom it does not answer."""
    asked = [function.ask(actor, actor) for _ in range(times)]
    for each in await asyncio.gather(*asked, return_exceptions=True):
        assert isinstance(each, TimeoutError)


async def test_one_caller_for_whom_it_hangs_leaves_all_others_their_answers(gate: Gate) -> None:
    function = OperatorFunction(gate.plain, seconds=SOON)
    for _ in range(MOST_AT_ONCE):
        await hang(function, "hangs", 2)
    assert gate.asked.count("hangs") == MOST_OF_ACTOR  # no more threads than it has places
    patient = OperatorFunction(gate.plain, seconds=60)
    patient._threads, patient._places = function._threads, function._places  # noqa: SLF001
    for name in ("alice", "bob"):
        assert await patient.ask(name, name) == name
    function.close()


async def test_many_callers_for_whom_it_hangs_leave_another_its_answer(gate: Gate) -> None:
    function = OperatorFunction(gate.plain, seconds=SOON)
    for number in range(MOST_AT_ONCE):
        await hang(function, f"hangs-{number}", MOST_OF_ACTOR)
    patient = OperatorFunction(gate.plain, seconds=60)
    patient._threads, patient._places = function._threads, function._places  # noqa: SLF001
    assert await patient.ask("alice", "alice") == "alice"


async def test_a_caller_has_its_places_again_when_what_hung_has_ended(gate: Gate) -> None:
    function = OperatorFunction(gate.plain, seconds=SOON)
    await hang(function, "hangs", MOST_OF_ACTOR + 1)
    assert function._of_actor["hangs"].count == MOST_OF_ACTOR  # noqa: SLF001
    gate.opened.set()
    while function._of_actor:  # noqa: SLF001, ASYNC110  threads tell it when they have ended
        await asyncio.sleep(0)
    function._seconds = 60  # noqa: SLF001
    assert await function.ask("hangs", "hangs") == "hangs"


async def test_a_coroutine_that_holds_its_loop_up_is_left_behind_with_it(gate: Gate) -> None:
    function = OperatorFunction(gate.blocks, seconds=SOON)
    await hang(function, "hangs", 1)
    await hang(function, "late", 1)  # behind it
    function._seconds = 60  # noqa: SLF001
    assert await function.ask("alice", "alice") == "alice"
    assert function._of_actor.keys() == {"hangs"}  # noqa: SLF001
    gate.opened.set()
    function.close()
    while function._of_actor:  # noqa: SLF001, ASYNC110
        await asyncio.sleep(0)


async def test_a_coroutine_that_waits_is_cancelled_and_gives_its_place_back(gate: Gate) -> None:
    function = OperatorFunction(gate.waits, seconds=SOON)
    await hang(function, "hangs", MOST_OF_ACTOR)
    while function._of_actor:  # noqa: SLF001, ASYNC110  the other loop tells it
        await asyncio.sleep(0)
    await hang(function, "hangs-on", MOST_OF_ACTOR + 1)  # which does not let itself be cancelled
    assert function._of_actor["hangs-on"].count == MOST_OF_ACTOR  # noqa: SLF001
    function._seconds = 60  # noqa: SLF001
    assert await function.ask("alice", "alice") == "alice"
    gate.opened.set()
    function.close()
    while function._of_actor:  # noqa: SLF001, ASYNC110
        await asyncio.sleep(0)


async def test_whoever_leaves_before_it_has_a_place_leaves_nothing_behind(gate: Gate) -> None:
    function = OperatorFunction(gate.plain, seconds=60)
    asked = [asyncio.ensure_future(function.ask("hangs", "hangs")) for _ in range(9)]
    await asyncio.sleep(0)
    for each in asked:
        each.cancel()
    await asyncio.wait(asked)
    gate.opened.set()
    while function._of_actor:  # noqa: SLF001, ASYNC110
        await asyncio.sleep(0)
    assert gate.asked.count("hangs") <= MOST_OF_ACTOR


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("error", "raised"), [(ValueError, ValueError), (SystemExit, RuntimeError)]
)
async def test_what_it_raises_is_told_and_gives_its_place_back(
    error: type[BaseException], raised: type[Exception], *, is_async: bool
) -> None:
    def raises(_: str) -> None:
        raise error

    async def fails(_: str) -> None:
        raise error

    function = OperatorFunction(fails if is_async else raises, seconds=60)
    for _ in range(2 * MOST_OF_ACTOR):
        with pytest.raises(raised):
            await function.ask("alice", "alice")
    function.close()
