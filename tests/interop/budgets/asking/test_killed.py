"""A gateway is killed while a budget is raised: it is raised once, and no work is done twice."""

from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPException

import pytest

from tests.faults.stores import end_leases, number
from tests.interop.budgets.asking.conftest import Payers

POINTS = frozenset({"answer.begin", "answer.done", "budget.written"})
FOUR = "calls=4,on=ask"
LIMIT = "SELECT calls FROM budget WHERE run = ?"
pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def killed(payers: Payers) -> Iterator[Payers]:
    yield payers
    if payers.acme.process is None or payers.acme.process.poll() is not None:
        end_leases(payers.acme)
        payers.acme.start()


def restart(payers: Payers, point: str | None = None) -> None:
    if point is None:
        end_leases(payers.acme)
        payers.acme.start()
        return
    payers.acme.stop()
    payers.acme.start(env={"CRASH_AT": point})


@pytest.mark.parametrize("point", ["answer.begin:1", "budget.written:1", "answer.done:1"])
def test_a_kill_while_the_budget_is_raised_raises_it_once(killed: Payers, point: str) -> None:
    run = f"run-killed-{point}"
    assert killed.call("several", "5", FOUR, run).status == 403
    asked = killed.asked(run)
    restart(killed, point)
    with suppress(OSError, HTTPException):
        killed.answer(asked)
    assert killed.acme.died()
    assert number(killed.acme, LIMIT, run) == (8 if point == "answer.done:1" else 4)
    restart(killed)
    assert killed.answer(asked).status == 200
    assert killed.ended("several", "5", FOUR, run).text == "01234"
    assert number(killed.acme, LIMIT, run) == 8
    assert killed.paid(run) == 5 * 1000
    assert killed.held() == []


@pytest.mark.parametrize("place", [1, 2, 3, 4])
def test_a_kill_on_the_way_down_raises_what_an_agent_below_asked_for_once(
    killed: Payers, place: int
) -> None:
    run = f"run-below-{place}"
    assert killed.call("boss", "4", FOUR, run).status == 403
    asked = killed.asked(run)
    restart(killed, f"budget.written:{place}")
    with suppress(OSError, HTTPException):
        killed.answer(asked)
    assert killed.acme.died()
    restart(killed)
    with suppress(OSError, HTTPException):
        killed.answer(asked)
    assert killed.ended("boss", "4", FOUR, run).text == "a 0123"
    assert number(killed.acme, LIMIT, run) == 8
    assert killed.paid(run) == 5 * 1000
    assert killed.held() == []
