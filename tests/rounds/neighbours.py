"""What else may run on a machine while tests do: programs that take its ports, or its processors.

As a module it is one of them, until its input ends: `python -m tests.rounds.neighbours ports`.
"""

import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NoReturn

ROOT: Final = Path(__file__).parents[2]
PORTS: Final = range(1024, 65536)
AT_ONCE: Final = 50  # ports
REST_SECONDS: Final = 0.01


@contextmanager
def beside(kind: str | None) -> Iterator[list["subprocess.Popen[bytes]"]]:
    """Have neighbours of this kind, for the time of a context: one, or one for each processor."""
    many = 0 if kind is None else (os.cpu_count() or 1) if kind == "busy" else 1
    words = [sys.executable, "-m", "tests.rounds.neighbours", str(kind)]
    with ExitStack() as stack:
        started = []
        for _ in range(many):
            one = subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE)  # noqa: S603  our own
            stack.enter_context(one)  # at its end its input is closed, and it is waited for
            started.append(one)
        yield started


def main(kind: str) -> None:
    """Be one, until the input ends."""
    threading.Thread(target={"busy": compute, "ports": open_ports}[kind], daemon=True).start()
    sys.stdin.buffer.read()


def compute() -> NoReturn:
    """Keep a processor busy."""
    while True:
        pass


def open_ports() -> NoReturn:
    """Listen on ports by chance, a moment at a time, whoever may have had them in mind."""
    chance = random.SystemRandom()
    while True:
        with ExitStack() as stack:
            for port in chance.sample(PORTS, AT_ONCE):
                one = stack.enter_context(socket.socket())
                try:
                    one.bind(("127.0.0.1", port))
                    one.listen()
                except OSError:  # somebody has it
                    continue
            time.sleep(REST_SECONDS)


if __name__ == "__main__":
    main(sys.argv[1])
