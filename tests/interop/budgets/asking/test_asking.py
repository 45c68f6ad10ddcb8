"""A budget that asks: who pays is asked for more, and the run goes on where it stopped."""

from carnet.testing.wait import until
from tests.faults.stores import rows
from tests.interop.budgets.asking.conftest import Payers

PRICE = 1000
FOUR = "calls=4,on=ask"


def test_who_pays_is_asked_and_the_run_goes_on_where_it_stopped(payers: Payers) -> None:
    run = "run-goes-on"
    reply = payers.call("several", "5", FOUR, run)
    assert (reply.status, reply.json["error"]["code"]) == (403, "approval_required")
    shown = reply.json["error"]["interrupt"]
    assert (shown["kind"], shown["budget"]["part"]) == ("approval", "calls")
    asked = payers.asked(run)
    assert asked["budget"] == {"part": "calls", "observed": 5, "limit": 4, "more": 4}
    assert payers.worked(run) == [1, 1, 1]
    assert payers.answer(asked).status == 200
    assert payers.ended("several", "5", FOUR, run).text == "01234"
    assert payers.worked(run) == [1] * 5
    assert payers.paid(run) == 5 * PRICE
    assert payers.held() == []


def test_money_is_given_in_the_amount_that_was_said(payers: Payers) -> None:
    budget, run = "money=0.002,on=ask", "run-money"
    assert payers.call("several", "4", budget, run).status == 403
    asked = payers.asked(run)
    assert asked["budget"] == {
        "part": "money",
        "observed": "0.003",
        "limit": "0.002",
        "more": "0.002",
    }
    assert payers.answer(asked, value="0.001").status == 200  # for one of the two that are left
    until(lambda: payers.asked(run)["id"] != asked["id"])
    again = payers.asked(run)
    assert again["budget"]["limit"] == "0.003"
    assert payers.worked(run) == [1, 1, 1]
    assert payers.answer(again).status == 200
    assert payers.ended("several", "4", budget, run).text == "0123"
    assert payers.worked(run) == [1] * 4
    assert payers.paid(run) == 4 * PRICE
    assert payers.held() == []


def test_who_says_no_is_told_that_the_budget_is_exceeded(payers: Payers) -> None:
    run = "run-no"
    assert payers.call("several", "5", FOUR, run).status == 403
    assert payers.answer(payers.asked(run), outcome="rejected").status == 200
    assert payers.ended("several", "5", FOUR, run).text == "012 no calls"
    assert payers.worked(run) == [1, 1, 1]
    assert payers.held() == []


def test_the_first_call_of_all_can_be_asked_for(payers: Payers) -> None:
    budget, run = "calls=1,on=ask", "run-first"
    assert payers.call("several", "2", budget, run).status == 403
    assert payers.worked(run) == []
    assert payers.answer(payers.asked(run), value=2).status == 200
    assert payers.ended("several", "2", budget, run).text == "01"


def test_what_an_agent_below_needs_is_asked_of_who_began(payers: Payers) -> None:
    run = "run-below"
    assert payers.call("boss", "3", FOUR, run).status == 403
    asked = payers.asked(run)
    assert (asked["asked_by"], asked["agent"]) == ("@several@acme.example", "boss")
    assert asked["budget"]["part"] == "calls"
    assert payers.worked(run) == [1, 1]
    assert payers.answer(asked).status == 200
    assert payers.ended("boss", "3", FOUR, run).text == "a 012"
    assert payers.worked(run) == [1] * 4
    assert payers.paid(run) == 4 * PRICE
    assert payers.held() == []


def test_of_a_fan_out_one_branch_asks_and_no_other_runs_again(payers: Payers) -> None:
    budget, run = "calls=7,on=ask", "run-wide"
    assert payers.call("wide", "4", budget, run).status == 403
    asked = payers.asked(run)
    assert asked["asked_by"] == "@several@acme.example"
    assert len(payers.worked(run)) == 3
    assert payers.answer(asked, value=3).status == 200
    assert payers.ended("wide", "4", budget, run).text == "4 | 4 | 0123"
    assert payers.worked(run) == [1] * 6
    assert payers.held() == []


def test_a_part_that_an_agent_has_set_is_not_raised(payers: Payers) -> None:
    reply = payers.call("bounds", "4", "calls=9,on=ask", "run-bounds")
    assert (reply.status, reply.text) == (200, "0 no calls")


def test_an_agent_can_be_configured_to_ask_and_a_caller_not_to(payers: Payers) -> None:
    assert payers.call("willing", "5", "calls=4", "run-willing").status == 403
    assert payers.asked("run-willing")["budget"]["part"] == "calls"
    reply = payers.call("willing", "5", "calls=4,on=refuse", "run-unwilling")
    assert (reply.status, reply.text) == (200, "012 no calls")


def test_a_call_from_the_command_line_asks(payers: Payers) -> None:
    acme = payers.acme
    words = ("call", "several", "5", "--budget", "calls=4", "--run", "run-cli", "--turn", "t")
    done = acme.try_carnet(*words, "--on-budget", "ask")
    assert done.returncode != 0
    (asked,) = [one for one in acme.json("inbox")["approvals"] if one["run"] == "run-cli"]
    assert asked["id"] in done.stderr
    shown = acme.carnet("inbox", "show", asked["id"]).stdout
    assert f"carnet inbox approve {asked['id']} --value 4" in shown
    acme.carnet("inbox", "approve", asked["id"])
    until(lambda: acme.try_carnet(*words, "--on-budget", "ask").stdout.strip() == "01234")
    page = acme.json("budget", "show", "run-cli")["budgets"][0]
    assert (page["on_budget"], page["limits"]["calls"], page["spent"]["calls"]) == ("ask", 8, 6)
    refused = acme.try_carnet("call", "several", "5", "--on-budget", "ask")
    assert refused.returncode == 2
    assert "--budget" in refused.stderr


def test_a_budget_that_refuses_can_be_set_to_ask_while_its_run_waits(payers: Payers) -> None:
    acme, run = payers.acme, "run-set"
    assert payers.call("several", "5", "calls=4", run).text == "012 no calls"
    acme.carnet("budget", "set", run, "--calls", "3", "--on-budget", "ask")
    assert acme.json("budget", "show", run)["budgets"][0]["on_budget"] == "ask"
    for words in (("token:nobody",), ("person:nobody",), ("peer:no.example",)):
        done = acme.try_carnet("budget", "set", *words, "--calls", "1", "--on-budget", "ask")
        assert done.returncode == 2
        assert "by you alone" in done.stderr


def test_what_nobody_answers_in_time_is_refused_as_the_budget_would(payers: Payers) -> None:
    run = "run-late"
    assert payers.call("boss", "5", FOUR, run).status == 403
    payers.asked(run)
    late = (
        "UPDATE turn SET waits_until = 1 WHERE state = 'waiting' AND parent IS NULL"
        " AND run IN (SELECT n FROM run WHERE id = ?)"
    )
    rows(payers.acme, late, run)
    until(lambda: payers.call("boss", "5", FOUR, run).status == 402)
    error = payers.call("boss", "5", FOUR, run).json["error"]
    assert (error["code"], error["budget"], error["part"]) == ("budget_exceeded", "call", "calls")
    assert (error["observed"], error["limit"]) == (5, 4)
    until(lambda: payers.held() == [])


def test_what_is_told_of_a_budget_after_a_wait_is_what_was_written_and_given(
    payers: Payers,
) -> None:
    budget, run = "calls=4,on=ask", "run-told"
    assert payers.call("several", "7", budget, run).status == 403
    asked = payers.asked(run)
    assert asked["budget"] == {"part": "calls", "observed": 5, "limit": 4, "more": 4}
    assert payers.answer(asked, value=1).status == 200
    until(lambda: payers.asked(run)["id"] != asked["id"])
    again = payers.asked(run)
    assert again["budget"] == {"part": "calls", "observed": 6, "limit": 5, "more": 5}
    page = payers.acme.json("budget", "show", run)["budgets"][0]
    assert (page["limits"]["calls"], page["spent"]["calls"]) == (5, 5)
    assert payers.answer(again).status == 200
    assert payers.ended("several", "7", budget, run).text == "0123456"
    assert payers.held() == []
