"""The long form of the crash tests: `make crash`, or `python -m tests.crash --help`.

Random kills under load and every crash point again and again, on both stores. The summary is the
last thing printed; the exit code is 1 if anything was lost, ran again or was billed twice.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.crash.figures import Figures, left_over
from tests.crash.loop import kill_loop
from tests.crash.matrix import CASES, Case
from tests.faults.scene import Pair, two_gateways
from tests.faults.stores import STORES
from tests.stores import servers


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


@contextmanager
def scene(server: servers.Server, store: str) -> Iterator[Pair]:
    """Two gateways, the first on a database of its own."""
    database = server.create() if store == "postgres" else ""
    with (
        tempfile.TemporaryDirectory(prefix="carnet-crash-") as folder,
        two_gateways(Path(folder), database) as pair,
    ):
        yield pair
    if database:
        server.drop(database)


def every_point(pair: Pair, store: str, times: int) -> Figures:
    """Die at every crash point, so many times each."""
    figures = Figures(f"{store}: every point")
    began = time.monotonic()
    for point in CASES:
        for n in range(times):
            case = Case(pair, point, n)
            try:
                figures.faults += case.faults()
            except Exception as error:  # noqa: BLE001  the other points are still worth a look
                figures.faults.append(f"{point}: {error!r}")
            figures.kills += case.kills
            figures.note(case.history)
            figures.cut_off += case.cut_off
        say(f"  {store}: {point} {times} times, {len(figures.faults)} faults so far")
    figures.faults += left_over(pair)
    figures.seconds = time.monotonic() - began
    return figures


def read_options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--kills", type=int, default=300, help="random kills on each store")
    parser.add_argument("--times", type=int, default=10, help="kills at each point on each store")
    parser.add_argument("--seed", type=int, default=1, help="of the random times")
    parser.add_argument("--store", choices=STORES, action="append", help="only on this store")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Do it all; 1 if there was a fault."""
    options = read_options(arguments)
    results: list[Figures] = []
    with servers.running() as server:
        for store in options.store or STORES:
            with scene(server, store) as pair:
                say(f"  {store}: {options.kills} random kills under load")
                name = f"{store}: random kills"
                results.append(kill_loop(pair, name, kills=options.kills, seed=options.seed))
                say(results[-1].line())
            with scene(server, store) as pair:
                results.append(every_point(pair, store, options.times))
    faults = [f"{figures.name}: {fault}" for figures in results for fault in figures.faults]
    say("\n".join(["", *faults, *[figures.line() for figures in results]]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
