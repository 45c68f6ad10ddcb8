"""A gateway that is killed while budgets are held: nothing is created, and nothing stays held."""

from http.client import HTTPException

import pytest

from carnet.testing.wait import until
from tests.faults.stores import end_leases, number
from tests.interop.budgets.conftest import Trees

POINTS = frozenset({"budget.written"})
PLACES = (1, 2, 3, 5)
pytestmark = pytest.mark.timeout(300)


def killed(trees: Trees, run: str, place: int) -> str:
    """The run in which it died: each writes a budget, how often depends on who writes with it."""
    for n in range(place):
        name = f"{run}-{n}"
        try:
            trees.call("tree", "grow", "calls=30", name, ("x-tangle-turnid", "t"))
        except (OSError, HTTPException):
            return name
    raise AssertionError("it was not killed")


@pytest.mark.parametrize("place", PLACES)
def test_a_kill_while_a_budget_is_written_leaves_it_whole(trees: Trees, place: int) -> None:
    run, acme = f"run-killed-{place}", trees.acme
    acme.stop()
    acme.start(env={"CRASH_AT": f"budget.written:{place}"})
    run = killed(trees, run, place)
    assert acme.died()
    end_leases(acme)
    acme.start()
    until(
        lambda: trees.call("tree", "grow", "calls=30", run, ("x-tangle-turnid", "t")).status == 200
    )
    assert trees.ran(run) <= 30
    until(lambda: trees.held() == [])
    over = "SELECT COUNT(*) FROM budget WHERE spent_calls + held_calls > calls"
    assert (number(acme, over), number(trees.globex, over)) == (0, 0)
