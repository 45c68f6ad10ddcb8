"""The long form of the comparison: `make ledgers`, or `python -m tests.ledgers --help`.

Two thousand random calls between two gateways on each store, with kills, limits, repeats, a line
that breaks and a callee that charges more than it may. The figures are printed; the exit code is 1
if a difference of the two ledgers is neither disputed nor unmatched.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.ledgers.comparison import Compared, compare, unmatched
from tests.ledgers.load import Load, Made
from tests.ledgers.scene import two_ledgers
from tests.selection import STORES
from tests.stores.support import servers


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def tell(store: str, made: Made, found: Compared, seconds: float) -> None:
    """The figures of one store."""
    say(
        f"{store}: {len(made.calls)} calls in {made.requests} requests, {made.kills} kills,"
        f" {seconds:.0f} s; ends {dict(sorted(made.ends.items()))}"
    )
    say(
        f"  ours {found.ours}, theirs {found.theirs} micro-units; {found.same} runs are the same,"
        f" explained {dict(found.explained)}; listed {dict(found.listed)}"
    )
    for fault in found.faults:
        say(f"  FAULT {fault}")


def play(store: str, databases: tuple[str, str], wanted: argparse.Namespace) -> int:
    """One store; how many faults it has."""
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="carnet-ledgers-") as folder,
        two_ledgers(Path(folder), databases) as world,
    ):
        load = Load(world, calls=wanted.calls, kills=wanted.kills, seed=wanted.seed)
        made = load.run()
        found = compare(world)
        tell(store, made, found, time.monotonic() - began)
        silent = unmatched(world)
        for called in made.calls:
            if called.run in silent:
                load.ask(called)
        again = compare(world)
        say(f"  after {len(silent)} were made again: explained {dict(again.explained)}")
        for fault in again.faults:
            say(f"  FAULT {fault}")
        return len(found.faults) + len(again.faults)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--stores", default=",".join(STORES))
    wanted = parser.parse_args()
    faults = 0
    for store in wanted.stores.split(","):
        if store == "sqlite":
            faults += play(store, ("", ""), wanted)
            continue
        with servers.running() as server:
            faults += play(store, (server.create(), server.create()), wanted)
    say("the ledgers agree" if not faults else f"{faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
