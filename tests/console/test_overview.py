"""The first page: what the gateway finds of itself, and how to mend it."""

from pathlib import Path

from tests.gateway.people.browser import Somebody
from tests.support.organisation import Organisation


def test_the_overview_tells_what_the_doctor_finds(
    acme: Organisation, admin: Somebody, viewer: Somebody
) -> None:
    browser = admin.browser()
    found = browser.send("GET", "/-/doctor").json["findings"]
    assert {each["what"] for each in found} >= {"store", "keys", "outbox", "secrets"}
    page = browser.send("GET", "/console/")
    assert b"Everything looks right" in page.body
    (secrets,) = Path(acme.folder, "var").glob("*secrets*")
    mode = secrets.stat().st_mode
    secrets.chmod(0o644)
    try:
        data = browser.send("GET", "/console/overview.json").json
        assert [each["kind"] for each in data["problems"]] == ["bad"]
        assert "chmod 600" in data["problems"][0]["fix"]
        page = browser.send("GET", "/console/")
        assert b"Not everything looks right" in page.body
        assert b"can be read by other users" in page.body
    finally:
        secrets.chmod(mode)
    assert viewer.browser().send("GET", "/-/doctor").status == 403
    assert viewer.browser().send("GET", "/console/overview.json").json["findings"] == []
