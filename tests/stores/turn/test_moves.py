"""Every statement that writes the state of a turn moves it as TRANSITIONS says, in both drivers."""

import importlib
import pkgutil
import re
from collections.abc import Iterator

import pytest

import carnet.stores
from carnet.core.chain.turn import BEGINNINGS, TRANSITIONS
from carnet.stores.turn.moves import begins, moves
from carnet.stores.turn.row import Lookup

# An UPDATE of `turn` ends with the statement, or with the bracket around it.
UPDATE = re.compile(r"UPDATE turn\b(?P<what>[^()]*SET.*?)(?:\n\)|\Z)", re.DOTALL)
SETS = re.compile(r"\bstate = (?P<after>'\w+'|\?|w\.state)")
FROM = re.compile(r"\bstate \|\| '' (?:= '(?P<one>\w+)'|IN \((?P<several>[^)]*)\))")
NEXT: dict[str, frozenset[str]] = {state: frozenset(after) for state, after in TRANSITIONS.items()}
ENDS = {"done", "failed", "unknown", "waiting"}  # what an end may give; the rules compare it
RUNS = {"running", "queued"}  # what a claim of a known turn may give


def texts() -> Iterator[tuple[str, str]]:
    """Every text of the stores, by the name it has."""
    for module in pkgutil.walk_packages(carnet.stores.__path__, "carnet.stores."):
        place = module.name.removeprefix("carnet.stores.")
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, str) and not name.startswith("__"):
                yield f"{place}:{name}", value
            elif isinstance(value, Lookup):
                yield f"{place}:{name}", next(iter(value._texts.values()))  # noqa: SLF001


def updates() -> dict[str, str]:
    """The statements that write a state."""
    found: dict[str, str] = {}
    for name, text in texts():
        for i, match in enumerate(UPDATE.finditer(text)):
            if SETS.search(match["what"].partition(" WHERE ")[0]):
                found[f"{name}.{i}"] = match["what"]
    return found


UPDATES = updates()


def test_the_statements_that_move_a_turn_are_found() -> None:
    assert len(UPDATES) >= 9, sorted(UPDATES)
    modules = {name.partition(":")[0] for name in UPDATES}
    assert modules >= {
        "turn.row",
        "postgres.statements",
        "calls.tasks",
        "upkeep.recovery",
        "sqlite.claims",
    }


@pytest.mark.parametrize("name", sorted(UPDATES))
def test_a_statement_moves_a_turn_from_where_it_may_go(name: str) -> None:
    text = UPDATES[name]
    sets = SETS.search(text)
    assert sets is not None
    after = {sets["after"].strip("'")}
    if after & {"?", "w.state"}:
        after = RUNS if "worker = " in text.partition("WHERE")[0] else ENDS
    where = FROM.search(text.partition("WHERE")[2])
    assert where is not None, f"{name} does not say from which state: {text}"
    before = {where["one"]} if where["one"] else set(re.findall(r"'(\w+)'", where["several"]))
    for state in before:
        assert NEXT[state] & after, f"{name}: {state} never becomes one of {after}"


def test_no_other_statement_inserts_a_turn() -> None:
    inserts = [name for name, text in texts() if re.search(r"INSERT INTO turn\b", text)]
    assert sorted(inserts) == [
        "postgres.statements:WRITE",
        "sqlite.claims:INSERT_TURN",
        "turn.row:INSERT_TURN",
    ]


def test_a_move_that_is_not_allowed_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="no turn that is done becomes running"):
        moves("done", "running")
    with pytest.raises(ValueError, match="no turn begins as waiting"):
        begins("waiting")
    assert set(BEGINNINGS) == {"running", "queued"}
