"""People as pages: added, let do more or less, ended; by nobody but an admin."""

from urllib.parse import urlencode

from tests.console.owner.test_chat import FORM, SCRIPT, send
from tests.gateway.people.browser import Somebody

AT = "/console/people"


def test_somebody_is_added_let_do_less_and_ended(admin: Somebody) -> None:
    browser = admin.browser()
    added = send(browser, AT, name="carla", display=SCRIPT, role="operator")
    assert (added.status, added.headers.get("hx-redirect")) == (204, f"{AT}/carla"), added.body
    page = browser.send("GET", f"{AT}/carla").body.decode()
    listed = browser.send("GET", AT).body.decode()
    assert (SCRIPT in page, SCRIPT in listed, "@carla@acme.example" in listed) == (
        False,
        False,
        True,
    )
    body = urlencode({"role": "viewer", "permissions": "pay call:words"}).encode()
    assert browser.send("POST", f"{AT}/carla/roles", body, [FORM]).status == 204
    person = browser.send("GET", f"{AT}/carla.json").json["person"]
    assert (person["roles"], person["may"]) == (["viewer"], ["call:words", "pay", "run:read"])
    wrong = send(browser, f"{AT}/carla/roles", role="king")
    assert (wrong.status, browser.send("GET", "/people/carla").json["roles"]) == (400, ["viewer"])
    assert send(browser, f"{AT}/carla/end").status == 204
    names = [each["name"] for each in browser.send("GET", f"{AT}.json").json["people"]]
    assert "carla" not in names
    assert browser.send("GET", f"{AT}.json?all=true").status == 200


def test_nobody_is_added_without_a_role_that_was_ticked(admin: Somebody) -> None:
    browser = admin.browser()
    refused = send(browser, AT, name="roleless")
    assert (refused.status, b"role" in refused.body) == (400, True)
    assert browser.send("GET", "/people/roleless").status == 404


def test_nobody_but_an_admin_sees_or_changes_people(
    viewer: Somebody, operator: Somebody, admin: Somebody
) -> None:
    for somebody in (viewer, operator):
        browser = somebody.browser()
        assert browser.send("GET", AT).status == 403
        assert send(browser, AT, name="mallory", role="admin").status == 403
        assert send(browser, f"{AT}/{somebody.name}/roles", role="admin").status == 403
        assert send(browser, f"{AT}/{admin.name}/end").status == 403
    names = [each["name"] for each in admin.browser().send("GET", "/people").json["people"]]
    assert "mallory" not in names
    assert admin.name in names
