"""Subjects that are held against one another, measured in turns.

The speed of a processor that others share changes within a minute by a third: what is measured one
after the other tells as much of them as of the subjects.

Law. All run from the first window to the last; who is not asked is paused. The windows have the
     same length, and who comes first changes from round to round.
"""

import os
import signal
import statistics
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from bench.cpu import Cores
from bench.measures import Throughput, Window, throughput
from bench.subjects import Target

ROUNDS = 6
LEAST_SECONDS = 1.0  # of a window: with less the clock of the CPU time is too coarse


async def in_turns(
    targets: Mapping[str, Target], *, seconds: float, cores: Cores
) -> dict[str, list[Throughput]]:
    """The windows of each, `seconds` in all or a second each."""
    found: dict[str, list[Throughput]] = {name: [] for name in targets}
    each = max(LEAST_SECONDS, seconds / ROUNDS)
    for number in range(ROUNDS):
        names = list(targets)[:: -1 if number % 2 else 1]
        for name in names:
            with paused(target.pid for other, target in targets.items() if other != name):
                found[name].append(await throughput(targets[name], seconds=each, cores=cores))
    return found


@contextmanager
def paused(pids: Iterable[int]) -> Iterator[None]:
    """What others do in the background is not done on the core of the one that is measured."""
    stopped = list(pids)
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)


def together(rounds: list[Throughput]) -> Throughput:
    """All windows as one; of the latencies the middle."""
    windows = [each.window for each in rounds]
    return Throughput(
        window=Window(
            seconds=sum(window.seconds for window in windows),
            cpu_seconds=sum(window.cpu_seconds for window in windows),
            others_seconds=sum(window.others_seconds for window in windows),
            answered=sum(window.answered for window in windows),
            events=sum(window.events for window in windows),
        ),
        p50=statistics.median(each.p50 for each in rounds),
        p99=statistics.median(each.p99 for each in rounds),
    )


def ratios(ours: list[Throughput], theirs: list[Throughput]) -> list[float]:
    """Requests for a CPU second against theirs, round by round."""
    pairs = zip(ours, theirs, strict=True)
    return [one.per_cpu_second / other.per_cpu_second for one, other in pairs]
