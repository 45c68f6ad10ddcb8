"""What the drawer shows of a turn is what went over the wire, in each dialect, and no more."""

import json
import re
from html import unescape
from typing import Any

import pytest

from tests.gateway.people.browser import Browser, Somebody
from tests.support.agents_api.client import Client as AgentsApi
from tests.support.agents_api.client import message as agents_message
from tests.support.http import Reply, chat_body, request
from tests.support.organisation import Organisation
from tests.support.served import executions
from tests.support.signing.signed import Line, Sender, message

RUN, TURN = "x-tangle-runid", "x-tangle-turnid"
DEPTH = "x-tangle-forwarded-depth"
REDACTED = "*** (not recorded)"
JSON = ("content-type", "application/json")


class Drawer:
    """The drawer of the first turn of a run."""

    def __init__(self, browser: Browser, run: str) -> None:
        self.data = browser.send("GET", f"/runs/{run}?full=true").json["turns"][0]
        path = f"/console/runs/{run}/wire?turn={self.data['turn']}"
        self.page = browser.send("GET", path).body.decode()
        asked, _, answered = self.page.partition("<h4>Answer</h4>")
        self.request, self.answer = fields(asked), fields(answered)
        self.highlighted = re.findall(r'class="chain-field"><th scope="row">([^<]+)', self.page)


def fields(page: str) -> dict[str, str]:
    """The header fields of a part of a page, and the path by its method."""
    rows = re.findall(r'<tr[^>]*><th scope="row">([^<]+)</th><td><code>([^<]*)', page)
    return {name: unescape(value) for name, value in rows}


def chat(browser: Browser, path: str, *more: tuple[str, str], text: str = "hi") -> Reply:
    reply = browser.send("POST", path, chat_body(text, "words"), [JSON, *more])
    assert reply.status == 200, reply.body
    return reply


def test_a_chat_shows_its_path_and_no_header_that_it_did_not_bring(admin: Somebody) -> None:
    browser = admin.browser()
    plain = chat(browser, "/v1/chat/completions")
    drawer = Drawer(browser, plain.headers[RUN])
    assert drawer.request == {"POST": "/v1/chat/completions", "authorization": REDACTED}
    assert drawer.answer == {name: plain.headers[name] for name in (RUN, TURN)}


def test_a_chat_shows_the_six_headers_that_it_brought(admin: Somebody) -> None:
    browser = admin.browser()
    brought = {
        RUN: f"wire-{admin.name}",
        TURN: "t-1",
        "x-tangle-parent-turnid": "above",
        "x-tangle-speaker": "lead",
        DEPTH: "2",
    }
    chat(browser, "/agents/words/v1/chat/completions", *brought.items())
    drawer = Drawer(browser, brought[RUN])
    path = {"POST": "/agents/words/v1/chat/completions", "authorization": REDACTED}
    assert drawer.request == path | brought
    assert set(drawer.highlighted) == set(brought)
    assert admin.token not in drawer.page


@pytest.mark.parametrize("path", ["/agents/words/a2a", "/agents/words/a2a/message:send"])
def test_a_message_of_a2a_shows_the_path_of_its_binding(admin: Somebody, path: str) -> None:
    run = f"a2a-{admin.name}-{len(path)}"
    sent: Any = {"message": {"messageId": run, "role": "ROLE_USER", "parts": [{"text": "hello"}]}}
    if path.endswith("a2a"):
        sent = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": sent}
    browser = admin.browser()
    own = [("a2a-version", "1.0"), (RUN, run), JSON]
    reply = browser.send("POST", path, json.dumps(sent).encode(), own)
    assert (reply.status, reply.headers[RUN]) == (200, run), reply.body
    drawer = Drawer(browser, run)
    assert drawer.request == {"POST": path, "authorization": REDACTED, RUN: run}
    assert drawer.answer.items() <= reply.headers.items()
    assert "A2A" in drawer.page
    assert "hello" in browser.send("GET", f"/console/runs/{run}/transcript").body.decode()


def test_a_message_of_agents_api_shows_its_path(acme: Organisation, admin: Somebody) -> None:
    reply = AgentsApi(acme.url, admin.token).ask("words", "message/send", agents_message("hello"))
    assert reply.status == 200, reply.body
    drawer = Drawer(admin.browser(), reply.headers[RUN])
    path = {"POST": "/agents-api/v1/agent/words", "authorization": REDACTED}
    assert drawer.request == path
    assert drawer.answer == {name: reply.headers[name] for name in (RUN, TURN)}


def test_a_signed_call_shows_who_signed_and_what_was_signed(
    acme: Organisation, admin: Somebody
) -> None:
    sender = Sender("agent://wire-client")
    acme.carnet("peers", "add", sender.identity, "--key", sender.public)
    with Line(acme.port) as line:
        reply = line.send(
            message(
                sender,
                "agent://words.acme.example",
                target="/agents/words/agent/message",
                payload={"text": "signed hello"},
                auth={"scheme": "bearer", "token": acme.token},
            )
        )
    assert reply.status == 200, reply.body
    drawer = Drawer(admin.browser(), reply.headers[RUN])
    assert drawer.request == {
        "POST": "/agents/words/agent/message",
        "signature-input": REDACTED,
        "signature": REDACTED,
    }
    assert drawer.answer == {RUN: reply.headers[RUN]}
    assert TURN not in reply.headers
    for words in ("agent://wire-client", "What was signed", "signed hello"):
        assert words in drawer.page
    base = drawer.data["wire"]["base"].splitlines()
    assert [line.partition(":")[0] for line in base] == [
        '"@method"',
        '"@path"',
        '"content-digest"',
        '"@signature-params"',
    ]
    assert base[0] == '"@method": POST'
    assert unescape(drawer.page).count(base[2]) == 1
    assert acme.token not in drawer.page


def test_a_call_inside_the_gateway_shows_no_request(admin: Somebody) -> None:
    browser = admin.browser()
    run = browser.chat("paid hello there", "relay").headers[RUN]
    child = browser.send("GET", f"/runs/{run}").json["turns"][0]["children"][0]["turn"]
    page = browser.send("GET", f"/console/runs/{run}/wire?turn={child}").body.decode()
    assert "No request came for it" in page
    assert fields(page) == {}
    assert "Replay this turn" not in page


# ------------------------------------------------------------------ asking again


def replay(browser: Browser, run: str, turn: str, how: str) -> Reply:
    return browser.send("POST", f"/console/runs/{run}/replay?as={how}&turn={turn}", b"")


@pytest.mark.parametrize("more", [(), ((RUN, "named"), (TURN, "t"), (DEPTH, "1"))])
def test_a_turn_that_is_replayed_is_answered_from_its_record(
    acme: Organisation, more: tuple[tuple[str, str], ...]
) -> None:
    somebody = Somebody(acme)
    browser = somebody.browser()
    reply = chat(browser, "/v1/chat/completions", *more, text="once")
    run, turn = reply.headers[RUN], reply.headers[TURN]
    ran = executions(acme.folder, "words")
    again = replay(browser, run, turn, "same")
    assert (again.status, b"Answered from the record" in again.body) == (200, True), again.body
    assert f'data-ring="{turn}"'.encode() in again.body
    assert reply.json["choices"][0]["message"]["content"].encode() in again.body
    assert executions(acme.folder, "words") == ran
    assert len(browser.send("GET", "/console/runs.json").json["runs"]) == 1


def test_a_turn_is_asked_again_as_a_new_one(acme: Organisation) -> None:
    browser = Somebody(acme).browser()
    reply = chat(browser, "/v1/chat/completions", text="twice")
    again = replay(browser, reply.headers[RUN], reply.headers[TURN], "new")
    assert (again.status, b"Asked as a new turn" in again.body) == (200, True), again.body
    runs = browser.send("GET", "/console/runs.json").json["runs"]
    assert len(runs) == 2
    assert all(f"/console/runs/{run['run']}" in again.body.decode() for run in runs[:1])


def test_nobody_replays_the_turn_of_somebody_else_as_that_turn(
    acme: Organisation, admin: Somebody
) -> None:
    """An operator sees it; as the same turn it would be another one, at her cost."""
    reply = chat(Somebody(acme).browser(), "/v1/chat/completions", text="hers")
    run, turn = reply.headers[RUN], reply.headers[TURN]
    ran = executions(acme.folder, "words")
    refused = replay(admin.browser(), run, turn, "same")
    assert (refused.status, b"invalid_request" in refused.body) == (400, True)
    other = Somebody(acme).browser()
    for how in ("same", "new"):
        assert replay(other, run, turn, how).status == 404
    assert executions(acme.folder, "words") == ran


def test_who_may_not_call_an_agent_does_not_by_a_replay(acme: Organisation) -> None:
    somebody = Somebody(acme)
    reply = chat(somebody.browser(), "/v1/chat/completions", text="now")
    options = ("--person", somebody.name, "--scope", "run:read")
    narrow = Browser(acme)
    assert narrow.by_token(acme.new_token(f"{somebody.name}-narrow", *options)).status == 201
    for how in ("same", "new"):
        refused = replay(narrow, reply.headers[RUN], reply.headers[TURN], how)
        assert refused.status in {400, 403, 404}
    assert request("POST", f"{acme.url}/console/runs/x/replay?as=new&turn=t").status == 401
