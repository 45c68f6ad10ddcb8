"""A real browser at real gateways.

Law. A page that asks another host for anything, or whose script fails, fails its test, whatever the
     test was about.
"""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.browser.finding import launch
from tests.browser.scene import Scene, chain_of_organisations
from tests.support.model import Model

PATIENT = 60_000  # milliseconds: a page and two gateways share a busy machine
expect.set_options(timeout=PATIENT)


def pytest_itemcollected(item: pytest.Item) -> None:
    """A test takes many steps, each of which may take long."""
    item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """It has an event loop of its own, and so ends before tests of another file begin theirs."""
    with sync_playwright() as playwright:
        browser = launch(playwright)
        browser.on("context", lambda context: context.set_default_timeout(PATIENT))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Two organisations: agents of the first call one of the second, which has a price."""
    folder = tmp_path_factory.mktemp("browser")
    with Model().serving() as model, chain_of_organisations(folder, model) as found:
        yield found
