"""All tests, five times in a row: `make rounds`, or `python -m tests.rounds --help`.

Each round is `make test` in a fresh clone of what is committed, with nothing beside it, with its
files in the other order, beside a program that opens and closes ports, or with all processors busy.
What is asked of a round is that every test passes, and that none is skipped or expected to fail.
The output of a round is kept while it is not green; the exit code is 1 if one was not.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.rounds.neighbours import ROOT, beside
from tests.rounds.verdict import verdict

ROUNDS: Final = {  # what make is told, who is beside it
    "plain": ((), None),
    "reversed": (("ORDER=reversed",), None),
    "ports": ((), "ports"),
    "busy": ((), "busy"),
}
ALL: Final = ("plain", "plain", "reversed", "ports", "busy")
# What make was told by whoever asked for the rounds is not meant for the one in a clone.
OF_MAKE: Final = (
    *("MAKEFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "MFLAGS"),
    *("ARGS", "AT_ONCE", "ORDER", "PYTEST_ARGS"),
)


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def git(*words: str) -> str:
    """What it says."""
    ran = subprocess.run(  # noqa: S603  our own words
        ["git", *words],  # noqa: S607  whichever git is there
        check=True,
        capture_output=True,
        text=True,
    )
    return ran.stdout.strip()


def play(name: str, at: Path) -> bool:
    """One round, and whether it was green."""
    words, neighbours = ROUNDS[name]
    checkout, log = at / "checkout", at / "output.txt"
    git("clone", "--quiet", str(ROOT), str(checkout))
    say(f"{name}: {git('-C', str(checkout), 'rev-parse', '--short', 'HEAD')}, output in {log}")
    env = {key: value for key, value in os.environ.items() if key not in OF_MAKE}
    began = time.monotonic()
    with log.open("wb") as output, beside(neighbours):
        command = ["make", "test", *words]
        ended = subprocess.run(  # noqa: S603  our own words
            command, cwd=checkout, env=env, stdout=output, stderr=output, check=False
        )
    result = verdict(log.read_text(errors="replace"), ended.returncode)
    seconds = time.monotonic() - began
    say(f"{name}: {'green' if result.is_green else 'RED'}, {result.counts}, {seconds:.0f} s")
    return result.is_green


def main(words: Sequence[str] | None = None) -> int:
    """Play the rounds that are named, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.rounds", description=__doc__)
    parser.add_argument(
        "rounds", nargs="*", metavar="ROUND", help=f"of {', '.join(ROUNDS)}; else all"
    )
    wanted = parser.parse_args(words).rounds or ALL
    if unknown := [name for name in wanted if name not in ROUNDS]:
        parser.error(f"there is no round {unknown[0]!r}; choose from {', '.join(ROUNDS)}")
    red = 0
    for name in wanted:
        at = Path(tempfile.mkdtemp(prefix=f"carnet-{name}-"))
        if play(name, at):
            shutil.rmtree(at)
        else:
            red += 1
    say(f"{len(wanted) - red} rounds green, {red} red")
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())
