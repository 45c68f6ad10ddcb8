"""The settings in force as a page, each with where it came from, and no secret among them."""

from tests.console.owner.test_chat import send
from tests.gateway.people.browser import Somebody
from tests.support.organisation import Organisation


def test_every_value_is_shown_with_where_it_came_from(acme: Organisation, admin: Somebody) -> None:
    browser = admin.browser()
    data = browser.send("GET", "/console/settings.json").json
    gateway = {each["key"]: each for each in data["sections"]["gateway"]}
    assert gateway["certificate_header"]["from"] == "default"
    assert "carnet.toml" in gateway["domain"]["from"]
    assert gateway["domain"]["value"] == "acme.example"
    page = browser.send("GET", "/console/settings").body.decode()
    assert ("carnet.toml" in page, "acme.example" in page) == (True, True)
    chosen = browser.send("GET", "/console/settings.json?q=max_depth").json["sections"]
    assert [each["key"] for each in chosen["gateway"]][:1] == ["max_depth"]
    only = browser.send("GET", "/console/settings.json?set=1").json["sections"]
    assert all(each["from"] != "default" for lines in only.values() for each in lines)
    served = browser.send("GET", "/-/config").json["values"]
    shown = acme.json("config", "show")["values"]
    assert [(each["section"], each["key"]) for each in served] == [
        (each["section"], each["key"]) for each in shown
    ]
    assert gateway["port"]["from"] == "option --port"  # what a command would not know


def test_a_secret_is_told_by_its_reference_alone(admin: Somebody, acme: Organisation) -> None:
    reply = admin.browser().send("GET", "/console/settings.json")
    (secrets,) = [each for each in reply.json["sections"]["store"] if each["key"] == "secrets"]
    assert secrets["value"] == "***"
    key = (acme.folder / "var" / "secrets.key").read_bytes().strip()
    assert key not in reply.body


def test_the_file_is_read_again_at_the_press_of_a_button(admin: Somebody) -> None:
    reply = send(admin.browser(), "/console/settings/reload")
    assert (reply.status, b"Nothing had changed" in reply.body) == (200, True), reply.body


def test_nobody_but_an_admin_sees_the_settings_or_has_them_read(
    viewer: Somebody, operator: Somebody
) -> None:
    for somebody in (viewer, operator):
        browser = somebody.browser()
        for path in ("/-/config", "/console/settings", "/console/settings.json"):
            assert browser.send("GET", path).status == 403
        assert send(browser, "/console/settings/reload").status == 403
