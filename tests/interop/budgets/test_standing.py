"""Budgets that an operator sets, and those that carnet.toml has for an agent's own account."""

import json

from carnet.testing.wait import until
from tests.faults.stores import number
from tests.interop.budgets.conftest import Trees
from tests.support.http import Reply


def ask(trees: Trees, token: str, *headers: tuple[str, str]) -> Reply:
    return trees.acme.chat("?", "left", token=token, headers=list(headers))


def test_a_token_makes_no_more_calls_than_its_budget_until_that_is_raised(trees: Trees) -> None:
    token = trees.acme.new_token("bounded")
    trees.acme.carnet("budget", "set", "token:bounded", "--calls", "2")
    until(lambda: ask(trees, token).status == 402)
    spent = trees.acme.json("budget", "show", "token:bounded")["budgets"][0]
    assert (spent["spent"]["calls"], spent["left"]["calls"]) == (2, 0)
    refused = ask(trees, token).json["error"]
    assert (refused["code"], refused["budget"]) == ("budget_exceeded", "token")
    assert (refused["part"], refused["observed"], refused["limit"]) == ("calls", 3, 2)
    assert "carnet budget set token:NAME" in refused["hint"]
    trees.acme.carnet("budget", "set", "token:bounded", "--calls", "3")
    assert ask(trees, token).status == 200
    assert ask(trees, token).status == 402
    names = [one["name"] for one in trees.acme.json("budget", "list")["budgets"]]
    assert "token:bounded" in names or any(name.startswith("token:") for name in names)
    trees.acme.carnet("budget", "clear", "token:bounded")
    until(lambda: ask(trees, token).status == 200)


def test_what_a_caller_says_only_narrows_what_was_set(trees: Trees) -> None:
    token = trees.acme.new_token("narrow")
    trees.acme.carnet("budget", "set", "token:narrow", "--calls", "5", "--per", "day")

    def left() -> int:
        reply = ask(trees, token, ("carnet-budget", "calls=1000"))
        return int(reply.text.split()[1]) if reply.status == 200 else -1

    until(lambda: 0 <= left() < 5)
    assert ask(trees, token, ("carnet-budget", "calls=0")).status == 402


def test_a_caller_that_bounds_its_calls_alone_is_held_to_the_money_that_was_set(
    trees: Trees,
) -> None:
    token = trees.acme.new_token("thrifty")
    trees.acme.carnet("budget", "set", "token:thrifty", "--money", "0.0015")
    until(lambda: ask(trees, token, ("carnet-budget", "calls=1000")).status == 402)
    assert ask(trees, token).status == 402


def test_what_is_no_budget_is_refused(trees: Trees) -> None:
    for text in ("much", "calls=-1", "calls=1,calls=2", "calls=1.5", "0.0000001", "days=1"):
        reply = ask(trees, trees.acme.token, ("carnet-budget", text))
        assert (reply.status, reply.json["error"]["code"]) == (400, "malformed_caller_context")
    done = trees.acme.try_carnet("call", "left", "?", "--budget", "much")
    assert done.returncode == 2
    assert "--budget 0.50" in done.stderr


def test_a_call_from_the_command_line_brings_its_budget(trees: Trees) -> None:
    answer = trees.acme.carnet("call", "left", "?", "--budget", "money=0.5,calls=7,tokens=9").stdout
    assert answer.split() == ["0.499", "6", "9"]
    refused = trees.acme.try_carnet("call", "tree", "grow", "--budget", "calls=0")
    assert refused.returncode != 0
    assert "budget" in refused.stderr


def test_a_run_that_goes_on_can_be_given_more(trees: Trees) -> None:
    assert trees.call("several", "9", "calls=4", "run-raised").text == "3 calls 4"
    page = trees.acme.json("budget", "show", "run-raised")["budgets"][0]
    assert (page["limits"]["calls"], page["left"]["calls"]) == (4, 0)
    trees.acme.carnet("budget", "set", "run-raised", "--calls", "6")
    page = trees.acme.json("budget", "show", "run-raised")["budgets"][0]
    assert (page["left"]["calls"], page["spent"]["calls"]) == (2, 4)


def test_there_is_no_budget_for_nobody(trees: Trees) -> None:
    for subject in ("token:nobody", "person:nobody", "agent:nobody", "peer:no.example", "no-run"):
        done = trees.acme.try_carnet("budget", "set", subject, "--calls", "1")
        assert done.returncode == 2, subject
    assert trees.acme.try_carnet("budget", "set", "token:bounded").returncode == 2
    assert trees.acme.try_carnet("budget", "show", "agent:left").returncode == 2


def test_most_of_a_budget_is_told_in_the_run(trees: Trees) -> None:
    trees.call("several", "9", "calls=5", "run-warned")
    sql = (
        "SELECT COUNT(*) FROM journal j JOIN turn t ON t.n = j.turn JOIN run r ON r.n = t.run"
        " WHERE r.id = ? AND CAST(j.data AS TEXT) LIKE '%carnet.budget%'"
    )
    events = trees.acme.json("run", "show", "run-warned")
    assert json.dumps(events)
    if trees.is_sqlite:
        assert number(trees.acme, sql, "run-warned") == 1
