"""The pages about the gateway, in a real browser, wide and narrow, light and dark."""

import pytest
from playwright.sync_api import Browser, expect

from tests.browser import accessibility
from tests.browser.scene import Scene, Scheme, Watched

PAGES = {
    "/console/agents": "Agents",
    "/console/ledger": "Ledger",
    "/console/triggers": "Triggers",
    "/console/people": "People",
    "/console/people/alice": "alice",
    "/console/memory": "Memory",
    "/console/settings?q=max_depth": "Settings",
}
SIZES = [(1300, "light"), (360, "dark")]


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_somebody_rotates_the_key_of_the_gateway(
    chromium: Browser, scene: Scene, width: int, scheme: Scheme
) -> None:
    watched = Watched(chromium, scene, width=width, scheme=scheme)
    with watched as page:
        watched.sign_in("/console/keys")
        rows = page.locator(".rows tbody tr")
        active = rows.filter(has=page.get_by_text("active", exact=True))
        old = active.locator("code").first.inner_text()
        accessibility.check(page)
        page.get_by_label("Show the new key for so many minutes").fill("0")
        page.get_by_role("button", name="Rotate our key").click()
        retiring = rows.filter(has_text=old)
        expect(retiring.get_by_text("retiring", exact=True)).to_be_visible()
        expect(active.locator("code").first).not_to_have_text(old)
        page.once("dialog", lambda dialog: dialog.accept())
        retiring.get_by_role("button", name="Revoke").click()
        expect(retiring.get_by_text("revoked", exact=True)).to_be_visible()
        keys = scene.acme.get("/.well-known/jwks.json").json["keys"]
        assert old not in {key["kid"] for key in keys}


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_the_pages_about_the_gateway_can_be_read_by_everybody(
    chromium: Browser, scene: Scene, width: int, scheme: Scheme
) -> None:
    watched = Watched(chromium, scene, width=width, scheme=scheme)
    with watched as page:
        watched.sign_in("/console/agents/asks")
        expect(page.get_by_role("heading", name="asks", exact=True)).to_be_visible()
        accessibility.check(page)
        page.get_by_role("link", name="/agents/asks/.well-known/agent-card.json").focus()
        for path, title in PAGES.items():
            page.goto(scene.acme.url + path)
            expect(page.locator("h1")).to_contain_text(title)
            accessibility.check(page)
        page.goto(f"{scene.acme.url}/console/agents/echo")
        page.get_by_label("Text").fill("<script>document.title='taken'</script>")
        page.get_by_role("button", name="Try").click()
        expect(page.locator("#tried-1 .words")).to_contain_text("<script>")
        assert "taken" not in page.title()
