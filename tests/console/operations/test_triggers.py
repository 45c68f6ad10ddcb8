"""Hooks and schedules as a page: made, fired, paused, given another secret, deleted."""

from typing import Any

from carnet.testing.wait import until
from tests.console.owner.test_chat import SCRIPT, send
from tests.gateway.people.browser import Browser, Somebody
from tests.support.organisation import Organisation

AT = "/console/triggers"


def _recent(browser: Browser) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = browser.send("GET", "/schedules/daily").json["recent"]
    return found


def test_a_schedule_is_made_fired_paused_and_deleted(acme: Organisation) -> None:
    browser = Somebody(acme).browser()
    made = send(
        browser,
        f"{AT}/schedules/add",
        name="daily",
        agent="words",
        cron="0 9 * * *",
        message=SCRIPT,
    )
    assert (made.status, made.headers.get("hx-redirect")) == (204, AT), made.body
    (schedule,) = browser.send("GET", f"{AT}.json").json["schedules"]
    assert (schedule["name"], schedule["state"]) == ("daily", "active")
    assert send(browser, f"{AT}/schedules/daily/fire").status == 204
    until(lambda: any(each["conversation"] for each in _recent(browser)))
    card = browser.send("GET", f"{AT}/schedules/daily/card").body.decode()
    assert (SCRIPT in card, "/console/chat/cnv_" in card) == (False, True)
    assert send(browser, f"{AT}/schedules/daily/pause").status == 204
    page = browser.send("GET", AT).body.decode()
    assert ("paused" in page, SCRIPT in page) == (True, False)
    assert send(browser, f"{AT}/schedules/daily/resume").status == 204
    assert send(browser, f"{AT}/schedules/daily/delete").status == 204
    assert browser.send("GET", f"{AT}.json").json["schedules"] == []


def test_the_secret_of_a_hook_is_shown_once(acme: Organisation) -> None:
    browser = Somebody(acme).browser()
    made = send(browser, f"{AT}/hooks/add", name="bell", agent="words")
    assert (made.status, b"shown this once" in made.body) == (200, True), made.body
    again = send(browser, f"{AT}/hooks/bell/rotate")
    assert (again.status, b"shown this once" in again.body) == (200, True), again.body
    assert b"shown this once" not in browser.send("GET", f"{AT}/hooks/bell/card").body
    assert '"secret"' not in browser.send("GET", f"{AT}.json").body.decode()
    assert send(browser, f"{AT}/hooks/bell/fire", event='{"a": 1}').status == 204
    assert send(browser, f"{AT}/hooks/bell/fire", event="[not").status == 400


def test_what_is_none_and_whose_it_is_not_is_not_there(
    acme: Organisation, viewer: Somebody
) -> None:
    alice, other = Somebody(acme).browser(), Somebody(acme).browser()
    send(alice, f"{AT}/hooks/add", name="mine", agent="words")
    for action in ("pause", "fire", "rotate", "delete"):
        assert send(other, f"{AT}/hooks/mine/{action}").status == 404
    assert send(alice, f"{AT}/hooks/mine/explode").status == 404
    assert send(alice, f"{AT}/other/mine/pause").status == 404
    assert send(alice, f"{AT}/other/add", name="x").status == 404
    assert send(alice, f"{AT}/schedules/mine/rotate").status == 404
    assert viewer.browser().send("GET", AT).status == 403
    assert alice.send("GET", "/hooks/mine").json["state"] == "active"
