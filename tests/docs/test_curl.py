"""The curl lines of the pages are read whole: a page may use no option that is not typed here."""

import shlex

import pytest

from tests.docs.curl import reading
from tests.docs.test_quickstart import ROOT, blocks_of

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


def commands() -> list[str]:
    """Every curl of every page, as a shell would join its lines."""
    found: list[str] = []
    for page in PAGES:
        for block in blocks_of(page):
            joined = block.text.replace("\\\n", " ").splitlines()
            found += [line.strip() for line in joined if line.strip().startswith("curl ")]
    return found


def test_there_are_commands_to_read() -> None:
    assert len(commands()) > 3


@pytest.mark.parametrize("command", commands())
def test_every_curl_of_a_page_is_read(command: str) -> None:
    words = shlex.split(command.partition(" | ")[0])[1:]
    options = reading().parse_args(words)
    assert options.url.startswith("http://127.0.0.1:")
    assert all(": " in header for header in options.headers)
