"""The lines that a page tells people to type, and those that cannot be typed in a test."""

import re
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.docs.test_quickstart import ROOT

DOCS: Final = ROOT / "docs"
BLOCK: Final = re.compile(r"^( *)```sh\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
# A line, with those below it that belong to it: it ends with a backslash, or it has an input.
LINE: Final = re.compile(
    r"^[^\n]*<<'(\w+)'[^\n]*\n.*?^\1$|^(?:[^\n]*\\\n)*[^\n]+$", re.MULTILINE | re.DOTALL
)
# Pages whose tests also look at what is printed, or at what two organisations do.
ELSEWHERE: Final = {"quickstart.md", "i-want-to.md", "payers.md", "install.md", "postgresql.md"}
FOLDERS: Final = {"decisions", "tutorials"}

# Lines that are not typed, each with the reason and with what is checked in its place.
NOT_TYPED: Final = {
    r"^(BENCH_\w+=\d+ )?make bench\b": (
        "measures for minutes, beside packages that the checks do not install:"
        " what make makes of the line is read by its own parser, in test_shell.py"
    ),
    r"^make worst\b": (
        "judges times, on a machine that does nothing else, for two minutes:"
        " tests/worst does ten seconds of it; the line is read as those of make bench"
    ),
}


def lines_of(page: Path) -> list[str]:
    """What a page tells to type, each as it stands there."""
    return lines_in(text for _, text in BLOCK.findall(page.read_text()))


def lines_in(blocks: Iterable[str]) -> list[str]:
    found = (each for text in blocks for each in LINE.finditer(textwrap.dedent(text)))
    return [line[0] for line in found if not line[0].startswith("#")]


def why_not(line: str) -> str | None:
    return next((why for pattern, why in NOT_TYPED.items() if re.search(pattern, line)), None)


def typed_lines(page: Path) -> list[str]:
    return [line for line in lines_of(page) if why_not(line) is None]


PAGES: Final = sorted(
    page
    for page in DOCS.rglob("*.md")
    if page.name not in ELSEWHERE and page.parent.name not in FOLDERS and typed_lines(page)
)
