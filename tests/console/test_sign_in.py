"""Signing in and out by the pages."""

import pytest

from tests.gateway.people.browser import Browser, Somebody
from tests.support.http import Reply, request
from tests.support.organisation import Organisation

FORM = ("content-type", "application/x-www-form-urlencoded")


def enter(browser: Browser, token: str, *fields: tuple[str, str]) -> Reply:
    return browser.send("POST", "/console/sign-in", f"token={token}".encode(), [FORM, *fields])


def test_a_browser_that_asks_for_the_root_is_led_to_the_console(acme: Organisation) -> None:
    reply = request("GET", f"{acme.url}/", [("accept", "text/html,*/*")])
    assert (reply.status, reply.headers["location"]) == (303, "/console/")
    assert request("GET", f"{acme.url}/", [("accept", "application/json")]).status == 404
    assert request("GET", f"{acme.url}/console").headers["location"] == "/console/"


def test_somebody_signs_in_by_her_token_and_out_again(
    acme: Organisation, operator: Somebody
) -> None:
    browser = Browser(acme)
    reply = enter(browser, operator.token)
    assert (reply.status, reply.headers["location"]) == (303, "/console/")
    assert operator.token not in str(reply.headers)
    page = browser.send("GET", "/console/")
    assert (page.status, operator.name.encode() in page.body) == (200, True)
    browser.csrf = browser.send("GET", "/session").json["csrf"]
    left = browser.send("POST", "/console/sign-out", b"")
    assert (left.status, left.headers["hx-redirect"]) == (204, "/console/")
    assert browser.cookie.endswith("=")
    assert browser.send("GET", "/console/").status == 401


def test_a_link_leads_to_the_console(acme: Organisation, operator: Somebody) -> None:
    reply = Browser(acme).press(operator.link())
    assert (reply.status, reply.headers["location"]) == (303, "/console/")


@pytest.mark.parametrize("token", ["", "x", "%0d%0aset-cookie:a=b", "a" * 2000])
def test_a_wrong_token_signs_nobody_in(acme: Organisation, token: str) -> None:
    browser = Browser(acme)
    reply = enter(browser, token)
    assert reply.status in {400, 401}
    assert (b'id="refusal"' in reply.body, browser.cookie) == (True, "")


def test_the_token_of_a_machine_signs_nobody_in(acme: Organisation) -> None:
    reply = enter(Browser(acme), acme.new_token("console-machine"))
    assert (reply.status, b"person_required" in reply.body) == (403, True)


def test_the_page_of_another_site_signs_nobody_in(acme: Organisation, operator: Somebody) -> None:
    for field in (("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")):
        browser = Browser(acme)
        assert enter(browser, operator.token, field).status == 403
        assert browser.cookie == ""


def test_signing_in_gives_a_new_session_whatever_cookie_there_was(
    acme: Organisation, operator: Somebody, viewer: Somebody
) -> None:
    planted = viewer.browser()
    fixed = planted.cookie
    assert enter(planted, operator.token).status == 303
    assert planted.cookie != fixed
    who = Browser(acme)
    who.cookie = fixed
    assert who.send("GET", "/session").json["person"] == viewer.name
    invented = Browser(acme)
    invented.cookie = f"carnet_session_{acme.port}=chosen-by-somebody"
    assert enter(invented, operator.token).status == 303
    assert "chosen" not in invented.cookie


@pytest.mark.parametrize(
    ("came", "to"),
    [
        ("/console/runs/conv_1", "/console/runs/conv_1"),
        ("/console/runs", "/console/runs"),
        ("//evil.example/console/", "/console/"),
        ("/console/..//evil.example", "/console/"),
        ("/console//evil.example", "/console/"),
        ("/console/%2e%2E/session", "/console/"),
        ("/console/runs/%2E", "/console/"),
        ("/console/\\evil.example", "/console/"),
        ("/session", "/console/"),
        ("/console/sign-in", "/console/"),
    ],
)
def test_who_has_signed_in_goes_on_to_a_page_of_the_console_alone(
    acme: Organisation, operator: Somebody, came: str, to: str
) -> None:
    for origin in (acme.url, "https://evil.example"):  # of which the path alone is taken
        reply = enter(Browser(acme), operator.token, ("referer", f"{origin}{came}"))
        assert (reply.status, reply.headers["location"]) == (303, to)
