"""The pages of runs over HTTP: what they show, to whom, and that nothing in them is a script."""

import json
from decimal import Decimal
from urllib.parse import quote

import pytest

from tests.gateway.people.browser import Somebody
from tests.support.http import chat_body, stream
from tests.support.organisation import Organisation

SCRIPT = "<script>alert(1)</script>"
BREAKS = '"><img src=x onerror=alert(1)>'


def test_a_run_is_drawn_with_its_hops_its_money_and_what_was_said(
    acme: Organisation, admin: Somebody
) -> None:
    browser = admin.browser()
    run = browser.chat("paid hello there", "relay").headers["x-tangle-runid"]
    page = browser.send("GET", f"/console/runs/{run}").body.decode()
    data = browser.send("GET", f"/console/runs/{run}.json").json
    assert [(row["agent"], row["level"]) for row in data["waterfall"]] == [
        ("relay", 0),
        ("paid", 1),
    ]
    assert [node["depth"] for node in data["graph"]["nodes"]] == [0, 1]
    assert data["run"]["cost"] == acme.get(f"/runs/{run}", token=admin.token).json["cost"]
    paid = browser.send("GET", f"/ledger?run={run}").json["entries"]
    assert sum(Decimal(entry["amount"]) for entry in paid) == Decimal(data["run"]["cost"])
    assert data["run"]["cost"] == "0.0002"
    assert [each["asked"] for each in data["transcript"]] == ["paid hello there", "hello there"]
    assert {ground["guard"] for ground in data["why"][0]["grounds"]} > {"known caller", "paying"}
    for word in ("Waterfall", "Chain", "Money", "Transcript", "Why", "0.0002 credits"):
        assert word in page


def test_what_somebody_wrote_is_text_in_every_page(admin: Somebody) -> None:
    browser = admin.browser()
    run = f"run-{BREAKS}".replace(" ", "+")
    fields = [
        ("content-type", "application/json"),
        ("x-tangle-runid", run),
        ("x-tangle-turnid", "turn-'\"><script>alert(1)</script>"),
        ("x-tangle-speaker", SCRIPT),
        ("x-tangle-depth", "1"),
    ]
    reply = browser.send("POST", "/v1/chat/completions", chat_body(SCRIPT + BREAKS), fields)
    assert reply.status == 200, reply.body
    named = quote(run, safe="")
    turn = quote(fields[2][1], safe="")
    parts = (
        "/console/",
        "/console/runs",
        f"/console/runs?q=agent:{quote(SCRIPT)}",
        f"/console/runs/{named}",
        f"/console/runs/{named}/transcript",
        f"/console/runs/{named}/wire?turn={turn}",
    )
    for path in parts:
        page = browser.send("GET", path)
        assert page.status == 200, (path, page.body)
        assert b"<script>" not in page.body, path
        assert b"<img" not in page.body, path
    whole = browser.send("GET", f"/console/runs/{named}.json").json
    assert SCRIPT in json.dumps(whole)


def test_a_run_whose_id_looks_like_a_twin_has_both(admin: Somebody) -> None:
    browser = admin.browser()
    fields = [("content-type", "application/json"), ("x-tangle-runid", "looks-like.json")]
    browser.send("POST", "/v1/chat/completions", chat_body(), fields)
    listed = browser.send("GET", "/console/runs").body.decode()
    assert 'href="/console/runs/looks-like%2Ejson"' in listed
    page = browser.send("GET", "/console/runs/looks-like%2Ejson")
    assert page.headers["content-type"].startswith("text/html")
    data = browser.send("GET", "/console/runs/looks-like.json.json")
    assert data.json["run"]["run"] == "looks-like.json"


def test_a_run_of_somebody_else_is_not_there(admin: Somebody, operator: Somebody) -> None:
    run = admin.browser().chat("mine", "words").headers["x-tangle-runid"]
    browser = operator.browser()
    for path in (
        f"/console/runs/{run}",
        f"/console/runs/{run}.json",
        f"/console/runs/{run}/transcript",
        f"/console/runs/{run}/wire?turn=x",
        f"/console/live/runs/{run}",
    ):
        reply = browser.send("GET", path)
        assert (reply.status, b"run_not_found" in reply.body) == (404, True), path
    assert run not in browser.send("GET", "/console/runs").body.decode()
    assert browser.send("POST", f"/console/runs/{run}/cancel", b"").status == 404


def test_why_is_for_who_sees_all_runs(operator: Somebody) -> None:
    browser = operator.browser()
    run = browser.chat("hello", "words").headers["x-tangle-runid"]
    data = browser.send("GET", f"/console/runs/{run}.json").json
    assert (data["why"], data["waterfall"][0]["agent"]) == (None, "words")


@pytest.mark.parametrize(
    ("query", "agents"),
    [
        ("state=failed", {"broken"}),
        ("q=state:failed+agent:broken", {"broken"}),
        ("q=agent:words", {"words"}),
    ],
)
def test_the_list_shows_the_runs_that_fit(acme: Organisation, query: str, agents: set[str]) -> None:
    somebody = Somebody(acme)
    browser = somebody.browser()
    for agent in ("broken", "words"):
        browser.chat("hello", agent)
    found = browser.send("GET", f"/console/runs.json?{query}").json["runs"]
    assert {run["agent"] for run in found} == agents
    page = browser.send("GET", f"/console/runs?{query}")
    assert page.status == 200
    assert browser.send("GET", "/console/runs?q=x:y").status == 400
    lone = browser.send("GET", "/console/runs?q=conv_1")
    assert (lone.status, lone.headers["location"]) == (303, "/console/runs/conv_1")


def test_runs_that_were_refused_stand_before_the_others(acme: Organisation) -> None:
    browser = Somebody(acme).browser()
    for agent in ("broken", "words"):
        browser.chat("hello", agent)
    found = browser.send("GET", "/console/runs.json").json["runs"]
    assert [run["state"] for run in found] == ["failed", "done"]


def test_the_wire_of_a_turn_shows_the_chain_and_no_credential(admin: Somebody) -> None:
    browser = admin.browser()
    run = browser.chat("it's $HOME `id`", "words").headers["x-tangle-runid"]
    turn = browser.send("GET", f"/console/runs/{run}.json").json["waterfall"][0]["turn"]
    page = browser.send("GET", f"/console/runs/{run}/wire?turn={turn}").body.decode()
    for word in ("x-tangle-turnid", turn, "not recorded", "Bearer $CARNET_TOKEN", "curl -i"):
        assert word in page
    assert admin.token not in page
    missing = browser.send("GET", f"/console/runs/{run}/wire?turn=none")
    assert missing.status == 404


def test_a_run_is_followed_live_until_it_has_ended(acme: Organisation, admin: Somebody) -> None:
    """Two browsers watch; both see it run, and both see its end."""
    watching = [admin.browser(), admin.browser()]
    run = f"live-{admin.name}"
    fields = [
        ("authorization", f"Bearer {admin.token}"),
        ("content-type", "application/json"),
        ("x-tangle-runid", run),
    ]
    words = stream(
        "POST", f"{acme.url}/v1/chat/completions", fields, chat_body(run, "held", stream=True)
    )
    next(words)  # it runs
    path = f"{acme.url}/console/live/runs/{run}"
    views = [stream("GET", path, [("cookie", browser.cookie)]) for browser in watching]
    for view in views:
        assert any(b'class="state running"' in line for line in view)
    (acme.folder / run).touch()
    for view in views:
        frames = b"".join(view)
        assert b'class="state done"' in frames
        assert frames.endswith(b"event: end\ndata: {}\n\n")
    assert b"whole" in b"".join(words)


def test_a_run_is_cancelled_by_a_button(acme: Organisation, operator: Somebody) -> None:
    browser, run = operator.browser(), f"stop-{operator.name}"
    fields = [
        ("authorization", f"Bearer {operator.token}"),
        ("content-type", "application/json"),
        ("x-tangle-runid", run),
    ]
    words = stream(
        "POST", f"{acme.url}/v1/chat/completions", fields, chat_body("600", "slow", stream=True)
    )
    next(words)
    assert browser.send("POST", f"/console/runs/{run}/cancel", b"").status == 200
    assert b"cancelled" in b"".join(words)
    page = browser.send("GET", f"/console/runs/{run}.json").json
    assert (page["run"]["state"], page["waterfall"][0]["code"]) == ("failed", "cancelled")
