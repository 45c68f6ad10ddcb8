"""A page of a busy gateway: 200 runs go on, one of them with 5,000 events; painted at once."""

from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.scene import Scene, Watched, sign_in
from tests.support.http import chat_body, stream

RUNS = 200
EVENTS = 5_000
MOST_SECONDS = 20  # that somebody waits; the figure is printed, and no promise of a loaded machine
# The entry is made when a frame was shown, perhaps after the page has loaded: it is waited for.
_PAINT = """(most) => new Promise((resolve, reject) => {
  setTimeout(() => reject(new Error(`nothing was painted within ${most} s`)), most * 1000);
  const observer = new PerformanceObserver((list) => {
    const [paint] = list.getEntriesByName("first-contentful-paint");
    if (paint) {
      observer.disconnect();
      resolve(paint.startTime / 1000);
    }
  });
  observer.observe({ type: "paint", buffered: true });
})"""


def started(scene: Scene, run: str, words: int) -> Iterator[bytes]:
    fields = [
        ("authorization", f"Bearer {scene.token}"),
        ("content-type", "application/json"),
        ("x-tangle-runid", run),
    ]
    body = chat_body(str(words), "chatty", stream=True)
    return stream("POST", f"{scene.acme.url}/v1/chat/completions", fields, body)


@pytest.fixture
def busy(scene: Scene) -> Iterator[str]:
    """So many runs that go on; gives the id of the long one."""
    scene.stay()
    with ExitStack() as open_runs:
        for number in range(RUNS - 1):
            short = started(scene, f"short-{number}", 1)
            open_runs.enter_context(closing(short))  # type: ignore[type-var]
            next(short)
        long = started(scene, "long", EVENTS)
        open_runs.enter_context(closing(long))  # type: ignore[type-var]
        while f"word{EVENTS - 1} ".encode() not in next(long):
            pass
        yield "long"
    scene.go()


def painted(page: Page, what: str) -> None:
    seconds: float = page.evaluate(_PAINT, MOST_SECONDS)
    print(f"{what}: first paint after {seconds:.2f} s")  # noqa: T201  the figure
    assert seconds < MOST_SECONDS


def test_the_pages_of_a_busy_gateway_are_painted_at_once_and_go_on(
    chromium: Browser, scene: Scene, busy: str
) -> None:
    with Watched(chromium, scene, width=1300, scheme="light") as page:
        page.goto(f"{scene.acme.url}/console/runs")
        sign_in(page, scene.token)
        expect(page.get_by_role("heading", name="Runs")).to_be_visible()
        page.goto(f"{scene.acme.url}/console/runs?state=running")
        painted(page, f"the list, {RUNS} runs going on")
        page.goto(f"{scene.acme.url}/console/runs/{busy}")
        painted(page, f"a run of {EVENTS} events")
        expect(page.locator("h1 .state")).to_have_text("running")
        page.evaluate("window.stays = true")
        scene.go()
        expect(page.locator("h1 .state")).to_have_text("done")
        expect(page.locator("#transcript")).to_contain_text("word0 word1")
        assert page.evaluate("window.stays")  # nothing was loaded anew
