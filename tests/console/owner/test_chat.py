"""Conversations as pages: read, found, attributed, ended, renamed, deleted."""

import json
import re
import threading
from contextlib import closing
from urllib.parse import quote, urlencode

from carnet.testing.wait import until
from tests.engine.process import tool_call
from tests.gateway.conversations.scene import read_until
from tests.gateway.people.browser import Browser, Somebody
from tests.support.http import Reply, stream
from tests.support.model import Model, streamed
from tests.support.organisation import Organisation

SCRIPT = "<script>alert(1)</script>"
FORM = ("content-type", "application/x-www-form-urlencoded")


def send(browser: Browser, path: str, /, **fields: str) -> Reply:
    return browser.send("POST", path, urlencode(fields).encode(), [FORM])


def talk(browser: Browser, content: str, agent: str) -> str:
    reply = browser.post("/message", {"content": content, "agent": agent})
    assert reply.status == 200, reply.body
    return reply.headers["x-conversation-id"]


def test_a_conversation_is_shown_with_who_said_what(acme: Organisation, alice: Somebody) -> None:
    browser = alice.browser()
    name = talk(browser, f"{SCRIPT} the plan", "chair")  # who mentions the critic
    reply = browser.send("GET", f"/console/chat/{name}")
    assert reply.status == 200, acme.log.read_text()[-3000:]
    page = reply.body.decode()
    data = browser.send("GET", f"/console/chat/{name}.json").json
    lines = [(each["author"], each["role"]) for each in data["thread"]]
    assert [author for author, role in lines if role == "assistant"] == ["chair", "critic"]
    assert "<strong>critic</strong>" in page
    assert SCRIPT not in page
    assert SCRIPT in json.dumps(data)
    part = browser.send("GET", f"/console/chat/{name}/thread").body.decode()
    assert ("weak: " in part, "<html" in part, SCRIPT in part) == (True, False, False)


def test_a_tool_that_was_used_is_a_row_of_its_answer(alice: Somebody, model: Model) -> None:
    browser = alice.browser()
    replies = [tool_call("read_page", json.dumps({"name": SCRIPT})), streamed("It says 100.")]
    model.reply = lambda _: replies.pop(0)
    name = talk(browser, "what does it say?", "assistant")
    (tool,) = browser.send("GET", f"/console/chat/{name}.json").json["thread"][-1]["tools"]
    assert (tool["name"], tool["status"]) == ("read_page", "ok")
    page = browser.send("GET", f"/console/chat/{name}").body.decode()
    assert "✓ <code>read_page</code>" in page
    assert SCRIPT not in page


def test_conversations_are_found_by_what_was_said(alice: Somebody) -> None:
    browser = alice.browser()
    name, other = talk(browser, "about elderberries", "echo"), talk(browser, "about figs", "echo")
    found = browser.send("GET", "/console/chat.json?search=elderberries").json["conversations"]
    assert [each["id"] for each in found] == [name]
    page = browser.send("GET", "/console/chat?search=elderberries").body.decode()
    assert (f"/console/chat/{name}" in page, f"/console/chat/{other}" in page) == (True, False)


def test_a_conversation_of_somebody_else_is_not_there(alice: Somebody, acme: Organisation) -> None:
    name = talk(alice.browser(), "mine", "echo")
    other = Somebody(acme).browser()
    for path in (name, f"{name}.json", f"{name}/thread"):
        reply = other.send("GET", f"/console/chat/{path}")
        assert (reply.status, b"conversation_not_found" in reply.body) == (404, True)
    for action in ("stop", "change", "delete"):
        assert send(other, f"/console/chat/{name}/{action}", title="theirs").status == 404
    assert alice.browser().send("GET", f"/conversations/{name}").json["title"] != "theirs"


def test_a_conversation_is_renamed_put_away_and_deleted(alice: Somebody) -> None:
    browser = alice.browser()
    name = talk(browser, "hello", "echo")
    renamed = send(browser, f"/console/chat/{name}/change", title="A better one", archived="true")
    assert (renamed.status, renamed.headers["hx-redirect"]) == (204, f"/console/chat/{name}")
    kept = browser.send("GET", f"/conversations/{name}").json
    assert (kept["title"], kept["archived"]) == ("A better one", True)
    assert send(browser, f"/console/chat/{name}/delete").headers["hx-redirect"] == "/console/chat"
    assert browser.send("GET", f"/console/chat/{name}").status == 410


def test_an_answer_that_goes_on_after_a_question_is_read_along(
    alice: Somebody, acme: Organisation
) -> None:
    browser, gate = alice.browser(), acme.folder / "gate.txt"
    gate.unlink()
    try:
        name = talk(browser, "think", "ponders")
        assert _goes_on(browser, name) == (False, False)
        run = browser.send("GET", f"/conversations/{name}").json["messages"][0]["run"]
        assert f'data-waits="{run}"' in browser.send("GET", f"/console/chat/{name}").body.decode()
        cookie = [("cookie", browser.cookie)]
        live = stream("GET", f"{acme.url}/console/live/runs/{run}", cookie)
        assert next(live).startswith(b"data: ")
        _approve(browser, run)
        read_until(live, b"event: changed")  # that is what the page is told by
        assert _goes_on(browser, name) == (True, True)
        answer = stream("GET", f"{acme.url}/conversations/{name}/answer", cookie)
        read_until(answer, b"accepted, so far.")  # before it has ended
        gate.touch()
        read_until(answer, b"And is it good so?")
        read_until(live, b"event: changed")
        live.close()
        assert _goes_on(browser, name) == (False, False)
        _approve(browser, run)
        whole = b"".join(stream("GET", f"{acme.url}/conversations/{name}/answer", cookie))
        assert b"At last accepted." in whole
        assert _goes_on(browser, name) == (False, False)
    finally:
        gate.touch()


def test_a_page_is_told_of_an_answer_that_came_before_it_began_to_watch(alice: Somebody) -> None:
    browser = alice.browser()
    name = talk(browser, "go", "asks")
    page = browser.send("GET", f"/console/chat/{name}").body.decode()
    run, mark = re.findall(r'data-waits="([^"]+)" data-mark="([^"]+)"', page)[0]
    assert browser.send("GET", f"/console/chat/{name}.json").json["watched"]["mark"] == mark
    path = f"{alice.acme.url}/console/live/runs/{run}?mark={quote(mark, safe='')}"
    cookie = [("cookie", browser.cookie)]
    with closing(stream("GET", path, cookie)) as unchanged:
        assert next(unchanged).startswith(b"data: ")
        _approve(browser, run)
        read_until(unchanged, b"event: changed")
    with closing(stream("GET", path, cookie)) as late:
        read_until(late, b"event: changed")


def test_the_newest_run_that_waits_is_watched_and_no_other(alice: Somebody) -> None:
    browser = alice.browser()
    name = talk(browser, "go", "asks")
    first = _watched(browser, name)
    fields = [("x-conversation-id", name)]
    body = json.dumps({"content": "stay", "agent": "asks"}).encode()
    assert browser.send("POST", "/message", body, fields).status == 200
    page = browser.send("GET", f"/console/chat/{name}").body.decode()
    (newest,) = re.findall(r'data-waits="([^"]+)"', page)
    assert newest != first
    _approve(browser, newest)
    until(lambda: _watched(browser, name) == first)


def test_only_the_newest_page_of_a_conversation_marks_it_as_seen(alice: Somebody) -> None:
    browser = alice.browser()
    name = talk(browser, "go", "asks")
    _approve(browser, _watched(browser, name))  # and nobody reads what comes of it
    until(lambda: browser.send("GET", f"/conversations/{name}").json["unread"])
    newest = browser.send("GET", f"/conversations/{name}").json["messages"][0]["id"]
    older = browser.send("GET", f"/console/chat/{name}?before={newest}")
    assert (older.status, b"data-message" in older.body) == (200, True)
    assert b"data-unread" not in older.body
    assert b"data-unread" in browser.send("GET", f"/console/chat/{name}").body


def _watched(browser: Browser, name: str) -> str:
    found: str = browser.send("GET", f"/console/chat/{name}.json").json["watched"]["run"]
    return found


def _goes_on(browser: Browser, name: str) -> tuple[bool, bool]:
    """Whether the twin and the part of a page say that its answer is being given."""
    twin = browser.send("GET", f"/console/chat/{name}.json").json["goes_on"]
    part = browser.send("GET", f"/console/chat/{name}/thread").body.decode()
    return twin, "data-goes-on" in part


def _approve(browser: Browser, run: str) -> None:
    (ask,) = [
        each
        for each in browser.send("GET", "/approvals").json["approvals"]
        if (each["run"], each["status"]) == (run, "open")
    ]
    assert browser.post(f"/approvals/{ask['id']}", {"outcome": "accepted"}).status == 200


def test_stop_ends_the_answer_and_all_that_it_has_called(
    alice: Somebody, acme: Organisation
) -> None:
    browser, gate = alice.browser(), acme.folder / "gate.txt"
    gate.unlink()
    arguments = {"content": "hold", "agent": "leads", "client_message_id": "s-1"}
    calling = threading.Thread(target=browser.post, args=("/message", arguments))
    calling.start()
    try:
        until(lambda: _running(browser))
        (line,) = browser.send("GET", "/conversations").json["conversations"]
        stopped = send(browser, f"/console/chat/{line['id']}/stop")
        assert stopped.status == 200, stopped.body
        calling.join()
        (answer, _) = browser.send("GET", f"/conversations/{line['id']}").json["messages"]
        assert (answer["code"], answer["content"]) == ("cancelled", "half ")
        (turn,) = browser.send("GET", f"/runs/{answer['run']}").json["turns"]
        (below,) = turn["children"]
        assert (turn["state"], below["code"]) == ("failed", "cancelled")
    finally:
        gate.touch()


def _running(browser: Browser) -> bool:
    found = browser.send("GET", "/runs?state=running").json["runs"]
    return any(run["agent"] == "leads" and run["turns"] == 2 for run in found)


def test_who_only_reads_says_and_stops_nothing(acme: Organisation) -> None:
    viewer = Somebody(acme, "--role", "viewer").browser()
    page = viewer.send("GET", "/console/chat")
    assert (page.status, b'id="say"' in page.body) == (200, False)
    assert viewer.post("/message", {"content": "hello", "agent": "echo"}).status == 403
    for action in ("stop", "change", "delete"):
        refused = send(viewer, f"/console/chat/cnv_x/{action}")
        assert (refused.status, b"permission_missing" in refused.body) == (403, True)
