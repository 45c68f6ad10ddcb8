"""A terminal in which a test types what a page says, as a person does, and reads what is printed.

It is a real one (a pseudo-terminal with bash in it), so that commands print as they do for a person
and Ctrl-C is a key. What is typed is not echoed.
"""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Self

ROWS_AND_COLUMNS: Final = (50, 400)  # so wide that no line is broken
PROMPT: Final = "<carnet "
READY: Final = re.compile(rf"{PROMPT}(\d+)>")
INTERRUPT: Final = b"\x03"
PATIENCE_SECONDS: Final = 120
# Done between fork and exec it could hang where this process has threads. Ctrl-C may be ignored in
# what runs the tests, and would be in all that it starts.
OWN_TERMINAL: Final = """
import fcntl, os, signal, sys, termios
signal.signal(signal.SIGINT, signal.SIG_DFL)
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""
SHELL: Final = ("bash", "--norc", "--noprofile", "--noediting", "-i")


class Terminal:
    """One terminal; commands are typed into it one after the other."""

    def __init__(self, folder: Path, env: Mapping[str, str], fds: Sequence[int] = ()) -> None:
        """A shell in a folder, with this environment and no other, and with sockets of ours."""
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *ROWS_AND_COLUMNS, 0, 0))
        modes = termios.tcgetattr(theirs)
        modes[1] &= ~termios.ONLCR  # lines end as they are written
        modes[3] &= ~termios.ECHO
        termios.tcsetattr(theirs, termios.TCSANOW, modes)
        prompts = {"PS1": f"{PROMPT}$?>", "PS2": "", "TERM": "dumb", "NO_COLOR": "1"}
        self._shell = subprocess.Popen(  # noqa: S603  a shell
            [sys.executable, "-c", OWN_TERMINAL, *SHELL],
            cwd=folder,
            env={**env, **prompts},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            pass_fds=fds,
            start_new_session=True,
        )
        os.close(theirs)
        self._seen = ""
        self.until(READY)

    def type(self, command: str) -> str:
        """Type a command, wait until it has ended well, and give what it printed."""
        printed, code = self.try_typing(command)
        assert code == 0, (command, printed)
        return printed

    def try_typing(self, command: str) -> tuple[str, int]:
        """The same, however it ends: what it printed, and its exit code."""
        self.begin(command)
        return self.ended()

    def ended(self) -> tuple[str, int]:
        """Wait until the command has ended: what it printed since, and its exit code."""
        printed, _, _ = self.until(READY).rpartition(PROMPT)
        return printed, int(self._last[1])

    def begin(self, command: str) -> None:
        """Type a command, and do not wait for its end."""
        os.write(self._ours, f"{command.rstrip()}\n".encode())

    def interrupt(self) -> str:
        """Press Ctrl-C, and give what is printed until the shell is ready again."""
        os.write(self._ours, INTERRUPT)
        return self.until(READY).rpartition(PROMPT)[0]

    def until(self, sign: "re.Pattern[str]") -> str:
        """What is printed up to a sign and with it."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (found := sign.search(self._seen)) is None:
            left = deadline - time.monotonic()
            is_there, _, _ = select.select([self._ours], [], [], max(0, left))
            assert is_there, f"{sign.pattern} never came: {self._seen}"
            self._seen += os.read(self._ours, 65536).decode()
        self._last = found
        printed, self._seen = self._seen[: found.end()], self._seen[found.end() :]
        return printed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close it: what runs in it is hung up, as where a person closes the window."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(os.tcgetpgrp(self._ours), signal.SIGTERM)
        os.close(self._ours)
        self._shell.kill()
        self._shell.wait()
