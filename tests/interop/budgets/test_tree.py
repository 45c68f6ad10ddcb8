"""A wide and deep tree over two organisations stops within its budget, calls in flight counted."""

import pytest

from carnet.core.money.amount import MICROS
from carnet.testing.wait import until
from tests.interop.budgets.conftest import Trees

PRICE = MICROS // 1000
pytestmark = pytest.mark.timeout(300)


TRIES = 10  # who of ten comes first is nobody's choice: in one of these some are abroad


def test_a_tree_makes_no_more_calls_than_its_budget_has(trees: Trees) -> None:
    abroad = 0
    for number in range(TRIES):
        run = f"run-calls-{number}"
        reply = trees.call("tree", "grow", "calls=40", run)
        assert reply.status == 200
        assert 1 < int(reply.text) <= 40
        assert 10 < trees.ran(run) <= 40
        abroad = trees.abroad(run)
        if abroad > 1:
            break
    assert abroad > 1
    until(lambda: trees.held() == [])


def test_a_tree_costs_no_more_than_its_budget_has(trees: Trees) -> None:
    abroad = 0
    for number in range(TRIES):
        run = f"run-money-{number}"
        reply = trees.call("tree", "grow", "0.03", run)
        assert reply.status == 200
        assert 10 < trees.ran(run) <= 30
        assert trees.spent(run) <= 30 * PRICE
        abroad = trees.abroad(run)
        if abroad > 1:
            break
    assert abroad > 1
    until(lambda: trees.held() == [])


def test_without_a_budget_it_is_bounded_by_its_depth_alone(trees: Trees) -> None:
    reply = trees.acme.chat("grow", "tree", headers=[("x-tangle-forwarded-depth", "2")])
    assert (reply.status, reply.text) == (200, "11")


def test_a_share_bounds_one_call_and_what_is_left_of_it_comes_back(trees: Trees) -> None:
    reply = trees.call("shares", "money=0.005,calls=3", "money=0.02,calls=10", "run-shares")
    # The call below has paid for itself and was counted; one call less is left here for each.
    assert reply.text == "0.02 9 | 0.004 2 None | 0.019 8"


def test_a_call_that_is_refused_takes_nothing_of_the_share_it_was_made_with(trees: Trees) -> None:
    reply = trees.call("gives", "money=0.0005,calls=3", "money=0.02,calls=10", "run-spared")
    assert reply.text == "0.0005 2"


def test_an_agent_is_told_which_part_is_used_up_and_nothing_is_sent(trees: Trees) -> None:
    assert trees.call("several", "9", "calls=4", "run-several").text == "3 calls 4"
    assert trees.ran("run-several") == 4
    reply = trees.call("left", "?", "calls=0", "run-refused")
    assert reply.status == 402
    error = reply.json["error"]
    assert (error["code"], error["budget"], error["part"]) == ("budget_exceeded", "call", "calls")
    assert (error["observed"], error["limit"]) == (1, 0)
    assert "carnet budget set" in error["hint"]
    assert trees.ran("run-refused") == 0
