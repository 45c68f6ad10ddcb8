"""The command line without the second that loading it takes: one process has, and forks for each.

A command runs in a process of its own, with its own folder, environment and output, as if it had
been started; only what it would import is there already. Run as a module it is that process.
"""

import contextlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
WITH = ("carnet.cli", "carnet.assembly", "carnet.stores", "carnet.runtime", "carnet.gateway")


class Commands:
    """The process, and how it is asked."""

    def __init__(self) -> None:
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(  # noqa: S603  our own module
            [sys.executable, "-m", "tests.support.commands", str(theirs.fileno())],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()

    def run(
        self, words: Sequence[str], *, at: Path, env: dict[str, str], seconds: float
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            here, there = socket.socketpair()
            with here:
                with there:
                    asked = json.dumps([list(words), str(at), env]).encode()
                    fds = [there.fileno(), out.fileno(), err.fileno()]
                    socket.send_fds(self._ours, [asked], fds)
                here.settimeout(seconds)
                told = here.recv(64)
            said = [_whole(file) for file in (out, err)]
        if not told:
            raise AssertionError((words, "the command died", said))
        return subprocess.CompletedProcess(list(words), int(told), *said)


def _whole(file: Any) -> str:
    file.seek(0)
    return str(file.read(), errors="replace")


@cache
def commands() -> Commands:
    """Those of this process; the other one ends when this one has."""
    return Commands()


def main(fd: int) -> None:
    """Fork for each command that is asked for, until nobody can ask any more."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for room in WITH:
        for module in pkgutil.iter_modules(import_module(room).__path__, f"{room}."):
            import_module(module.name)
    with socket.socket(fileno=fd) as asked:
        while True:
            data, fds, _, _ = socket.recv_fds(asked, 1_000_000, 3)
            if not data:
                return
            if os.fork() == 0:
                asked.detach()
                os.close(fd)
                _do(data, *fds)
            for each in fds:
                os.close(each)


def _do(data: bytes, told: int, out: int, err: int) -> None:
    """One command, in a process of its own; never comes back."""
    from carnet.cli.main import run  # noqa: PLC0415  not by who only asks

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    words, at, env = json.loads(data)
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.chdir(at)
    os.environ.clear()
    os.environ.update(env)
    code = 1
    with contextlib.suppress(BaseException):
        code = run(words)
        sys.stdout.flush()
        sys.stderr.flush()
    os.write(told, str(code).encode())
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
