"""What somebody tries who may not: another role's rows, frames, and scripts in what is replayed."""

import pytest

from carnet.core.people.permissions import ROLES
from carnet.http.exchange import Row
from tests.console.pages import CHANGES, PAGES, path_of
from tests.gateway.people.browser import Browser, Somebody
from tests.support.http import chat_body
from tests.support.organisation import Organisation

SCRIPT = "<script>alert(1)</script>"
BREAKS = '"><img src=x onerror=alert(1)>'
EVERY = [row for row in (*PAGES, *CHANGES) if row.permission is not None]


@pytest.fixture(scope="module")
def narrow(acme: Organisation) -> Browser:
    """Signed in by a token that may pay, and nothing that a page shows."""
    nobody = Somebody(acme)
    token = acme.new_token(f"{nobody.name}-narrow", "--person", nobody.name, "--scope", "pay")
    browser = Browser(acme)
    assert browser.by_token(token).status == 201
    return browser


@pytest.mark.parametrize("row", EVERY, ids=lambda row: f"{row.method} {row.path}")
def test_every_row_is_refused_without_its_permission(
    narrow: Browser, viewer: Somebody, row: Row
) -> None:
    refused = narrow.send(row.method, path_of(row), b"" if row.method == "POST" else None)
    assert (refused.status, b"permission_missing" in refused.body) == (403, True)
    if row.permission not in ROLES["viewer"]:
        assert viewer.browser().send(row.method, path_of(row), b"").status == 403


@pytest.mark.parametrize("row", [*PAGES, *CHANGES], ids=lambda row: f"{row.method} {row.path}")
def test_what_is_refused_stands_in_no_frame_either(narrow: Browser, row: Row) -> None:
    path = path_of(row)
    if path.partition("?")[0].endswith(".json"):
        return  # data
    reply = narrow.send(row.method, path, b"" if row.method == "POST" else None)
    assert reply.headers["x-frame-options"] == "DENY"
    if reply.body:
        assert "frame-ancestors 'none'" in reply.headers["content-security-policy"]


def test_what_is_replayed_is_text(acme: Organisation) -> None:
    browser = Somebody(acme).browser()
    body = chat_body(SCRIPT + BREAKS, "echo")
    reply = browser.send("POST", "/v1/chat/completions", body)
    assert reply.status == 200, reply.body
    run, turn = (reply.headers[f"x-tangle-{name}id"] for name in ("run", "turn"))
    for how in ("same", "new"):
        page = browser.send("POST", f"/console/runs/{run}/replay?as={how}&turn={turn}", b"")
        assert page.status == 200, page.body
        assert b"alert(1)" in page.body
        assert b"<script>" not in page.body
        assert b"<img" not in page.body
        assert page.headers["x-frame-options"] == "DENY"


@pytest.mark.parametrize("path", ["//evil.example", "https://evil.example/", "%2F%2Fevil.example"])
def test_a_run_that_is_asked_for_by_its_id_leads_nowhere_else(admin: Somebody, path: str) -> None:
    reply = admin.browser().send("GET", f"/console/runs?q={path.replace(':', '%3A')}")
    if reply.status == 303:
        assert reply.headers["location"].startswith("/console/runs/")
        assert "//" not in reply.headers["location"]
    else:
        assert reply.status == 400
