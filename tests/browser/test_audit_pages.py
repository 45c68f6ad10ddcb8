"""Partners, the books and what was signed, looked at in a real browser."""

import os
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import accessibility
from tests.browser.scene import Scene, Scheme, Watched

SIZES = [(1300, "light"), (360, "dark")]
CRITIC = "@critic@globex.example"


def keep(page: Page, name: str) -> None:
    """Keep a picture of the page, where a folder for that is named."""
    folder = os.environ.get("CARNET_SCREENSHOTS")
    if folder:
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_the_agents_of_a_partner_are_listed_with_why_it_is_trusted(
    chromium: Browser, scene: Scene, width: int, scheme: Scheme
) -> None:
    assert scene.acme.chat("hello", CRITIC, token=scene.token).status == 200
    watched = Watched(chromium, scene, width=width, scheme=scheme)
    with watched as page:
        watched.sign_in("/console/agents")
        partner = page.locator("section", has=page.get_by_role("heading", name="globex.example"))
        for words in (CRITIC, "listed in carnet.toml", "our token", "p95"):
            expect(partner).to_contain_text(words)
        accessibility.check(page)
        keep(page, f"agents-{width}")


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_somebody_audits_the_ledger_and_compares_it_with_a_partners(
    chromium: Browser, scene: Scene, width: int, scheme: Scheme
) -> None:
    assert scene.acme.chat("hello", CRITIC, token=scene.token).status == 200
    scene.acme.carnet("budget", "set", "person:alice", "--money", "5", "--calls", "900")
    watched = Watched(chromium, scene, width=width, scheme=scheme)
    with watched as page:
        watched.sign_in("/console/ledger")
        bars = page.get_by_role("group", name="Limits and budgets")
        expect(bars.get_by_role("row", name="person:alice money")).to_contain_text("5")
        page.get_by_role("button", name="Verify now").click()
        expect(page.locator("#chain-state")).to_contain_text("Verified to entry")
        page.get_by_label("Partner", exact=True).fill("globex.example")
        page.get_by_role("button", name="Ask it, and compare").click()
        expect(page.locator("#compared")).to_contain_text("Both sides agree")
        accessibility.check(page)
        keep(page, f"ledger-{width}")


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_the_drawer_of_a_hop_shows_what_was_sent_to_others(
    chromium: Browser, scene: Scene, width: int, scheme: Scheme
) -> None:
    scene.go()
    reply = scene.acme.chat("hello", "lead", token=scene.token)
    run = reply.headers["x-tangle-runid"]
    watched = Watched(chromium, scene, width=width, scheme=scheme)
    with watched as page:
        watched.sign_in(f"/console/runs/{run}")
        page.locator(".waterfall tbody tr").last.get_by_role("button").first.click()
        drawer = page.locator("#drawer")
        for words in ("Calls to others", CRITIC, "x-tangle-forwarded-depth", "It was not signed"):
            expect(drawer).to_contain_text(words)
        page.locator(".skip").focus()  # not from within the drawer
        accessibility.check(page)
        keep(page, f"wire-{width}")
