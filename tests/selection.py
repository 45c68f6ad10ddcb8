"""On which store a test runs that could run on both.

What a gateway does is the same on either, so its tests run on one: `make test` plays each file over
one store, `make stores` over both. The stores themselves are what tests/stores is about: its tests
always run over both. tests/crash chooses for each kill.

Law 1. The choice is a hash of a name, so it is the same on every machine and on every run; both
       stores have about as many.
Law 2. A test that names one store alone, or that compares them, always runs.
"""

import zlib
from collections.abc import Mapping
from typing import Final

import pytest

STORES: Final = ("sqlite", "postgres")
ALWAYS_BOTH: Final = "tests/stores/"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Whether to run on both."""
    parser.addoption(
        "--stores",
        choices=("one", "both"),
        default="one",
        help="run each file of tests of gateways on one store, chosen by its name, or on both",
    )


def pytest_report_header(config: pytest.Config) -> str:
    """Said at the start of a run."""
    which = "one" if config.getoption("stores") == "one" else "both"
    return f"stores: tests of gateways run on {which} of the two (--stores)"


def chosen(name: str) -> str:
    """The store of a test or of a file."""
    return STORES[zlib.crc32(name.encode()) % len(STORES)]


def elsewhere(nodeid: str, params: Mapping[str, object]) -> str | None:
    """The id that a test has on the other store; None where it is of no store."""
    for store, other in (STORES, STORES[::-1]):
        if store in params.values():
            name, _, values = nodeid.partition("[")
            return f"{name}[{values.replace(store, other)}"
    return None


def is_left_out(nodeid: str, params: Mapping[str, object], others: frozenset[str]) -> bool:
    """Whether a test runs on the other store instead, which must be among the others."""
    file = nodeid.partition("::")[0]
    if file.startswith(ALWAYS_BOTH) or elsewhere(nodeid, params) not in others:
        return False
    return chosen(file) not in params.values()


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what runs on the other store."""
    if config.getoption("stores") == "both":
        return
    others = frozenset(item.nodeid for item in items)
    left = [item for item in items if is_left_out(item.nodeid, params_of(item), others)]
    if left:
        config.hook.pytest_deselected(items=left)
        gone = {item.nodeid for item in left}
        items[:] = [item for item in items if item.nodeid not in gone]


def params_of(item: pytest.Item) -> Mapping[str, object]:
    """What a test was given, by name."""
    spec = getattr(item, "callspec", None)
    return {} if spec is None else spec.params
