"""What pytest makes of the files of tests before it runs them: each is compiled once, and kept.

An assertion that tells what it saw is a rewritten one, and to rewrite all of them takes longer than
to import them: 14 of 23 seconds, for each of the workers, which all import every file.

Law. It changes how long a run takes and nothing else.
"""

import contextlib
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[1]


def keep() -> None:
    """Keep what is compiled, also where Python was told to write nothing down."""
    sys.dont_write_bytecode = False


def pytest_collection(session: pytest.Session) -> None:
    """Of several workers each begins with other files, and finds the rest as others left it."""
    given: dict[str, Any] | None = getattr(session.config, "workerinput", None)
    if given is None:
        return
    files = modules_below([ROOT / arg.partition("::")[0] for arg in session.config.args])
    for name in turned(files, int(given["workerid"][2:]), given["workercount"]):
        with contextlib.suppress(Exception):  # who collects the file tells what is wrong with it
            importlib.import_module(name)


def modules_below(places: Sequence[Path]) -> list[str]:
    """The modules with tests in these files and folders, by name."""
    found = {
        file
        for place in places
        for file in (place.rglob("test_*.py") if place.is_dir() else (place,))
    }
    return sorted(".".join(file.relative_to(ROOT).with_suffix("").parts) for file in found)


def turned(files: list[str], number: int, count: int) -> list[str]:
    """The same ones, beginning with the share of the worker with this number."""
    first = len(files) * number // count
    return files[first:] + files[:first]
