"""The signature page, in a real browser: a run is watched while two organisations answer it."""

import threading
from decimal import Decimal

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import accessibility
from tests.browser.scene import Scene, Scheme, Watched, sign_in


def look_at_the_bill(page: Page, scene: Scene) -> None:
    """What the page says the run has cost is what the ledger has."""
    run = page.locator("h1 code").inner_text()
    paid = scene.acme.get(f"/ledger?run={run}", token=scene.token).json["entries"]
    cost = sum(Decimal(entry["amount"]) for entry in paid)
    expect(page.locator("#run-cost")).to_have_text(f"{cost} credits")


def look_at_the_wire(page: Page) -> None:
    """The drawers of the first and the last hop are opened, read and closed, by keyboard too."""
    rows, drawer = page.locator(".waterfall tbody tr"), page.locator("#drawer")
    came = ("/v1/chat/completions", "not recorded", "x-tangle-runid", "curl -i")
    passed = ("No request came for it", "which called @critic@globex.example", "curl -i")
    for row, shown in ((rows.first, came), (rows.last, passed)):
        opener = row.get_by_role("button")
        opener.click()
        for words in shown:
            expect(drawer).to_contain_text(words)
        page.keyboard.press("Escape")
        expect(drawer).to_be_hidden()
        expect(opener).to_be_focused()


@pytest.mark.parametrize(("width", "scheme"), [(1300, "light"), (360, "dark")])
def test_somebody_signs_in_and_watches_a_run_of_two_organisations(
    chromium: Browser, scene: Scene, width: int, scheme: Scheme
) -> None:
    scene.stay()
    with Watched(chromium, scene, width=width, scheme=scheme) as page:
        page.goto(f"{scene.acme.url}/")
        sign_in(page, scene.token)
        expect(page.get_by_role("heading", name="Overview")).to_be_visible()
        accessibility.check(page)

        text = "Is <script>document.title='taken'</script> true?"
        calling = threading.Thread(
            target=scene.acme.chat, args=(text, "lead"), kwargs={"token": scene.token}
        )
        calling.start()
        page.goto(f"{scene.acme.url}/console/runs?state=running")
        page.locator("#runs-rows a").first.click()
        expect(page.locator("h1 .state")).to_have_text("running")
        rows = page.locator(".waterfall tbody tr")
        expect(rows).to_have_count(2)
        expect(page.locator(".cancel")).to_be_visible()
        scene.go()  # from here on nobody asks the page for anything
        expect(rows).to_have_count(3)
        expect(page.locator("h1 .state")).to_have_text("done")
        expect(page.locator(".cancel")).to_be_hidden()
        expect(rows.last).to_contain_text("globex.example")
        expect(page.locator("#transcript .answered").first).to_contain_text("<script>")
        calling.join()
        accessibility.check(page)
        assert "taken" not in page.title()

        look_at_the_bill(page, scene)
        look_at_the_wire(page)
        if width < 760:
            page.get_by_role("button", name="Menu").click()
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_the_pages_are_walked_by_keyboard(chromium: Browser, scene: Scene) -> None:
    scene.go()
    for number in range(2):
        scene.acme.chat(f"hello {number}", "echo", token=scene.token)
    with Watched(chromium, scene, width=1300, scheme="light") as page:
        page.goto(f"{scene.acme.url}/console/runs")
        page.get_by_label("A token of yours").fill(scene.token)
        with page.expect_navigation(wait_until="load"):  # the keys are those of a script
            page.keyboard.press("Enter")
        expect(page).to_have_url(f"{scene.acme.url}/console/runs")
        page.keyboard.press("/")
        expect(page.locator("#q")).to_be_focused()
        page.keyboard.press("Escape")
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press("j")
        expect(page.locator("#runs-rows a").first).to_be_focused()
        page.keyboard.press("j")
        page.keyboard.press("k")
        expect(page.locator("#runs-rows a").first).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Waterfall")).to_be_visible()


def test_a_turn_is_replayed_and_its_hop_gets_a_ring(chromium: Browser, scene: Scene) -> None:
    scene.go()
    reply = scene.acme.chat("once more", "lead", token=scene.token)
    with Watched(chromium, scene, width=1300, scheme="dark") as page:
        page.goto(f"{scene.acme.url}/console/runs/{reply.headers['x-tangle-runid']}")
        sign_in(page, scene.token)
        rows = page.locator(".waterfall tbody tr")
        rows.first.get_by_role("button").click()
        page.get_by_role("button", name="Replay this turn").click()
        expect(page.locator("#drawer")).to_contain_text("Answered from the record")
        expect(rows.first).to_have_class("critical ringed")
        expect(page.locator(".ringed")).to_have_count(1)
        page.keyboard.press("Escape")
        only = page.get_by_role("button", name="Critical path only")
        only.click()
        expect(only).to_have_attribute("aria-pressed", "true")
        expect(page.locator(".waterfall tbody tr:not(.critical):visible")).to_have_count(0)
        expect(rows.first).to_be_visible()
        only.click()
        expect(only).to_have_attribute("aria-pressed", "false")


def test_an_abort_that_is_no_closed_stream_is_told(chromium: Browser, scene: Scene) -> None:
    """The end of a stream is no error on any page; whatever else is aborted is one."""
    context = chromium.new_context()
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{scene.acme.url}/console/runs")
    sign_in(page, scene.token)
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    with page.expect_event("pageerror"):
        page.evaluate("() => { Promise.reject(new DOMException('of another', 'AbortError')); }")
    assert [each for each in errors if "of another" in each]
    context.close()
