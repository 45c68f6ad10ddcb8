"""Who may give a budget more: who pays, or whom she named; once, and never what another bounds."""

from itertools import count
from typing import Any

import pytest

from carnet.testing.wait import until
from tests.faults.stores import number, rows
from tests.interop.budgets.asking.conftest import Payers
from tests.support.http import request

FOUR = "calls=4,on=ask"
numbers = count()


class Person:
    """Somebody with a token."""

    def __init__(self, payers: Payers, *scopes: str) -> None:
        self.payers, self.name = payers, f"p-{next(numbers)}"
        granted = [word for scope in scopes for word in ("--permission", scope)]
        payers.acme.carnet("people", "add", self.name, *granted)
        self.token = self.new_token(*scopes)

    def new_token(self, *scopes: str) -> str:
        acme, name = self.payers.acme, f"{self.name}-{next(numbers)}"
        chosen = [word for scope in scopes for word in ("--scope", scope)]
        chosen += ["--scope", "run:read"] if scopes else []
        token = acme.new_token(name, "--person", self.name, *chosen)
        until(lambda: acme.get("/runs", token=token).status == 200)
        return token

    def asked(self, budget: str = FOUR, run: str = "") -> dict[str, Any]:
        """A question for more of the budget of a call of hers."""
        run = run or f"run-of-{self.name}-{next(numbers)}"
        assert self.payers.call("several", "5", budget, run, self.token).status == 403
        return self.payers.asked(run, self.token)

    def limit(self, asked: dict[str, Any], part: str = "calls") -> int:
        sql = f"SELECT {part} FROM budget WHERE run = ?"  # noqa: S608  a word of ours
        return number(self.payers.acme, sql, asked["run"])


@pytest.fixture
def alice(payers: Payers) -> Person:
    return Person(payers)


@pytest.fixture
def bob(payers: Payers) -> Person:
    return Person(payers, "approve", "pay")


def test_another_person_gives_nothing(payers: Payers, alice: Person, bob: Person) -> None:
    asked = alice.asked()
    refused = payers.answer(asked, bob.token)
    assert (refused.status, refused.json["error"]["code"]) == (403, "answer_forbidden")
    assert payers.answer(asked, Person(payers, "pay").token).status == 404  # she sees nothing
    assert alice.limit(asked) == 4
    assert payers.answer(asked, alice.token).status == 200
    assert payers.ended("several", "5", FOUR, asked["run"], alice.token).text == "01234"


def test_a_person_whom_she_named_gives_within_her_ceiling(
    payers: Payers, alice: Person, bob: Person
) -> None:
    asked = alice.asked("money=0.003,on=ask")
    body = b'{"person": "%b", "ceiling": "0.001"}' % bob.name.encode()
    fields = [("authorization", f"Bearer {alice.token}"), ("content-type", "application/json")]
    named = request("POST", f"{payers.acme.url}/rules", fields, body)
    assert named.status == 200
    assert payers.answer(asked, bob.token, value="0.002").status == 403
    assert payers.answer(asked, bob.token, value="0.001").status == 200
    until(lambda: payers.asked(asked["run"], alice.token)["id"] != asked["id"])
    again = payers.asked(asked["run"], alice.token)
    assert payers.answer(again, bob.token, value="0.001").status == 403  # nothing of it is left
    assert payers.answer(again, alice.token, value="0.001").status == 200
    budget = "money=0.003,on=ask"
    assert payers.ended("several", "5", budget, asked["run"], alice.token).text == "01234"


def test_a_token_that_may_not_pay_gives_nothing(payers: Payers) -> None:
    carol = Person(payers, "call:*", "approve", "pay")
    asked = carol.asked()
    for scope in ("call:several", "approve"):
        refused = payers.answer(asked, carol.new_token(scope))
        assert (refused.status, refused.json["error"]["code"]) == (403, "permission_missing")
    refused = payers.answer(asked, carol.new_token("pay"))  # it may not have the call go on
    assert refused.json["error"]["code"] == "permission_missing"
    assert carol.limit(asked) == 4
    assert payers.answer(asked, carol.token).status == 200


def test_an_answer_counts_once(payers: Payers, alice: Person) -> None:
    asked = alice.asked()
    assert [payers.answer(asked, alice.token).status for _ in range(3)] == [200] * 3
    assert payers.answer(asked, alice.token, value=9).status == 409
    assert payers.answer(asked, alice.token, outcome="rejected").status == 409
    assert payers.ended("several", "5", FOUR, asked["run"], alice.token).text == "01234"
    assert alice.limit(asked) == 8


def test_an_answer_with_the_call_counts_once(payers: Payers, alice: Person) -> None:
    run = f"run-by-call-{next(numbers)}"
    waits = payers.call("several", "5", FOUR, run, alice.token)
    state = waits.json["error"]["interrupt"]["state"]
    brought = ("carnet-resolution", f"{state};outcome=accepted")
    reply = payers.call("several", "5", FOUR, run, alice.token, brought)
    assert (reply.status, reply.text) == (200, "01234")
    replayed = payers.call("several", "5", FOUR, run, alice.token, brought)
    assert (replayed.status, replayed.json["error"]["code"]) == (409, "policy_state_invalid")
    assert alice.limit({"run": run}) == 8


def test_what_is_no_amount_gives_nothing(payers: Payers, alice: Person) -> None:
    asked = alice.asked()
    for value in (0, -1, 1.5, "0", "many", "1e3", True, {"calls": 3}, [3], "9" * 13):
        assert payers.answer(asked, alice.token, value=value).status == 400, value
    remembered = payers.answer(asked, alice.token, remember={})
    assert (remembered.status, remembered.json["error"]["code"]) == (400, "invalid_request")
    assert alice.limit(asked) == 4


def test_what_an_operator_has_set_is_raised_by_nobody_else(payers: Payers) -> None:
    acme = payers.acme
    token = acme.new_token("bounded")
    acme.carnet("budget", "set", "token:bounded", "--calls", "5")
    until(lambda: acme.get("/runs", token=token).status == 200)
    sql = "SELECT spent_calls FROM budget WHERE name LIKE 'token:%' AND calls = 5"

    def is_counted() -> bool:
        """Whether the gateway knows of it: it looks once a second."""
        payers.call("work", "?", "calls=1", f"r-{next(numbers)}", token)
        return number(acme, sql) > 0

    until(is_counted)
    spent = number(acme, sql)
    run, left = f"run-bounded-{next(numbers)}", 5 - spent
    budget = f"calls={left - 1},on=ask"
    assert payers.call("several", "9", budget, run, token).status == 403
    assert payers.answer(payers.asked(run, token), token, value=100).status == 200
    reply = payers.ended("several", "9", budget, run, token)
    assert reply.text == "".join(map(str, range(left - 1))) + " no calls"
    found = rows(acme, "SELECT calls, spent_calls FROM budget WHERE name LIKE 'token:%'")
    assert (5, 5) in [(limit, used) for limit, used in found]
