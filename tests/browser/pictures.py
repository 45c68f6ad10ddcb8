"""Makes the pictures of the documentation: a browser at the demo, with its model and its people.

`make pictures` writes them to docs/images. They are made by hand when a page of the console has
changed, and looked at before they are kept: a test only sees that they are there.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

from carnet.testing.stage import carnet_command, environment
from carnet.testing.wait import until
from tests.architecture.tree import ROOT
from tests.browser.finding import launch

IMAGES: Final = ROOT / "docs" / "images"
LINK: Final = re.compile(r"http://127\.0\.0\.1:\d+/sign-in\?code=\S+")
RUN: Final = re.compile(r"(http://127\.0\.0\.1:\d+)(/console/runs/\S+)$", re.MULTILINE)
WAITS: Final = "Ctrl-C ends the demo."
WIDE: Final[ViewportSize] = {"width": 1300, "height": 900}
NARROW: Final[ViewportSize] = {"width": 360, "height": 780}


@contextmanager
def demo(folder: Path) -> Iterator[str]:
    """The demo, once its run waits for a person; what it has printed."""
    process = subprocess.Popen(  # noqa: S603  our own command
        [*carnet_command(), "demo", str(folder)],
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    printed = ""
    try:
        while WAITS not in printed:
            line = process.stdout.readline()
            assert line, printed
            printed += line
        yield printed
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def page_of(browser: Browser) -> Page:
    return browser.new_context(color_scheme="light", viewport=WIDE).new_page()


def keep(page: Page, name: str) -> None:
    page.wait_for_load_state("load")
    page.screenshot(path=IMAGES / f"{name}.png", animations="disabled")
    sys.stdout.write(f"docs/images/{name}.png\n")


def take(browser: Browser, printed: str) -> None:
    """Walk through the console as the owner of Acme does, and keep what is seen."""
    (link,) = LINK.findall(printed)
    ((base, path),) = RUN.findall(printed)
    page = page_of(browser)
    page.goto(link)
    page.get_by_role("button", name="Sign in").click()
    page.goto(f"{base}{path}")
    expect(page.locator("h1 .state")).to_have_text("waiting")
    keep(page, "console-waiting")
    page.goto(f"{base}/console/inbox")
    answer(page)
    page.goto(f"{base}{path}")
    expect(page.locator("h1 .state")).to_have_text("done")
    keep(page, "console-run")
    page.goto(f"{base}/console/ledger")
    keep(page, "console-ledger")
    page.goto(f"{base}/console/chat")
    page.locator("a", has_text="an evening about agents").first.click()
    until(lambda: "Hall: the one at the river" in again(page).locator("#thread").inner_text())
    keep(page, "console-chat")
    page.goto(f"{base}{path}")
    in_the_dark(page)


def again(page: Page) -> Page:
    """The page, asked for anew: a conversation takes a moment longer than its run."""
    page.reload()
    return page


def answer(page: Page) -> None:
    """Pay, and agree."""
    rows, drawer = page.locator("#inbox-rows tr"), page.locator("#drawer")
    for name, yes in (("Payment", "Pay"), ("Approval", "Approve")):
        rows.get_by_role("button", name=name).click()
        button = drawer.get_by_role("button", name=yes, exact=True)
        expect(button).to_be_visible()
        if name == "Payment":
            keep(page, "console-inbox")
        button.click()
        expect(drawer).to_contain_text("accepted")
        page.keyboard.press("Escape")


def in_the_dark(page: Page) -> None:
    """The wire of a hop, and the same page as a telephone shows it."""
    page.emulate_media(color_scheme="dark")
    page.locator(".waterfall tbody tr").first.get_by_role("button").click()
    expect(page.locator("#drawer")).to_contain_text("curl -i")
    keep(page, "console-wire")
    page.keyboard.press("Escape")
    page.set_viewport_size(NARROW)
    keep(page, "console-narrow")


def main() -> int:
    with (
        tempfile.TemporaryDirectory(prefix="carnet-pictures-") as folder,
        demo(Path(folder) / "demo") as printed,
        sync_playwright() as playwright,
    ):
        browser = launch(playwright)
        take(browser, printed)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
