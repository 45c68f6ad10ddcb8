"""What all pages share: their headers, their names, their twins, and whom they are shown to."""

import http.client
import json
import re

import pytest

from carnet.core.people.permissions import ROLES, VIEWER
from carnet.http.exchange import Row
from tests.console.pages import CHANGES, PAGES, path_of
from tests.gateway.people.browser import Browser, Somebody
from tests.support.http import Reply, request
from tests.support.organisation import Organisation

LIVE = "/console/live/"
WHOLE = [row for row in PAGES if row.media == "text/html"]


def under(acme: Organisation, host: str, path: str, cookie: str = "") -> Reply:
    """Ask for a page under another name of the same address."""
    line = http.client.HTTPConnection("127.0.0.1", acme.port, timeout=60)
    line.putrequest("GET", path, skip_host=True, skip_accept_encoding=True)
    line.putheader("host", host)
    if cookie:
        line.putheader("cookie", cookie)
    line.endheaders()
    reply = line.getresponse()
    fields = {name.lower(): value for name, value in reply.getheaders()}
    found = Reply(reply.status, fields, reply.read())
    line.close()
    return found


@pytest.fixture(scope="module")
def names(admin: Somebody) -> dict[str, str]:
    """Something of hers that each page can show."""
    browser = admin.browser()
    talk = browser.post("/message", {"content": "hello", "agent": "words"})
    return {
        "run": browser.chat("hello", "words").headers["x-tangle-runid"],
        "conversation": talk.headers["x-conversation-id"],
        "agent": "words",
        "person": admin.name,
    }


@pytest.mark.parametrize("row", WHOLE, ids=lambda row: row.path)
def test_a_page_is_guarded_against_scripts_frames_and_other_hosts(
    admin: Somebody, names: dict[str, str], row: Row
) -> None:
    reply = admin.browser().send("GET", path_of(row, names))
    assert (reply.status, reply.headers["content-type"]) == (200, "text/html; charset=utf-8")
    policy = reply.headers["content-security-policy"].split("; ")
    assert {"default-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"} <= set(policy)
    assert "unsafe" not in reply.headers["content-security-policy"]
    assert reply.headers["x-frame-options"] == "DENY"
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["cache-control"] == "no-store"
    body = reply.body.decode()
    assert re.findall(r"<script(?![^>]*\ssrc=\"/console/static/)", body) == []
    assert re.findall(r"\s(?:style|on[a-z]+)=", body) == []
    assert re.findall(r"(?:src|href|action|hx-[a-z:]+)=\"(?:[a-z]+:)?//", body) == []


@pytest.mark.parametrize("row", WHOLE, ids=lambda row: row.path)
def test_a_page_has_a_twin_with_its_data(admin: Somebody, names: dict[str, str], row: Row) -> None:
    browser, path = admin.browser(), path_of(row, names)
    page = browser.send("GET", path).body.decode()
    twin = re.search(r'<a href="([^"]+)" data-twin', page)
    assert twin is not None
    data = browser.send("GET", twin[1])
    assert (data.status, data.headers["content-type"]) == (200, "application/json")
    assert f"<title>{data.json['title']} " in page


@pytest.mark.parametrize("row", PAGES, ids=lambda row: row.path)
def test_nobody_is_shown_a_page_and_is_told_how_to_sign_in(acme: Organisation, row: Row) -> None:
    reply = request("GET", acme.url + path_of(row), [("accept", "text/html")])
    assert reply.status == 401
    if path_of(row).endswith(".json"):
        assert reply.code == "token_missing"
    else:
        assert b'action="/console/sign-in"' in reply.body
        assert reply.headers["x-frame-options"] == "DENY"


@pytest.mark.parametrize("row", [*PAGES, *CHANGES], ids=lambda row: f"{row.method} {row.path}")
def test_a_role_may_what_the_row_says_and_no_more(viewer: Somebody, row: Row) -> None:
    allowed = row.permission is None or row.permission in ROLES[VIEWER]
    if allowed:
        return  # what a viewer may, the other tests look at
    reply = viewer.browser().send(row.method, path_of(row), b"")
    assert reply.status == 403
    assert b"permission_missing" in reply.body


@pytest.mark.parametrize("row", CHANGES, ids=lambda row: f"{row.method} {row.path}")
@pytest.mark.parametrize("csrf", ["", "x"])
def test_a_change_without_the_csrf_token_is_refused(admin: Somebody, row: Row, csrf: str) -> None:
    browser = admin.browser()
    reply = browser.send(row.method, path_of(row), b"", [("x-csrf-token", csrf)])
    assert reply.status == 403
    assert b"cross_site" in reply.body
    assert browser.send("GET", "/session").status == 200


@pytest.mark.parametrize(
    "field", [("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")]
)
def test_the_page_of_another_site_reads_and_changes_nothing(
    admin: Somebody, field: tuple[str, str]
) -> None:
    browser = admin.browser()
    assert browser.send("GET", "/console/runs", fields=[field]).status == 403
    assert browser.send("POST", "/console/sign-out", b"", [field]).status == 403
    assert browser.send("GET", "/session").status == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8700", "127.0.0.1.evil.example"])
def test_a_name_of_somebody_else_that_leads_here_is_refused(
    acme: Organisation, admin: Somebody, host: str
) -> None:
    browser = admin.browser()
    for row in WHOLE:
        reply = under(acme, host, path_of(row), browser.cookie)
        assert (reply.status, b"host_unknown" in reply.body) == (421, True)
    twin = under(acme, host, "/console/runs.json", browser.cookie)
    assert (twin.status, twin.code) == (421, "host_unknown")
    assert under(acme, host, "/", browser.cookie).status in {404, 421}


@pytest.mark.parametrize("host", ["localhost", "acme.example", "carnet.localhost:1", "[::1]"])
def test_a_name_of_ours_is_shown_its_pages(acme: Organisation, admin: Somebody, host: str) -> None:
    assert under(acme, host, "/console/", admin.browser().cookie).status == 200


def test_only_pages_that_somebody_may_see_are_listed(acme: Organisation) -> None:
    nobody = Somebody(acme)
    narrow = acme.new_token(f"{nobody.name}-pay", "--person", nobody.name, "--scope", "pay")
    browser = Browser(acme)
    assert browser.by_token(narrow).status == 201
    page = browser.send("GET", "/console/").body.decode()
    assert 'href="/console/runs"' not in page
    assert browser.send("GET", "/console/runs").status == 403


def test_a_program_with_a_token_reads_the_twins(acme: Organisation, operator: Somebody) -> None:
    reply = acme.get("/console/runs.json", token=operator.token)
    assert reply.status == 200
    assert reply.json["runs"] == acme.get("/runs", token=operator.token).json["runs"]
    assert json.loads(acme.get("/openapi.json").body)["paths"].get("/console/runs") is None
