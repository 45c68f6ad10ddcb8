"""Two people, and two roles: each tries every action of the console on what is the other's."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest

from carnet.http.exchange import Row
from tests.console.owner.test_chat import FORM, send, talk
from tests.console.owner.test_inbox import asked
from tests.console.pages import CHANGES, path_of
from tests.gateway.people.browser import Browser, Somebody
from tests.support.organisation import Organisation

Look = Callable[[], dict[str, Any]]

OWN = {"/console/sign-out", "/console/agents/{agent}/try"}  # hers, at her own cost
ACTIONS = ("pause", "fire", "delete", "rotate")
TRIED = [row for row in CHANGES if row.path not in OWN]
HERE = {"agent": "keeper", "path": "notes.md"}


def named(row: Row) -> str:
    return row.path


@pytest.fixture(scope="module")
def hers(acme: Organisation) -> tuple[dict[str, str], Look]:
    """Something of everything that is alice's, and how it is; nobody has answered her question."""
    alice = Somebody(acme).browser()
    talk(alice, "first", "asks")
    (answered,) = alice.send("GET", "/approvals").json["approvals"]
    send(alice, f"/console/inbox/{answered['id']}/decide", outcome="accepted", remember="yes")
    ask = asked(alice, "second")
    send(alice, "/console/memory/write", content="mine", **HERE)
    made = {"name": "daily", "agent": "echo", "cron": "0 9 1 1 *", "message": "mine"}
    assert send(alice, "/console/triggers/schedules/add", **made).status == 204
    (rule,) = alice.send("GET", "/rules").json["rules"]
    conversation = talk(alice, "mine", "echo")
    who = alice.send("GET", "/session").json["person"]
    names = {
        "run": ask["run"],
        "conversation": conversation,
        "ask": ask["id"],
        "number": str(rule["rule"]),
        "kind": "schedules",
        "trigger": "daily",
        "person": who,
    }

    def look() -> dict[str, Any]:
        paths = [f"/runs/{ask['run']}", f"/conversations/{conversation}", "/schedules/daily"]
        paths += [f"/approvals/{ask['id']}", "/rules", "/memory/keeper/notes.md", "/runs"]
        found = {path: alice.send("GET", path).json for path in paths}
        found["keys"] = acme.get("/.well-known/jwks.json").json
        found["may"] = alice.send("GET", "/session").json["may"]
        return found

    return names, look


def attempt(browser: Browser, row: Row, names: dict[str, str]) -> list[int]:
    """What somebody else is answered who sends all that the action could ask for."""
    form = {
        "outcome": "rejected",
        "ask": names["ask"],
        "title": "theirs",
        "archived": "true",
        "role": "admin",
        "permissions": "admin:runs",
        "content": "theirs",
        "version": "1",
        "lead": "0",
        "overlap": "0",
        **HERE,
    }
    found = []
    for action in ACTIONS if "{action}" in row.path else ("",):
        path = path_of(row, {**names, "action": action} if action else names)
        found.append(browser.send("POST", path, urlencode(form).encode(), [FORM]).status)
    return found


@pytest.mark.parametrize("role", ["viewer", "operator"])
@pytest.mark.parametrize("row", TRIED, ids=named)
def test_nobody_does_anything_to_what_is_anothers(
    acme: Organisation, hers: tuple[dict[str, str], Look], row: Row, role: str
) -> None:
    names, look = hers
    before = look()
    statuses = attempt(Somebody(acme, "--role", role).browser(), row, names)
    assert look() == before
    if "{" in row.path.replace("{kind}/add", ""):
        assert set(statuses) <= {400, 403, 404}


def test_who_only_looks_changes_nothing_that_is_hers_either(acme: Organisation) -> None:
    viewer = Somebody(acme, "--role", "viewer").browser()
    tried = viewer.send("POST", "/console/agents/echo/try", b"text=hello", [FORM])
    assert tried.status == 403
    assert viewer.send("GET", "/runs").json["runs"] == []
    for path in ("/console/memory/write", "/console/memory/undo", "/console/memory/delete"):
        assert send(viewer, path, content="x", **HERE).status == 403
    for kind in ("schedules", "hooks"):
        refused = send(viewer, f"/console/triggers/{kind}/add", name="x", agent="echo")
        assert refused.status == 403


def test_who_guesses_at_the_form_is_told_nothing_more_for_a_while(acme: Organisation) -> None:
    replies = [send(Browser(acme), "/console/sign-in", token=f"guess-{n}") for n in range(8)]
    assert {reply.status for reply in replies[:5]} == {401}
    assert all(reply.status == 429 and "retry-after" in reply.headers for reply in replies[5:])
    good = send(Browser(acme), "/console/sign-in", token=Somebody(acme).token)
    assert good.status == 303  # nobody is locked out by who guesses
