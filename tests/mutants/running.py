"""Takes the behaviour behind a row away in a copy of the source, and asks the tests of the row.

The tree itself is never changed: the copy stands before it on the path of the tests and of every
process that they start.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from tests.architecture.tree import ROOT
from tests.mutants.mutant import Mutant
from tests.requirements.rows import Row

SOURCE = ROOT / "src"
FAILED = 1  # what pytest exits with where tests failed; other codes are no verdict
MOST_SECONDS = 600.0
_QUICK = (
    "tests/core/",
    "tests/wire/",
    "tests/guards/",
    "tests/test_telemetry.py",
    "tests/runtime/",
    "tests/console/test_live.py::test_however",
    "tests/console/runs/test_waterfall.py",
    "tests/console/test_forms.py",
)


class Vanished(Exception):
    """The text that a mutant changes is not there, or not once."""


class Verdict(Struct, frozen=True):
    """What the tests of a row said to a mutant."""

    mutant: Mutant
    is_red: bool
    output: str


def place_of(mutant: Mutant, source: Path = SOURCE) -> Path:
    """The file whose text is changed: the one that is named, or the only one that has the text."""
    named = source / "carnet" / mutant.file
    if named.exists() and named.read_text().count(mutant.text) == 1:
        return named
    counts = {path: path.read_text().count(mutant.text) for path in source.rglob("*.py")}
    found = [path for path, count in counts.items() if count]
    if len(found) == 1 and counts[found[0]] == 1:
        return found[0]
    raise Vanished(
        f"the mutant of {mutant.row} changes the text {mutant.text!r}, which stands in "
        f"{len(found)} files and {sum(counts.values())} times; it should stand once, in "
        f"src/carnet/{mutant.file}. Find the line that does now what the row says, and give its "
        f"text in tests/mutants."
    )


def asked_of(mutant: Mutant, row: Row) -> tuple[list[str], list[str]]:
    """The tests to ask: those that start no gateway, and those that do."""
    asked = [test for test in row.tests if not mutant.tests or test.split("::")[1] in mutant.tests]
    quick = [test for test in asked if test.startswith(_QUICK)]
    return quick, [test for test in asked if test not in quick]


def judge(mutant: Mutant, row: Row) -> Verdict:
    """Run the tests of a row against a copy of the source without its behaviour."""
    output = ""
    with tempfile.TemporaryDirectory(prefix="carnet-mutant-") as folder:
        source = Path(folder) / "src"
        shutil.copytree(SOURCE, source)
        changed = source / place_of(mutant).relative_to(SOURCE)
        changed.write_text(changed.read_text().replace(mutant.text, mutant.instead))
        for asked in filter(None, asked_of(mutant, row)):
            code, output = run(asked, source)
            if code == FAILED and "\nFAILED " in output:
                return Verdict(mutant, is_red=True, output=output)
    return Verdict(mutant, is_red=False, output=output)


def run(tests: Sequence[str], source: Path) -> tuple[int, str]:
    """Run tests with this source before ours; pytest's exit code and what it said."""
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-x", "--no-header", "-p", "no:cacheprovider"),
        *("-p", "no:xdist", "--override-ini", f"pythonpath={source} {ROOT}", *tests),
    ]
    done = subprocess.run(  # noqa: S603  our own tests
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(source)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=MOST_SECONDS,
        check=False,
    )
    return done.returncode, done.stdout
