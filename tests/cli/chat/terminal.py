"""The command line in a real pseudo-terminal, as somebody sits before it.

Run as a module it is what a terminal is opened for: a session of its own, whose Ctrl-C is a signal.
"""

import fcntl
import os
import pty
import select
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.commands import Started, commands

SECONDS = 30.0  # for anything to be shown
INTERRUPT = "\x03"
END = "\x04"


class Terminal:
    """One, with a command that runs in it."""

    def __init__(self, fd: int, process: Started) -> None:
        self._fd = fd
        self.process = process
        self.screen = ""  # all that was ever shown
        self._seen = 0

    def types(self, line: str) -> None:
        """Type a line."""
        self.presses(f"{line}\n")

    def presses(self, keys: str) -> None:
        """Press keys."""
        os.write(self._fd, keys.encode())

    def shows(self, words: str) -> str:
        """Wait until some words are shown, after those that were waited for last; what came."""
        deadline = time.monotonic() + SECONDS
        while (at := self.screen.find(words, self._seen)) < 0:
            assert self._reads(deadline), f"{words!r} is not shown:\n{self.screen[self._seen :]}"
        before, self._seen = self._seen, at + len(words)
        return self.screen[before : self._seen]

    def leaves(self) -> int:
        """Wait for the end of the command; its exit code."""
        deadline = time.monotonic() + SECONDS
        while self._reads(deadline):
            pass
        return self.process.wait(SECONDS)

    def _reads(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._fd], [], [], max(0.0, deadline - time.monotonic()))
        try:
            data = os.read(self._fd, 65_536) if ready else b""
        except OSError:  # nobody has the other end any more
            data = b""
        self.screen += data.decode(errors="replace").replace("\r\n", "\n")
        return bool(data)


@contextmanager
def terminal(*words: str, at: Path, env: Mapping[str, str]) -> Iterator[Terminal]:
    """A command in a terminal; it is killed if it still runs when the block is left."""
    ours, theirs = pty.openpty()
    try:
        shown = {**env, "TERM": "dumb"}
        fds = (theirs, theirs, theirs)
        process = commands().start("tests.cli.chat.terminal", words, at=at, env=shown, fds=fds)
    finally:
        os.close(theirs)
    try:
        yield Terminal(ours, process)
    finally:
        process.kill()
        os.close(ours)


def main() -> None:
    """Take the terminal, and run what was asked for in it."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    from carnet.cli.main import run  # noqa: PLC0415  it was loaded before

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
