"""What agents keep, as a page: written, brought back, deleted."""

import json

from tests.console.owner.test_chat import SCRIPT, send
from tests.gateway.people.browser import Somebody
from tests.support.organisation import Organisation

HERE = {"agent": "keeper", "path": "notes.md"}
AT = "/console/memory.json?agent=keeper&path=notes.md"


def test_a_file_is_written_over_what_was_shown_and_brought_back(alice: Somebody) -> None:
    browser = alice.browser()
    for version, content in ((None, SCRIPT), (1, "second\r\nline")):
        more = {} if version is None else {"version": str(version)}
        saved = send(browser, "/console/memory/write", content=content, **HERE, **more)
        place = "/console/memory?agent=keeper&path=notes.md"
        assert (saved.status, saved.headers.get("hx-redirect")) == (204, place), saved.body
    data = browser.send("GET", AT).json
    assert (data["file"]["content"], data["file"]["version"]) == ("second\nline", 2)
    late = send(browser, "/console/memory/write", content="late", version="1", **HERE)
    assert (late.status, b"memory_changed" in late.body) == (409, True)
    assert send(browser, "/console/memory/undo", version="1", **HERE).status == 204
    data = browser.send("GET", AT).json
    assert (data["file"]["content"], len(data["versions"])) == (SCRIPT, 3)
    page = browser.send("GET", AT.replace(".json", "", 1)).body.decode()
    assert (SCRIPT in page, "Bring back" in page) == (False, True)
    old = browser.send("GET", f"{AT}&version=2").json["file"]
    assert old["content"] == "second\nline"
    assert browser.send("GET", "/console/memory.json?agent=keeper&search=alert").json["hits"]
    assert send(browser, "/console/memory/delete", **HERE).status == 204
    assert browser.send("GET", AT).status == 404


def test_nobody_sees_or_changes_the_memory_of_another(alice: Somebody, acme: Organisation) -> None:
    send(alice.browser(), "/console/memory/write", content="mine", **HERE)
    other = Somebody(acme).browser()
    assert "mine" not in json.dumps(other.send("GET", "/console/memory.json?agent=keeper").json)
    assert other.send("GET", AT).status == 404
    assert send(other, "/console/memory/undo", **HERE).status == 404
    viewer = Somebody(acme, "--role", "viewer").browser()
    assert viewer.send("GET", "/console/memory").status == 403
    assert send(viewer, "/console/memory/write", content="x", **HERE).status == 403
