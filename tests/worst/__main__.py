"""A tenant's worst, and what another notices: `make worst`, or `python -m tests.worst --help`.

One caller does everything it may, at its limits, while another makes one call a second. The report
is the last thing printed; the exit code is 1 if one of the other's calls failed, its p99 was ten
times that of quiet times or more, or the gateway took more memory than the bound.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.worst.attacks import ATTACKS
from tests.worst.figures import MIB, MOST_BYTES, MOST_TIMES, line_of, p99, requests_of
from tests.worst.scene import Outcome, Scene, staged


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def read_options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.worst", description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="of the attack, and of quiet")
    parser.add_argument("--quiet", type=int, help="seconds of quiet, if not as many")
    parser.add_argument("--rate", default="", help="what its token may ask for, as 600/min")
    parser.add_argument("--only", choices=ATTACKS, action="append", help="only this attack")
    parser.add_argument("--each", action="store_true", help="every attack by itself, one by one")
    return parser.parse_args(arguments)


def faults_of(outcome: Outcome, quiet_p99: float) -> list[str]:
    """What should not have been."""
    faults = list(outcome.noticed.faults)
    times = p99(outcome.noticed.took) / quiet_p99
    if times >= MOST_TIMES:
        faults.append(
            f"p99 is {times:.1f} times that of quiet times; it must be below {MOST_TIMES}"
        )
    if outcome.peak_bytes > MOST_BYTES:
        faults.append(f"{outcome.peak_bytes // MIB} MiB of memory are more than the bound")
    return faults


def measure(scene: Scene, options: argparse.Namespace) -> list[str]:
    """Quiet, then every attack that was asked for; what should not have been."""
    scene.quiet(3)  # until it is warm
    quiet = scene.quiet(options.quiet or options.seconds)
    base = p99(quiet.took)
    say(line_of("quiet", quiet.took, base, scene.resident_bytes()))
    names = options.only or list(ATTACKS)
    faults = list(quiet.faults)
    for together in [[name] for name in names] if options.each else [names]:
        outcome = scene.attacked(options.seconds, together)
        name = together[0] if len(together) == 1 else "attacked"
        say(line_of(name, outcome.noticed.took, base, outcome.peak_bytes))
        if outcome.noticed.also and not options.each:
            say(line_of("  what else it did", outcome.noticed.also, None, None))
        say(requests_of(outcome.seen))
        faults += [f"{name}: {fault}" for fault in faults_of(outcome, base)]
        scene.wait_for_the_end()
    return faults


def main(arguments: Sequence[str]) -> int:
    """Do it all; 1 if there was a fault."""
    options = read_options(arguments)
    with (
        tempfile.TemporaryDirectory(prefix="carnet-worst-") as folder,
        staged(Path(folder), options.rate) as scene,
    ):
        faults = measure(scene, options)
    say("\n".join(["", *faults, f"{len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
