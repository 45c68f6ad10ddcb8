"""The page about limits lists every fixed bound of the code, each as its constant says."""

import importlib
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.architecture.tree import PACKAGE
from tests.docs.test_quickstart import ROOT

FOLDER = ROOT / "docs" / "operations"
PAGE = (FOLDER / "limits.md").read_text()

# A bound by its name: whoever adds one writes a row for it, or the reason why there is none.
BOUND = re.compile(
    r"^(_?(?:MOST|MAX|LONGEST)(?:_[A-Z_]+)?)(?:: Final)?(?:\[\w+\])? = ", re.MULTILINE
)

NOT_LISTED = {
    "retries.md": {
        ("runtime/peers/samvad_tasks.py", "MOST_FAILURES"),
        ("runtime/peers/samvad_tasks.py", "LONGEST_SECONDS"),
        ("runtime/triggers/scheduler.py", "MOST_ATTEMPTS"),
        ("runtime/triggers/scheduler.py", "MOST_PAUSE_SECONDS"),
        ("runtime/webhooks/schedule.py", "MOST_ASKED_SECONDS"),
        ("runtime/webhooks/schedule.py", "MOST_PAUSE_SECONDS"),
        ("runtime/wrappers/retrying.py", "MOST_RETRIES"),
        ("runtime/wrappers/retrying.py", "MOST_SECONDS"),
        ("runtime/wrappers/retrying.py", "LONGEST_ASKED_SECONDS"),
        ("stores/postgres/sessions.py", "MOST_ATTEMPTS"),
        ("stores/postgres/writer.py", "MOST_ATTEMPTS"),
    },
    "the default of a limit that can be set": {
        ("stores/commit/queue.py", "MOST_WAITING"),
        ("stores/turn/interrupts.py", "MOST_OF_CALLER"),
        ("stores/conversations/conversations.py", "MOST_CONVERSATIONS"),
        ("stores/conversations/conversations.py", "MOST_MESSAGES"),
    },
    "how a bound is computed, or a part of one": {
        ("core/egress_rule.py", "_MOST_PORT"),
        ("core/messages/interrupt.py", "_MOST"),
        ("runtime/webhooks/schedule.py", "_MOST_DOUBLED"),
        ("wire/crypto/digests.py", "_MOST_IN_PIECES"),
        ("wire/dialects/openai/request.py", "_MOST_NAME"),
        ("wire/grammar/json.py", "_MOST_DIGITS"),
        ("wire/grammar/query.py", "_MOST_DIGITS"),
        ("wire/stamps/caller_context.py", "_MOST_DIGITS"),
    },
    "work that nobody outside can cause": {
        ("assembly/engine/address.py", "_LONGEST_PATH"),
        ("assembly/sockets.py", "MOST_ATTEMPTS"),
        ("config/readers.py", "_MOST_SHOWN"),
        ("runtime/client/key.py", "_MOST_BYTES"),
        ("stores/ledger/checkpoints.py", "MOST_ATTEMPTS"),
        ("stores/calls/tasks.py", "MOST_ATTEMPTS"),
        ("stores/ledger/statements.py", "MOST_RUN_CALLS"),
    },
}
NO_GATEWAY = ("cli/", "testing/")


class Bound(NamedTuple):
    """One constant that a row names."""

    row: str
    cell: str  # what the page says of it
    file: str  # below src/carnet
    name: str  # of the constant, or of what is in it

    @property
    def value(self) -> Any:
        module = importlib.import_module("carnet." + self.file[:-3].replace("/", "."))
        first, *rest = self.name.split(".")
        found = getattr(module, first)
        for name in rest:
            found = found[name] if isinstance(found, dict) else getattr(found, name)
        return found if isinstance(found, int | float) else defaults(module, self.name)


def defaults(module: object, name: str) -> Any:
    """The default of a field: `Bounds.idle_seconds`."""
    struct, field = name.split(".")
    return getattr(getattr(module, struct)(), field)


def bounds() -> Iterator[Bound]:
    for line in PAGE.partition("## Fixed")[2].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 3 and cells[2].startswith("`"):
            for place in cells[2].split("; "):
                file, *names = place.split(" ")
                for name in names:
                    yield Bound(cells[0], cells[1], file.strip("`"), name)


def spoken(value: float) -> list[str]:
    """The ways in which a page may write a number."""
    ways = [f"{value:g}", f"{value:,}", f"{value:g} s"] if value < 10**6 else [f"{value:,}"]
    for unit, size in (("KiB", 1024), ("MiB", 1 << 20), ("h", 3600), ("days", 86_400)):
        if value >= size and value % size == 0:
            ways.append(f"{value // size:g} {unit}")
    for base, exponent, less in ((2, 53, 1), (2, 31, 1), (10, 12, 0), (10, 15, 0)):
        if value == base**exponent - less:
            ways.append(f"{base}^{exponent}" + (f" - {less}" if less else ""))
    return ways


BOUNDS = list(bounds())


@pytest.mark.parametrize("bound", BOUNDS, ids=lambda bound: f"{bound.file} {bound.name}")
def test_a_row_says_what_its_constant_says(bound: Bound) -> None:
    ways = "|".join(re.escape(way) for way in spoken(bound.value))
    assert re.search(rf"(?<![\d.,])(?:{ways})(?![\d.]|,\d)", bound.cell), (bound.cell, bound.value)


def test_every_bound_of_a_gateway_has_a_row() -> None:
    listed = {(bound.file, bound.name) for bound in BOUNDS}
    excepted = {place for places in NOT_LISTED.values() for place in places}
    there = {
        (name, constant)
        for path in sorted(PACKAGE.rglob("*.py"))
        for name in [str(path.relative_to(PACKAGE))]
        if not name.startswith(NO_GATEWAY)
        for constant in BOUND.findall(path.read_text())
    }
    assert sorted(there - listed - excepted) == []
    assert sorted(excepted - there) == []
    assert listed & excepted == set()


def test_both_pages_of_bounds_lead_to_each_other() -> None:
    assert "](retries.md)" in PAGE
    assert "](limits.md)" in (FOLDER / "retries.md").read_text()


def test_a_number_is_found_in_the_words_of_the_page_and_only_there() -> None:
    assert {"64 KiB", "65,536"} <= set(spoken(65_536))
    assert {"24 h", "86,400"} <= set(spoken(86_400))
    assert spoken(2**53 - 1)[-1] == "2^53 - 1"
