"""What was paid, as a page: sums, pictures, and a table for other programs."""

import csv
import io
from decimal import Decimal
from typing import Any

from carnet.console.operations.ledger import budget, budget_bars, by_day, limit_bar, shares, written
from tests.console.owner.test_chat import send
from tests.gateway.people.browser import Somebody
from tests.support.organisation import Organisation

NOW = 1_800_000_000_000_000  # 2027-01-15, in the morning


def posting(amount: str, at: str = "2027-01-15T01:00:00Z", credit: str = "a") -> dict[str, Any]:
    usual = {"n": 1, "run": "r", "turn": "t", "debit": "me", "currency": "credits"}
    return {**usual, "amount": amount, "at": at, "credit": credit}


def test_a_day_has_what_was_paid_on_it_and_a_bar_of_its_height() -> None:
    days = by_day([posting("0.3"), posting("0.1", "2027-01-14T23:59:59Z"), posting("0.3")], NOW)
    assert [each["day"] for each in days[-2:]] == ["2027-01-14", "2027-01-15"]
    assert [each["amount"] for each in days[-3:]] == ["0", "0.1", "0.6"]
    assert [each["height"] for each in days[-3:]] == [0, 20, 120]
    assert [each["height"] for each in by_day([], NOW)] == [0] * 14


def test_shares_are_of_the_largest_and_the_largest_is_first() -> None:
    found = shares([posting("1", credit="b"), posting("4"), posting("0")], lambda e: e["credit"])
    assert [(each["name"], each["amount"], each["part"]) for each in found] == [
        ("a", "4", 100),
        ("b", "1", 25),
    ]
    assert shares([], lambda e: e["credit"]) == []


def test_a_budget_tells_what_is_left_of_it() -> None:
    assert budget({"used": "0.5", "ceiling": "2"}) == {
        "used": "0.5",
        "ceiling": "2",
        "part": 25,
        "left": "1.5",
    }
    assert budget({"used": "3", "ceiling": "2"})["part"] == 100
    assert budget({"used": "0", "ceiling": "0"})["part"] == 100


def test_a_bar_shows_what_is_spent_and_held_of_a_hard_cap() -> None:
    bar = limit_bar({"subject": "token:a", "limit": "2", "spent": "1", "held": "0.5"})
    assert (bar["share"], bar["left"], bar["part"]) == (75, "0.5", "money")
    over = {"subject": "peer:x", "limit": "0", "spent": "1", "held": "0"}
    assert (limit_bar(over)["share"], limit_bar(over)["left"]) == (100, "0")
    unused = over | {"spent": "0"}
    assert limit_bar(unused)["share"] == 0
    of = {"money": None, "calls": 8, "tokens": 100}
    used = {"money": "9", "calls": 2, "tokens": 100}
    none = {"money": "0", "calls": 0, "tokens": 0}
    facts = {"until": None, "per": "day", "set_by": "store"}
    bars = budget_bars([{"subject": "p", "limits": of, "spent": used, "held": none, **facts}])
    assert [(each["part"], each["share"]) for each in bars] == [("calls", 25), ("tokens", 100)]


def test_who_audits_verifies_the_chain_and_others_do_not_see_it(
    admin: Somebody, operator: Somebody
) -> None:
    browser = admin.browser()
    assert browser.chat("x", "paid").status == 200
    reply = send(browser, "/console/ledger/verify")
    assert (reply.status, b"Verified to entry" in reply.body) == (200, True), reply.body
    data = browser.send("GET", "/console/ledger.json").json
    assert data["chain"]["state"] == "whole"
    other = operator.browser()
    assert other.send("GET", "/console/ledger.json").json["chain"] is None
    assert b"Verify now" not in other.send("GET", "/console/ledger").body
    for path in ("verify", "compare"):
        assert send(other, f"/console/ledger/{path}", peer="x").status == 403


def test_what_a_program_would_run_as_a_formula_is_text_in_the_table() -> None:
    for text in ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\uff1d1"):
        rows = list(csv.reader(io.StringIO(written([posting("1", credit=text)]).decode())))
        assert (len(rows), rows[1][5]) == (2, f"'{text}")


def test_the_page_sums_what_the_ledger_has(acme: Organisation, operator: Somebody) -> None:
    browser = operator.browser()
    runs = [browser.chat("x", "paid").headers["x-tangle-runid"] for _ in range(2)]
    data = browser.send("GET", "/console/ledger.json").json
    paid = browser.send("GET", "/ledger").json["entries"]
    assert data["entries"] == paid
    assert Decimal(data["total"]) == sum(Decimal(each["amount"]) for each in paid)
    assert {each["name"] for each in data["by_run"]} >= set(runs)
    assert Decimal(data["days"][-1]["amount"]) == Decimal(data["total"])
    page = browser.send("GET", "/console/ledger").body.decode()
    for words in ("The last two weeks", "The days as a table", f"{data['total']} credits"):
        assert words in page
    lone = browser.send("GET", f"/console/ledger.json?run={runs[0]}").json["entries"]
    assert {each["run"] for each in lone} == {runs[0]}
    table = browser.send("GET", f"/console/ledger/csv?run={runs[0]}")
    assert table.headers["content-type"] == "text/csv; charset=utf-8"
    assert len(table.body.splitlines()) == 1 + len(lone)
    export = browser.send("GET", "/console/ledger/export")
    assert export.json["entries"] == paid
    assert 'filename="ledger.json"' in export.headers["content-disposition"]
    other = Somebody(acme).browser()
    assert other.send("GET", "/console/ledger.json").json["entries"] == []
