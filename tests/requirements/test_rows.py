"""The loop is closed both ways: every sentence is settled, and every id in the source is a row.

A row is proved by tests that always run, or it diverges for a reason, or it is due. What a dialect
says of requests is proved by a request, not by a codec that none may reach.
"""

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.architecture.tree import PACKAGE, ROOT, name_of, parsed
from tests.requirements import faults, security
from tests.requirements.designs import (
    agents_api,
    dialogue,
    engine,
    engine_client,
    engine_reference,
    memory,
    mentionable,
    samvad,
    tangle,
    travel,
)
from tests.requirements.designs.a2a import bindings as a2a_bindings
from tests.requirements.designs.a2a import cards as a2a_cards
from tests.requirements.designs.a2a import data as a2a_data
from tests.requirements.designs.a2a import extensions as a2a_extensions
from tests.requirements.designs.a2a import operations as a2a_operations
from tests.requirements.designs.a2a import security as a2a_security
from tests.requirements.designs.a2a import updates as a2a_updates
from tests.requirements.designs.bodies import agents_api as agents_api_body
from tests.requirements.designs.identity import mentionable as identity
from tests.requirements.designs.mentions import addresses as mentioned_addresses
from tests.requirements.markers import grown, left_out, odd_tests
from tests.requirements.pages import console, console_safety
from tests.requirements.rows import Row

TABLES = {
    "tangle": tangle.ROWS,
    "agents-api": (*agents_api.ROWS, *agents_api_body.ROWS),
    "mentionable": (*mentionable.ROWS, *mentioned_addresses.ROWS, *identity.ROWS),
    "samvad": samvad.ROWS,
    "travel": travel.ROWS,
    "engine": (*engine.ROWS, *engine_reference.ROWS, *engine_client.ROWS, *memory.ROWS),
    "a2a": (
        *(*a2a_operations.ROWS, *a2a_updates.ROWS, *a2a_data.ROWS),
        *(*a2a_bindings.ROWS, *a2a_cards.ROWS, *a2a_security.ROWS),
        *a2a_extensions.ROWS,
    ),
    "dialogue": dialogue.ROWS,
    "security": security.ROWS,
    "faults": faults.ROWS,
    "console": (*console.ROWS, *console_safety.ROWS),
}
ROWS = [row for rows in TABLES.values() for row in rows]

DIALECTS = ("tangle", "agents-api", "mentionable", "samvad", "travel", "engine", "a2a")

# Tests in which a gateway, a client or a peer is really asked something.
REQUESTS = (
    *("tests/gateway/", "tests/interop/", "tests/security/", "tests/travel/", "tests/replicas/"),
    *("tests/faults/", "tests/crash/", "tests/edge/", "tests/cli/", "tests/runtime/client/"),
    *("tests/runtime/agents/test_remote", "tests/runtime/agents/test_samvad"),
    *("tests/runtime/peers/test_samvad", "tests/runtime/webhooks/", "tests/engine/test_endpoint"),
    *("tests/assembly/dialogue/test_driver_wire", "tests/runtime/peers/a2a/"),
    "tests/runtime/peers/test_cards",
)

# What no request can show, or not in a second.
WITHOUT_A_REQUEST = {
    "samvad:scan:cost": "how much of a payload is read, and in which thread, shows in no answer",
    "samvad:scan:boundary": "a function that agents call on what they were sent",
    "samvad:stream:keep-alive": "comes after fifteen seconds of silence",
}

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


def test_what_is_due_is_not_told_as_proved() -> None:
    """The sentence that all others are honoured is due as long as any other of its text is."""
    (whole,) = [row for row in tangle.ROWS if row.id == "tangle:stack:every-section"]
    assert bool(whole.due) is any(row.due for row in tangle.ROWS if row is not whole)


@pytest.mark.parametrize("row", [row for row in ROWS if row.tests], ids=lambda row: row.id)
def test_a_row_is_proved_by_tests_that_always_run(row: Row) -> None:
    odd = [test for test in row.tests if is_left_out(*test.split("::"))]
    assert odd == [], "skipped or expected to fail: cite others, or mark the row as due"


def test_no_test_is_ever_left_out() -> None:
    """Whatever machine a clone is on, it runs all of them."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    assert {name_of(file): sorted(left_out(file)) for file in files if left_out(file)} == {}


def is_left_out(path: str, name: str) -> bool:
    return name in left_out(ROOT / path)


@pytest.mark.parametrize(
    "row",
    [row for name in DIALECTS for row in TABLES[name] if row.tests and not row.due],
    ids=lambda row: row.id,
)
def test_what_a_dialect_says_is_proved_by_a_request(row: Row) -> None:
    by_request = [test for test in row.tests if test.startswith(REQUESTS)]
    assert by_request or row.id in WITHOUT_A_REQUEST


def test_no_exception_is_made_for_a_row_that_needs_none() -> None:
    rows = {row.id: row for row in ROWS}
    assert [id for id in WITHOUT_A_REQUEST if any(_asks(test) for test in rows[id].tests)] == []


def _asks(test: str) -> bool:
    return test.startswith(REQUESTS)


SKIPPING = """
import pytest
from tests.requirements.rows import Row
SELDOM = pytest.mark.xfail(reason="x")
@pytest.fixture
def disk(): pytest.skip("no disk")
@pytest.fixture
def store(disk): ...
def helped(): return pytest.importorskip("x")
def test_plain(): skip = 1
@SELDOM
def test_seldom(): ...
@pytest.mark.skipif(True, reason="x")
def test_marked(): ...
def test_fixture(store): ...
def test_calls(): helped()
@pytest.mark.parametrize("a", [pytest.param(1, marks=pytest.mark.skip)])
def test_param(a): ...
"""


def test_every_way_of_leaving_a_test_out_is_seen() -> None:
    tree = ast.parse(SKIPPING)
    found = odd_tests(tree, grown(tree, set()))
    assert found == {"test_seldom", "test_marked", "test_fixture", "test_calls", "test_param"}
    whole = ast.parse(f"{SKIPPING}\npytestmark = [SELDOM]")
    assert "test_plain" in odd_tests(whole, grown(whole, set()))


# What the tests of the reference systems of agents-api assert, by the numbers that we gave them.
FACTS = (
    *("W01", "W02", "W04", "W05", "W07", "W08", "W10", "W11", "W13", "W14", "W16", "W17", "W19"),
    *("W20", "W22", "W23", "W25", "W26", "W28", "W29", "W31", "W32", "W34", "W35", "W37", "W38"),
    *("W40", "W41", "W43", "W44", "W46", "W47", "W49", "W50", "W52", "W53", "W55", "W56"),
)


def test_every_fact_of_agents_api_is_reproduced_or_departed_from_by_a_row() -> None:
    cited = re.findall(r"\bW[0-9]{2}\b", " ".join(row.source for row in ROWS))
    assert sorted(set(FACTS) - set(cited)) == []
    assert sorted(set(cited) - set(FACTS)) == []


def test_a_divergence_names_its_ruling_and_its_reason() -> None:
    divergences = [row.divergence for row in ROWS if row.divergence]
    assert [d for d in divergences if not re.fullmatch(r"R(?:[1-9]|[1-5][0-9])", d.ruling)] == []
    assert [d for d in divergences if not d.reason.endswith(".")] == []


def test_every_test_a_row_names_exists() -> None:
    cited = {test for row in ROWS for test in row.tests}
    assert sorted(cited - written_tests()) == []


def test_every_sentence_that_the_source_cites_is_a_row() -> None:
    ids = {row.id for row in ROWS}
    assert [f"{place} {found}" for place, found in citations() if found not in ids] == []
