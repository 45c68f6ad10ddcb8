"""The order of the files of tests: those that took longest begin, so that none is left for the end.

Law. The order changes how long a run takes and nothing else: `--order reversed` turns it round, and
     every test passes all the same. Tests of one file keep their own order.

seconds.json is written by `make seconds`. A file that it does not know yet comes first.
"""

import json
from collections import defaultdict
from pathlib import Path
from typing import Final

import pytest

KEPT: Final = Path(__file__).with_name("seconds.json")


def pytest_addoption(parser: pytest.Parser) -> None:
    """How to order, and whether to write down how long it took."""
    group = parser.getgroup("order of files")
    group.addoption("--order", choices=("longest-first", "reversed"), default="longest-first")
    group.addoption(
        "--record-seconds", action="store_true", help="write the seconds of each file down"
    )


def pytest_configure(config: pytest.Config) -> None:
    """The one who writes is not one of the workers: it hears of all the tests."""
    if config.getoption("record_seconds") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(), "seconds")


def file_of(nodeid: str) -> str:
    """The file of a test, from the root of the repository."""
    return nodeid.partition("::")[0]


def in_order(files: list[str], seconds: dict[str, float], order: str) -> list[str]:
    """Each file once, the longest first, or last; those of the same length by name."""
    known = sorted(set(files), key=lambda file: (-seconds.get(file, float("inf")), file))
    return known[::-1] if order == "reversed" else known


def put_in_order(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the files in order."""
    files = [file_of(item.nodeid) for item in items]
    order = in_order(files, json.loads(KEPT.read_text()), config.getoption("order"))
    place = {file: n for n, file in enumerate(order)}
    items.sort(key=lambda item: place[file_of(item.nodeid)])


class Recorder:
    """Adds up how long each file took, with what its tests set up and tore down."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[file_of(report.nodeid)] += report.duration

    def pytest_sessionfinish(self) -> None:
        KEPT.write_text(written(self._seconds))


def written(seconds: dict[str, float]) -> str:
    """The table: the longest first, a file a line."""
    rounded = {file: round(took, 1) for file, took in seconds.items()}
    ordered = sorted(rounded.items(), key=lambda entry: (-entry[1], entry[0]))
    return json.dumps(dict(ordered), indent=0) + "\n"
