"""`make mutants`: takes the behaviour behind rows away, one at a time, and expects red.

Words after it choose rows by what their ids begin with: `make mutants ARGS="tangle:turn faults"`.
"""

import sys
import time

from tests.mutants.running import judge
from tests.mutants.table import MUTANTS
from tests.requirements.test_rows import ROWS


def main(chosen: list[str]) -> int:
    """Judge every mutant, print a line each, and say how many went unnoticed."""
    rows = {row.id: row for row in ROWS}
    mutants = [each for each in MUTANTS if not chosen or each.row.startswith(tuple(chosen))]
    unnoticed = 0
    for mutant in mutants:
        began = time.monotonic()
        verdict = judge(mutant, rows[mutant.row])
        unnoticed += not verdict.is_red
        seconds = time.monotonic() - began
        word = "red" if verdict.is_red else "NOT NOTICED"
        sys.stdout.write(f"{word:12} {seconds:6.1f} s  {mutant.row:42} {mutant.file}\n")
        if not verdict.is_red:
            sys.stdout.write(verdict.output[-1500:] + "\n")
        sys.stdout.flush()
    sys.stdout.write(f"{len(mutants)} mutants, {unnoticed} not noticed\n")
    return 1 if unnoticed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
