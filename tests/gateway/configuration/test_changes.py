"""A setting is changed over HTTP: shown first, over the file that was shown, by an admin alone."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from carnet.testing.wait import until
from tests.console.owner.test_chat import send
from tests.console.pages import an_admin
from tests.gateway.people.browser import Browser, Somebody
from tests.support.federation import organisation
from tests.support.http import Reply
from tests.support.organisation import Organisation

JSON = [("content-type", "application/json")]
NOTED = "\n[sessions]  # of people\nidle_hours = 12  # half a day\n# the end\n"


@pytest.fixture
def acme(tmp_path: Path) -> Iterator[Organisation]:
    acme = organisation(tmp_path / "acme", "acme.example")
    acme.configure(NOTED)
    acme.start()
    yield acme
    acme.stop()


def ask(browser: Browser, path: str, **asked: Any) -> Reply:
    return browser.send("POST", path, json.dumps(asked).encode(), JSON)


def change(browser: Browser, section: str, key: str, value: str | None) -> Reply:
    """Look at the difference, and apply it."""
    asked = {"section": section, "key": key, "value": value}
    shown = ask(browser, "/-/config/preview", **asked)
    assert shown.status == 200, shown.body
    return ask(browser, "/-/config/apply", **asked, digest=shown.json["digest"])


def in_force(browser: Browser, section: str, key: str) -> Any:
    values = browser.send("GET", "/-/config").json["values"]
    return next(
        each["value"] for each in values if (each["section"], each["key"]) == (section, key)
    )


def file_of(acme: Organisation) -> Path:
    return acme.folder / "carnet.toml"


def test_a_change_is_shown_then_written_and_taken_over(acme: Organisation) -> None:
    admin, before = an_admin(acme).browser(), file_of(acme).read_text()
    asked = {"section": "sessions", "key": "idle_hours", "value": "6"}
    shown = ask(admin, "/-/config/preview", **asked).json
    assert shown["diff"][-4:] == [
        " [sessions]  # of people",
        "-idle_hours = 12  # half a day",
        "+idle_hours = 6  # half a day",
        " # the end",
    ]
    assert (shown["errors"], shown["changed"]) == ([], ["sessions.idle_hours"])
    assert file_of(acme).read_text() == before
    done = ask(admin, "/-/config/apply", **asked, digest=shown["digest"]).json
    assert (done["applied"], done["changed"]) == (True, ["sessions.idle_hours"])
    assert file_of(acme).read_text() == before.replace("idle_hours = 12 ", "idle_hours = 6 ")
    assert in_force(admin, "sessions", "idle_hours") == 6
    assert change(admin, "sessions", "idle_hours", None).json["applied"] is True
    assert "idle_hours" not in file_of(acme).read_text()
    assert not [each for each in acme.folder.iterdir() if each.suffix == ".draft"]
    lines = until(lambda: re.findall("a setting was changed over HTTP.*", acme.log.read_text()))
    assert ("sessions.idle_hours" in lines[0], "token:" in lines[0]) == (True, True)


def test_what_cannot_be_used_is_told_and_changes_nothing(acme: Organisation) -> None:
    admin, before = an_admin(acme).browser(), file_of(acme).read_text()
    for section, key, value in (
        ("sessions", "idle_hours", "never"),
        ("gateway", "public_url", "not a url"),
        ("agents.words", "kind", "unheard"),
    ):
        asked = {"section": section, "key": key, "value": value}
        shown = ask(admin, "/-/config/preview", **asked).json
        assert key in shown["errors"][0], shown
        assert ".draft" not in str(shown["errors"])
        assert ask(admin, "/-/config/apply", **asked, digest=shown["digest"]).status == 400
    # What only building it finds out: the file is put back.
    refused = change(admin, "agents.words", "target", "agents:nobody")
    assert (refused.status, refused.json["applied"]) == (409, False)
    assert file_of(acme).read_text() == before
    assert admin.chat("hi", "words").status == 200


def test_a_file_that_was_changed_meanwhile_is_not_overwritten(acme: Organisation) -> None:
    admin, asked = an_admin(acme).browser(), {"section": "sessions", "key": "idle_hours"}
    digest = ask(admin, "/-/config/preview", **asked, value="6").json["digest"]
    file_of(acme).write_text(file_of(acme).read_text() + "# another hand\n")
    refused = ask(admin, "/-/config/apply", **asked, value="6", digest=digest)
    assert (refused.status, b"changed meanwhile" in refused.body) == (400, True)
    assert "idle_hours = 12" in file_of(acme).read_text()


def test_a_file_that_is_read_only_is_left_alone(acme: Organisation) -> None:
    admin, before = an_admin(acme).browser(), file_of(acme).read_text()
    file_of(acme).chmod(0o444)
    refused = change(admin, "sessions", "idle_hours", "6")
    assert (refused.status, b"read-only" in refused.body) == (400, True)
    assert file_of(acme).read_text() == before


def test_no_secret_is_changed_and_nothing_that_is_unknown(acme: Organisation) -> None:
    admin = an_admin(acme).browser()
    for section, key in (("store", "secrets"), ("sessions", "none"), ("none", "x"), (3, "x")):
        asked = {"section": section, "key": key, "value": "x"}
        assert ask(admin, "/-/config/preview", **asked).status == 400
    assert (
        ask(admin, "/-/config/preview", section="sessions", key="idle_hours", value=6).status == 400
    )


def test_nobody_but_an_admin_changes_a_setting(acme: Organisation) -> None:
    operator = Somebody(acme)
    options = ("--person", an_admin(acme).name, "--scope", "admin:reload")
    half = Browser(acme)
    assert half.by_token(acme.new_token("reloads", *options)).status == 201
    asked = {"section": "sessions", "key": "idle_hours", "value": "6"}
    for browser in (operator.browser(), half):
        for path in ("/-/config/preview", "/-/config/apply"):
            assert ask(browser, path, **asked, digest="x").status == 403
        assert send(browser, "/console/settings/apply", **asked).status == 403


def test_the_page_shows_a_difference_and_applies_it(acme: Organisation) -> None:
    admin = an_admin(acme).browser()
    form = admin.send("GET", "/console/settings/edit?section=sessions&key=idle_hours")
    assert (form.status, b"Show the difference" in form.body) == (200, True)
    asked = {"section": "sessions", "key": "idle_hours", "value": "7"}
    shown = send(admin, "/console/settings/preview", **asked).body.decode()
    digest = re.search('name="digest" value="([0-9a-f]{64})"', shown)
    assert digest is not None
    assert "+idle_hours = 7" in shown
    done = send(admin, "/console/settings/apply", **asked, digest=digest[1])
    assert (done.status, b"Taken over: sessions.idle_hours" in done.body) == (200, True), done.body
    secret = admin.send("GET", "/console/settings/edit?section=store&key=secrets")
    assert secret.status == 400
