"""The loop is closed both ways: every sentence is settled, and every id in the source is a row."""

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.architecture.tree import PACKAGE, ROOT, name_of, parsed
from tests.requirements import (
    agents_api,
    faults,
    mentionable,
    samvad,
    security,
    tangle,
    travel,
)
from tests.requirements.rows import Row

TABLES = {
    "tangle": tangle.ROWS,
    "agents-api": agents_api.ROWS,
    "mentionable": mentionable.ROWS,
    "samvad": samvad.ROWS,
    "travel": travel.ROWS,
    "security": security.ROWS,
    "faults": faults.ROWS,
}
ROWS = [row for rows in TABLES.values() for row in rows]

CITATION = re.compile(rf"\b(?:{'|'.join(TABLES)})(?::[a-z0-9-]+)+")


def written_tests() -> set[str]:
    """Every test function there is, as rows name it."""
    return {
        f"{name_of(path)}::{node.name}"
        for path in (ROOT / "tests").rglob("test_*.py")
        for node in parsed(path).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
    }


def citations() -> Iterator[tuple[str, str]]:
    """Yield (place, id) of every row id in a comment of the package."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
            if token.type == tokenize.COMMENT:
                for found in CITATION.findall(token.string):
                    yield f"{name_of(path)}:{token.start[0]}", found


def test_every_id_is_used_once_and_begins_with_its_dialect() -> None:
    assert [id for id, n in Counter(row.id for row in ROWS).items() if n > 1] == []
    for dialect, rows in TABLES.items():
        assert [row.id for row in rows if not CITATION.fullmatch(row.id)] == []
        assert [row.id for row in rows if not row.id.startswith(f"{dialect}:")] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_every_row_is_settled(row: Row) -> None:
    assert row.sentence.endswith(".")
    assert row.source
    assert row.tests or row.divergence or row.due


def test_a_divergence_names_its_ruling_and_its_reason() -> None:
    divergences = [row.divergence for row in ROWS if row.divergence]
    assert [d for d in divergences if not re.fullmatch(r"R(?:[1-9]|1[0-9]|2[0-4])", d.ruling)] == []
    assert [d for d in divergences if not d.reason.endswith(".")] == []


def test_every_test_a_row_names_exists() -> None:
    cited = {test for row in ROWS for test in row.tests}
    assert sorted(cited - written_tests()) == []


def test_every_sentence_that_the_source_cites_is_a_row() -> None:
    ids = {row.id for row in ROWS}
    assert [f"{place} {found}" for place, found in citations() if found not in ids] == []
