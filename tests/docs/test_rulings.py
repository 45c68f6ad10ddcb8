"""Every short id that is cited has its line in docs/rulings.md, and every line is cited."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.test_quickstart import ROOT

PAGE = ROOT / "docs" / "rulings.md"
TEXTS = {".py", ".md", ".sql"}

# Attacks and faults have two digits, which tells them from letters and hexadecimal digits.
_ID = r"(?:R[1-9]\d?|D[1-9]\d?|A\d\d|F\d\d|G[1-9]\d?|I[1-9]\d?)"
CITATION = re.compile(rf"(?<![%*\w])({_ID})(?:(?:-| to )({_ID}))?(?![\w*])")


def defined() -> list[str]:
    return re.findall(rf"^\| ({_ID}) \| ", PAGE.read_text(), re.MULTILINE)


def cited_in(text: str) -> Iterator[str]:
    """Each id of a text; `A28 to A32` and `I1-I5` cite those between them as well."""
    for first, last in CITATION.findall(text):
        if not last:
            yield first
            continue
        assert first[0] == last[0], f"{first} to {last}"
        digits = len(first) - 1
        for number in range(int(first[1:]), int(last[1:]) + 1):
            yield f"{first[0]}{number:0{digits}}"


def citations(*folders: str) -> dict[str, set[str]]:
    """Where each id is cited below these folders, this page and its test left out."""
    found: dict[str, set[str]] = {}
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in TEXTS or path in {PAGE, Path(__file__)}:
                continue
            for id in cited_in(path.read_text()):
                found.setdefault(id, set()).add(str(path.relative_to(ROOT)))
    return found


@pytest.mark.parametrize("folder", ["src/carnet", "docs", "tests", "bench", "examples"])
def test_whatever_is_cited_is_defined(folder: str) -> None:
    known = set(defined())
    assert {id: places for id, places in citations(folder).items() if id not in known} == {}


def test_nothing_is_defined_that_nobody_cites() -> None:
    cited = citations("src/carnet", "docs", "tests")
    assert [id for id in defined() if id not in cited] == []


def test_an_id_is_defined_once_and_in_its_order() -> None:
    lines = defined()
    assert len(set(lines)) == len(lines) > 100
    for letter in "RAFDGI":
        numbers = [int(id[1:]) for id in lines if id[0] == letter]
        assert numbers == sorted(numbers)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("(R8, R9).", ["R8", "R9"]),
        ("A28 to A30. I1-I3 and I7", ["A28", "A29", "A30", "I1", "I2", "I3", "I7"]),
        ('Divergence("R12", "A reason")', ["R12"]),
        ("A2A, RFC 9421, A1, F5, C3%A9, %D9, 0xA41, 'ab*A09-', D0, xR5", []),
    ],
)
def test_a_citation_is_told_from_what_looks_like_one(text: str, ids: list[str]) -> None:
    assert list(cited_in(text)) == ids
