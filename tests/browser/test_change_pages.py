"""Calls that are tried, and settings that are changed, in a real browser."""

import pytest
from playwright.sync_api import Browser, expect

from tests.browser import accessibility
from tests.browser.scene import Scene, Scheme, Watched
from tests.browser.test_audit_pages import SIZES, keep

SCRIPT = "<script>document.title='taken'</script>"


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_somebody_tries_calls_and_sees_how_they_are_refused(
    chromium: Browser, scene: Scene, width: int, scheme: Scheme
) -> None:
    watched = Watched(chromium, scene, width=width, scheme=scheme)
    with watched as page:
        watched.sign_in("/console/playground")
        played, send = page.locator("#played"), page.get_by_role("button", name="Send")
        page.get_by_label("Agent", exact=True).select_option("echo")
        page.get_by_label("Say something").fill(SCRIPT)
        send.click()
        expect(played.locator("h3")).to_contain_text("Answered")
        expect(played.get_by_role("link", name="Its run")).to_be_visible()
        page.get_by_label("have it come in pieces").check()
        send.click()
        expect(played).to_contain_text("data: [DONE]")
        page.get_by_label("the chain is as deep as none may be").check()
        send.click()
        expect(played.locator("h3")).to_contain_text("bridge_depth_exceeded")
        expect(played).to_contain_text("x-tangle-forwarded-depth")
        keep(page, f"playground-{width}")
        page.get_by_label("a signature that does not hold").check()
        send.click()
        expect(played.locator("h3")).to_contain_text("signature_invalid")
        accessibility.check(page)
        assert "taken" not in page.title()


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_somebody_changes_a_setting_after_having_seen_the_difference(
    chromium: Browser, scene: Scene, width: int, scheme: Scheme
) -> None:
    file = scene.acme.folder / "carnet.toml"
    before, hours = file.read_text(), str(width // 100)
    watched = Watched(chromium, scene, width=width, scheme=scheme)
    with watched as page:
        watched.sign_in("/console/settings?q=idle_hours")
        page.goto(f"{scene.acme.url}/console/settings?q=idle_hours")
        page.get_by_role("button", name="idle_hours").click()
        drawer = page.locator("#drawer")
        drawer.get_by_label("New value").fill("never")
        drawer.get_by_role("button", name="Show the difference").click()
        expect(drawer).to_contain_text("cannot be used")
        drawer.get_by_label("New value").fill(hours)
        drawer.get_by_role("button", name="Show the difference").click()
        expect(drawer.locator(".diff .added").last).to_have_text(f"+idle_hours = {hours}")
        assert file.read_text() == before
        page.locator(".skip").focus()  # not from within the drawer
        accessibility.check(page)
        keep(page, f"settings-{width}")
        drawer.get_by_role("button", name="Apply").click()
        expect(drawer).to_contain_text("Taken over: sessions.idle_hours")
        assert f"idle_hours = {hours}" in file.read_text()
        page.reload()
        expect(page.get_by_role("row", name="idle_hours")).to_contain_text("carnet.toml")
