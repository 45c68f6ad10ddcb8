"""What agents ask, as pages: listed, answered with changes or for the future, declined together."""

import json
from typing import Any

import pytest

from carnet.console.words import MOST_TEXT
from carnet.testing.wait import until
from tests.console.owner.test_chat import SCRIPT, send, talk
from tests.engine.process import tool_call
from tests.gateway.people.browser import Browser, Somebody
from tests.support.model import Model, streamed
from tests.support.organisation import Organisation


def asked(browser: Browser, text: str, agent: str = "asks") -> dict[str, Any]:
    """Have an agent ask something; the question."""
    talk(browser, text, agent)
    found: dict[str, Any] = browser.send("GET", "/console/inbox.json").json["asks"][0]
    return found


def question(browser: Browser, name: str) -> dict[str, Any]:
    found: dict[str, Any] = browser.send("GET", f"/approvals/{name}").json
    return found


def last(browser: Browser, run: str) -> str:
    """What was answered in the end, once the call has run on."""
    until(lambda: browser.send("GET", f"/runs/{run}").json["state"] == "done")
    turns = browser.send("GET", f"/runs/{run}?full=true").json["turns"]
    return str(turns[0]["answered"]["text"])


def test_who_asks_on_which_way_for_what_and_until_when_is_listed(alice: Somebody) -> None:
    browser = alice.browser()
    ask = asked(browser, SCRIPT)
    page = browser.send("GET", "/console/inbox").body.decode()
    for words in (ask["asked_by"], ask["chain"], ask["expires"], "May I "):
        assert words in page
    card = browser.send("GET", f"/console/inbox/{ask['id']}/card").body.decode()
    assert (SCRIPT in page, SCRIPT in card, "&lt;script&gt;" in card) == (False, False, True)
    rows = browser.send("GET", "/console/inbox/rows").body.decode()
    assert (ask["id"] in rows, "<html" in rows) == (True, False)


@pytest.mark.parametrize(("outcome", "end"), [("accepted", "accepted"), ("rejected", "rejected")])
def test_an_answer_has_the_call_go_on(alice: Somebody, outcome: str, end: str) -> None:
    browser = alice.browser()
    ask = asked(browser, "go")
    reply = send(browser, f"/console/inbox/{ask['id']}/decide", outcome=outcome)
    assert (reply.status, b"data-decided" in reply.body) == (200, True)
    assert last(browser, ask["run"]) == f"{end} go"
    assert browser.send("GET", "/console/inbox.json").json["asks"] == []
    shown = browser.send("GET", "/console/inbox?status=all").body.decode()
    assert ask["run"] in shown


def test_a_payment_is_paid_once_it_is_agreed_to(alice: Somebody) -> None:
    browser = alice.browser()
    ask = asked(browser, "report", "shop")
    assert (ask["kind"], ask["amount"]) == ("payment", "0.5")
    page = browser.send("GET", "/console/inbox").body.decode()
    assert "0.5 credits" in page
    assert send(browser, f"/console/inbox/{ask['id']}/decide", outcome="accepted").status == 200
    assert last(browser, ask["run"]) == "accepted report"
    (posting,) = browser.send("GET", f"/ledger?run={ask['run']}").json["entries"]
    assert posting["amount"] == "0.5"


def test_a_tool_runs_with_the_arguments_that_were_changed(alice: Somebody, model: Model) -> None:
    browser = alice.browser()
    replies = [tool_call("send_mail", json.dumps({"to": "all"})), streamed("Sent.")]
    model.reply = lambda _: replies.pop(0) if len(replies) > 1 else replies[0]
    ask = asked(browser, "mail them", "assistant")
    card = browser.send("GET", f"/console/inbox/{ask['id']}/card").body.decode()
    assert 'name="arguments"' in card
    path = f"/console/inbox/{ask['id']}/decide"
    refused = send(browser, path, outcome="accepted", arguments="{not json")
    assert (refused.status, question(browser, ask["id"])["status"]) == (400, "open")
    emptied = send(browser, path, outcome="accepted", arguments=" ")
    assert (emptied.status, question(browser, ask["id"])["status"]) == (400, "open")
    changed = json.dumps({"to": "only-bob"})
    assert send(browser, path, outcome="accepted", arguments=changed).status == 200
    assert question(browser, ask["id"])["value"] == {"to": "only-bob"}
    until(lambda: browser.send("GET", f"/runs/{ask['run']}").json["state"] == "done")
    ran = (alice.acme.folder / "ran.txt").read_text()
    assert ("mail only-bob" in ran, "mail all" in ran) == (True, False)


def test_arguments_that_are_too_long_for_a_page_are_shown_and_approved_as_they_are(
    alice: Somebody, model: Model
) -> None:
    browser, many = alice.browser(), [0] * (MOST_TEXT // 5)  # each on a line of its own
    sent = json.dumps({"to": "longest", "cc": many}, separators=(",", ":"))
    replies = [tool_call("send_mail", sent), streamed("Sent.")]
    model.reply = lambda _: replies.pop(0) if len(replies) > 1 else replies[0]
    ask = asked(browser, "mail a long one", "assistant")
    card = browser.send("GET", f"/console/inbox/{ask['id']}/card").body.decode()
    assert ('name="arguments"' in card, "    0,\n" * 1000 in card) == (False, True)
    path = f"/console/inbox/{ask['id']}/decide"
    assert send(browser, path, outcome="accepted").status == 200
    until(lambda: browser.send("GET", f"/runs/{ask['run']}").json["state"] == "done")
    assert "mail longest" in (alice.acme.folder / "ran.txt").read_text()


def test_an_answer_for_the_future_is_a_rule_that_can_be_ended(alice: Somebody) -> None:
    browser = alice.browser()
    ask = asked(browser, "always")
    path = f"/console/inbox/{ask['id']}/decide"
    assert send(browser, path, outcome="accepted", remember="yes").status == 200
    last(browser, ask["run"])
    (rule,) = browser.send("GET", "/console/inbox.json").json["rules"]
    talk(browser, "always", "asks")
    assert browser.send("GET", "/console/inbox.json").json["asks"] == []
    assert send(browser, f"/console/inbox/rules/{rule['rule']}/end").status == 204
    assert browser.send("GET", "/rules").json["rules"] == []


def test_several_are_declined_together_and_each_by_itself(alice: Somebody) -> None:
    browser = alice.browser()
    ids = [asked(browser, f"batch {number}")["id"] for number in range(2)]
    body = "&".join(f"ask={each}" for each in [*ids, "int_unknown"])
    form = [("content-type", "application/x-www-form-urlencoded")]
    reply = browser.send("POST", "/console/inbox/deny", body.encode(), form)
    assert (reply.status, b"approval_not_found" in reply.body or b"not_found" in reply.body) == (
        200,
        True,
    )
    assert [question(browser, each)["outcome"] for each in ids] == ["rejected", "rejected"]
    none = browser.send("POST", "/console/inbox/deny", b"", form)
    assert none.status == 400


def test_what_somebody_else_is_asked_is_not_there(alice: Somebody, acme: Organisation) -> None:
    ask = asked(alice.browser(), "mine alone")
    for options in ((), ("--role", "viewer")):
        other = Somebody(acme, *options).browser()
        assert other.send("GET", f"/console/inbox/{ask['id']}/card").status == 404
        reply = send(other, f"/console/inbox/{ask['id']}/decide", outcome="accepted")
        assert reply.status == 404
        assert other.send("GET", "/console/inbox.json").json["asks"] == []
    assert question(alice.browser(), ask["id"])["status"] == "open"


def test_who_only_reads_answers_nothing(alice: Somebody, acme: Organisation) -> None:
    ask = asked(alice.browser(), "look")
    options = ("--person", alice.name, "--scope", "run:read")
    narrow = Browser(acme)
    narrow.by_token(acme.new_token(f"{alice.name}-reads", *options))
    assert narrow.send("GET", "/console/inbox").status == 200
    refused = send(narrow, f"/console/inbox/{ask['id']}/decide", outcome="accepted")
    assert (refused.status, b"permission_missing" in refused.body) == (403, True)
    assert question(narrow, ask["id"])["status"] == "open"
