"""The agents as pages: their cards judged, and their skills tried."""

from typing import Any

import pytest

from carnet.console.api import ApiAnswer
from carnet.console.operations.agents import a2a_findings, samvad_findings
from carnet.console.templates import Templates
from tests.console.owner.test_chat import SCRIPT, send
from tests.gateway.people.browser import Somebody
from tests.support.organisation import Organisation


def test_the_cards_of_an_agent_are_shown_and_judged(operator: Somebody) -> None:
    browser = operator.browser()
    listed = browser.send("GET", "/console/agents.json").json["agents"]
    assert {"clerk", "words"} <= set(listed)
    data = browser.send("GET", "/console/agents/clerk.json").json
    cards = {card["kind"]: card for card in data["cards"]}
    assert cards["SAMVAD"]["card"]["skills"][0]["id"] == "book"
    assert cards["SAMVAD"]["findings"] == []
    assert all(each["status"] == "warn" for each in cards["A2A"]["findings"])
    (skill,) = data["skills"]
    assert {field["name"]: field["shape"] for field in skill["fields"]} == {
        "day": "text",
        "seats": "integer",
    }
    page = browser.send("GET", "/console/agents/clerk").body.decode()
    assert ("<b>table</b>" in page, 'name="field.day"' in page) == (False, True)


def test_a_card_that_others_refuse_is_told_with_what_to_do() -> None:
    broken = ApiAnswer(200, [], b'{"name": "clerk"}')
    for findings in (a2a_findings(broken, "https://acme.example"), samvad_findings(broken)):
        assert {"fail"} <= {each["status"] for each in findings}
        assert all(each["message"] and each["fix"] for each in findings)
    assert (a2a_findings(None, ""), samvad_findings(None)) == ([], [])


def test_a_skill_is_tried_with_a_form_made_from_its_schema(operator: Somebody) -> None:
    browser = operator.browser()
    at = "/console/agents/clerk/try"
    reply = send(browser, at, **{"skill": "book", "field.day": SCRIPT, "field.seats": "4"})
    page = reply.body.decode()
    assert (reply.status, "4 on &lt;script&gt;" in page, SCRIPT in page) == (200, True, False)
    assert "/console/runs/conv_" in page
    wrong = send(browser, at, **{"skill": "book", "field.seats": "4"})
    assert b"day" in wrong.body
    assert b"4 on" not in wrong.body
    text = send(browser, "/console/agents/words/try", skill="chat", text="one two")
    assert b"one two" in text.body


def test_who_may_not_call_an_agent_neither_sees_nor_tries_it(acme: Organisation) -> None:
    viewer = Somebody(acme, "--role", "viewer").browser()
    assert viewer.send("GET", "/console/agents.json").json["agents"] == []
    assert viewer.send("GET", "/console/agents/clerk").status in {403, 404}
    refused = send(viewer, "/console/agents/words/try", skill="chat", text="x")
    assert b"permission_missing" in refused.body
    assert b"/console/runs/" not in refused.body


@pytest.mark.parametrize(
    ("circuit", "words"),
    [
        ({"state": "closed", "failures": 0}, "breaker closed"),
        ({"state": "open", "failures": 5, "upstream": "x"}, "breaker open<"),
        ({"state": "open", "failures": 5, "callers": 2}, "breaker open for 2 callers"),
    ],
)
def test_a_partner_is_shown_with_its_breaker_and_what_it_publishes_is_text(
    circuit: dict[str, Any], words: str
) -> None:
    card = {"name": SCRIPT, "description": SCRIPT, "cards": ["A2A"], "skills": [SCRIPT]}
    calls = {"calls": 1, "failed": 1, "code": "x", "last": None, "p50": None, "p95": 1, "cost": "1"}
    agent = {"address": SCRIPT, "section": None, **card, **calls}
    trust: dict[str, Any] = {
        "how": "stranger",
        "url": None,
        "since": None,
        "confirmed": True,
        "known_by": [],
    }
    trust |= {"offers_other_keys": True, "pinned": []}
    partner = {"domain": SCRIPT, "is_peer": False, "dialect": None, "max_cost": None, "last": None}
    partner |= {"circuit": circuit, "trust": trust, "agents": [agent], "more": 3}
    elsewhere = {"partners": [partner], "calls": 1, "most_calls": 9, "currency": "credits"}
    frame = {"title": "x", "domain": "x", "who": "x", "csrf": "", "twin": "", "query": ""}
    page = {**frame, "places": [], "agents": [], "elsewhere": elsewhere}
    shown = Templates(str).write("operations/agents.html", page).decode()
    assert (words in shown, SCRIPT in shown) == (True, False)
