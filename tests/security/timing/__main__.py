"""`make timing`: whether the time of an answer tells what its bytes do not (A41, A67, A68; G17).

Both kinds of requests are sent in turns, on one connection, in an order that is drawn. Of what was
measured the slowest tenth is left out, which says more about the machine than about the gateway.
Printed are the means, their difference, and t as Welch has it. It exits with 1 where two kinds are
a millisecond apart or, of tokens, t is 4.5 or more.
"""

import argparse
import asyncio
import itertools
import math
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from carnet.core.people.identity import Secret
from carnet.runtime.system import SystemClock, SystemIds
from carnet.stores.open import open_store
from tests.security.timing.scene import House, Line, Question, copies, house, questions

KEPT = 0.9
MOST_MICROSECONDS = 1000.0
MOST_T = 4.5
WARM_UP = 50


def measure(of: House, question: Question, samples: int) -> tuple[list[float], list[float]]:
    """Microseconds of either kind."""
    line, order = Line(of.port), random.Random(0)  # noqa: S311  no secret: which of the two is next
    times: tuple[list[float], list[float]] = ([], [])
    kinds = (question.foreign, question.unknown)
    try:
        for request in itertools.islice(question.unknown, WARM_UP):
            line.ask(request)
        while min(map(len, times)) < samples:
            which = order.randrange(2)
            request = next(kinds[which])
            began = time.perf_counter_ns()
            line.ask(request)
            times[which].append((time.perf_counter_ns() - began) / 1000)
    finally:
        line.close()
    return times


def compare(times: tuple[list[float], list[float]]) -> tuple[float, float, float]:
    """The mean of both without the slowest, and Welch's t."""
    bound = sorted(itertools.chain(*times))[int(KEPT * sum(map(len, times)))]
    one, other = ([each for each in kind if each <= bound] for kind in times)
    means = statistics.fmean(one), statistics.fmean(other)
    spread = statistics.variance(one) / len(one) + statistics.variance(other) / len(other)
    return *means, (means[0] - means[1]) / math.sqrt(spread)


async def measure_tokens(folder: Path, known: str, samples: int) -> tuple[list[float], list[float]]:
    """Microseconds of looking for tokens that are none: some begin as one does that is."""
    clock, order = SystemClock(), random.Random(0)  # noqa: S311  as above
    store = await open_store(
        "sqlite:var/carnet.db",
        base=folder,
        secrets=folder / "var" / "secrets.key",
        clock=clock,
        ids=SystemIds(),
        exclusive=False,
    )
    times: tuple[list[float], list[float]] = ([], [])
    starts = known[:-8], known[:4] + known[4:-8][::-1]
    try:
        assert store.tokens.find(Secret(known)) is not None
        for number in itertools.count():
            if min(map(len, times)) >= samples:
                return times
            which = order.randrange(2)
            secret = Secret(f"{starts[which]}{number:08d}")
            began = time.perf_counter_ns()
            found = store.tokens.find(secret)
            times[which].append((time.perf_counter_ns() - began) / 1000)
            assert found is None
    finally:
        await store.close()
    return times


def tell(name: str, times: tuple[list[float], list[float]], *, most_t: float = math.inf) -> bool:
    """Print a line; whether it tells nothing to anybody."""
    foreign, unknown, t = compare(times)
    difference = foreign - unknown
    sys.stdout.write(f"{name:18} {foreign:8.2f} us {unknown:8.2f} us")
    sys.stdout.write(f" {difference:+9.2f} us {t:+8.2f}\n")
    sys.stdout.flush()
    return abs(difference) < MOST_MICROSECONDS and abs(t) < most_t


def main() -> int:
    """Measure all of them."""
    read = argparse.ArgumentParser(prog="make timing", description=__doc__)
    read.add_argument("--samples", type=int, default=10_000, help="of each kind of request")
    read.add_argument("--tokens", type=int, default=100_000, help="of each kind of wrong token")
    given = read.parse_args()
    sys.stdout.write(f"{'':18} {'foreign':>11} {'unknown':>11} {'difference':>12} {'t':>8}\n")
    with tempfile.TemporaryDirectory() as folder, house(Path(folder), is_counted=False) as of:
        verdicts = [
            tell(question.name, measure(of, question, given.samples))
            for question in (*questions(of), copies(of))
        ]
        tokens = asyncio.run(measure_tokens(Path(folder), of.alice, given.tokens))
        return 0 if all([*verdicts, tell("a token", tokens, most_t=MOST_T)]) else 1


if __name__ == "__main__":
    raise SystemExit(main())
