"""Requests with a cookie: who has signed in may what her token may, from our own pages alone."""

import pytest

from carnet.testing.wait import until
from tests.gateway.people.browser import Browser, Somebody
from tests.support.http import chat_body
from tests.support.organisation import Organisation


@pytest.fixture(scope="module")
def alice(acme: Organisation) -> Somebody:
    return Somebody(acme)


def test_who_has_signed_in_calls_and_sees_her_runs_as_with_her_token(
    acme: Organisation, alice: Somebody
) -> None:
    browser = alice.browser()
    reply = browser.chat("hello", "paid")
    assert reply.status == 200, reply.body
    run = reply.headers["x-tangle-runid"]
    assert browser.send("GET", f"/runs/{run}").json["run"] == run
    assert acme.get(f"/runs/{run}", token=alice.token).status == 200
    paid = browser.send("GET", "/ledger").json
    assert paid == acme.get("/ledger", token=alice.token).json
    assert paid["entries"]


def test_a_message_is_answered_and_kept_for_her(acme: Organisation, alice: Somebody) -> None:
    browser = alice.browser()
    sent = browser.post("/message", {"content": "hello", "agent": "paid"})
    assert (sent.status, b'"done"' in sent.body or b"event: done" in sent.body) == (200, True)
    mine = browser.send("GET", "/conversations").json["conversations"]
    assert mine == acme.get("/conversations", token=alice.token).json["conversations"]
    assert Somebody(acme).browser().send("GET", "/conversations").json["conversations"] == []


def test_a_session_may_no_more_than_its_token_and_she(acme: Organisation) -> None:
    bob = Somebody(acme)
    narrow = acme.new_token(f"{bob.name}-narrow", "--person", bob.name, "--scope", "run:read")
    browser = Browser(acme)
    assert browser.by_token(narrow).status == 201
    assert browser.send("GET", "/session").json["may"] == ["run:read"]
    refused = browser.chat()
    assert (refused.status, refused.code) == (403, "permission_missing")
    assert browser.send("GET", "/people").code == "permission_missing"
    wide = bob.browser()
    acme.carnet("people", "roles", bob.name, "viewer")
    until(lambda: wide.chat().status == 403)


def test_a_change_without_the_csrf_token_does_nothing(acme: Organisation, alice: Somebody) -> None:
    browser, before = alice.browser(), len(acme.get("/runs", token=alice.token).json["runs"])
    for csrf in ("", "x", alice.browser().csrf):
        reply = browser.send(
            "POST",
            "/v1/chat/completions",
            chat_body("hi", "paid"),
            [("content-type", "application/json"), ("x-csrf-token", csrf)],
        )
        assert (reply.status, reply.code) == (403, "cross_site")
    assert len(acme.get("/runs", token=alice.token).json["runs"]) == before


@pytest.mark.parametrize(
    "field",
    [
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ],
)
def test_for_the_page_of_another_site_she_is_nobody(
    alice: Somebody, field: tuple[str, str]
) -> None:
    browser = alice.browser()
    for method, path in (("GET", "/runs"), ("POST", "/message"), ("DELETE", "/session")):
        reply = browser.send(method, path, b"{}", [field])
        assert (reply.status, reply.code) == (403, "cross_site"), path
    assert browser.send("GET", "/healthz", fields=[field]).status == 200
    assert browser.send("GET", "/runs").status == 200


def test_a_cookie_that_is_no_good_matters_only_where_somebody_has_to_be_known(
    acme: Organisation, alice: Somebody
) -> None:
    browser = Browser(acme)
    name = f"carnet_session_{acme.port}"
    for cookie in (f"{name}=x", f"{name}=a; {name}=b", f"{name}={alice.token}"):
        browser.cookie = cookie
        assert browser.send("GET", "/runs").code == "session_invalid"
        assert browser.send("GET", "/healthz").status == 200
        assert browser.send("GET", "/.well-known/carnet.json").status == 200


def test_what_a_program_shows_goes_before_a_cookie(acme: Organisation, alice: Somebody) -> None:
    browser = alice.browser()
    other = Somebody(acme)
    fields = [("authorization", f"Bearer {other.token}")]
    assert browser.send("GET", "/session", fields=fields).json["person"] == other.name
    browser.cookie = f"carnet_session_{acme.port}=stale"  # which a page cannot take away
    assert browser.by_token(other.token).status == 201


def test_neither_a_cookie_nor_a_code_is_a_bearer(acme: Organisation, alice: Somebody) -> None:
    _, _, secret = alice.browser().cookie.partition("=")
    for shown in (secret, alice.code()):
        reply = acme.get("/runs", token=shown)
        assert (reply.status, reply.code) == (401, "token_invalid")


def test_no_file_and_no_log_holds_a_cookie_a_code_or_a_csrf_token(
    acme: Organisation, alice: Somebody
) -> None:
    browser, code = Browser(acme), alice.code()
    assert browser.by_code(code).status == 201
    browser.chat("hello", "paid")
    browser.send("DELETE", "/session")
    browser.send("GET", "/runs")
    written = acme.written()
    for secret in (code, browser.cookie.partition("=")[2] or "no cookie", browser.csrf):
        assert secret.encode() not in written
