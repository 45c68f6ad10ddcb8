"""The command line without the second that loading it takes: one process has, and forks for each.

A command runs in a process of its own, with its own folder, environment and output, as if it had
been started; only what it would import is there already. So does a gateway, which can be killed
as any other: its keeper, a process between it and this one, tells how it ended.
Run as a module it is the process that forks.
"""

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).parents[2]
# The modules of these rooms, and what a gateway imports when it needs it.
WITH = (
    *("carnet.cli", "carnet.assembly", "carnet.stores", "carnet.runtime", "carnet.gateway"),
    *("carnet.http", "carnet.wire", "carnet.guards"),
)
AND = (
    *("carnet.api", "importlib.resources.readers", "asyncpg", "uvloop"),
    *("uvicorn.lifespan.off", "uvicorn.protocols.http.httptools_impl"),
)


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
            with self._asked(words, at, env, [out.fileno(), err.fileno()]) as here:
                here.settimeout(seconds)
                told = here.recv(64)
            said = [_whole(file) for file in (out, err)]
        if not told:
            raise AssertionError((words, "the command died", said))
        return subprocess.CompletedProcess(list(words), int(told), *said)

    def start(
        self, words: Sequence[str], *, at: Path, env: dict[str, str], fds: tuple[int, int, int]
    ) -> "Started":
        """Start a command that goes on; `fds` are its output, its errors and its last word."""
        return Started(self._asked(words, at, env, fds))

    def _asked(
        self, words: Sequence[str], at: Path, env: dict[str, str], fds: Sequence[int]
    ) -> socket.socket:
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with there:
            asked = json.dumps([list(words), str(at), env]).encode()
            socket.send_fds(self._ours, [asked], [there.fileno(), *fds])
        return here


class Started:
    """A command that goes on, with what tests use of `subprocess.Popen`."""

    def __init__(self, told: socket.socket) -> None:
        self._told = told
        self.pid = int(told.recv(64))
        self.returncode: int | None = None
        self._ended = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with self._told:
            self.returncode = int(self._told.recv(64) or -signal.SIGKILL)
        self._ended.set()

    def poll(self) -> int | None:
        """How it ended, if it has."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end."""
        if not self._ended.wait(timeout) or self.returncode is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
        return self.returncode

    def send_signal(self, sig: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, sig)

    def kill(self) -> None:
        """Kill it."""
        self.send_signal(signal.SIGKILL)


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
        for module in pkgutil.iter_modules(importlib.import_module(room).__path__, f"{room}."):
            importlib.import_module(module.name)
    for name in AND:
        importlib.import_module(name)
    gc.collect()
    doing = _next(fd)
    if doing is not None:
        doing()


def _next(fd: int) -> Callable[[], None] | None:
    """What is to be done in a process that was forked for it; nothing if there is no more."""
    with socket.socket(fileno=fd) as asked:
        while True:
            data, fds, _, _ = socket.recv_fds(asked, 1_000_000, 4)
            if not data:
                return None
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                break
            for each in fds:
                os.close(each)
    words, at, env = json.loads(data)
    told, out, err, *last = fds
    if last:
        _keep(told, [out, err, *last])
        words.append(str(*last))
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.close(out)
    os.close(err)
    os.chdir(at)
    os.environ.clear()
    os.environ.update(env)
    return (lambda: _go_on(words)) if last else (lambda: _do(words, told))


def _keep(told: int, fds: list[int]) -> None:
    """Go on in a process whose end this one tells."""
    pid = os.fork()
    if pid == 0:
        os.close(told)
        return
    for each in fds:
        os.close(each)
    os.write(told, str(pid).encode())
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(OSError):  # nobody wants to know any more
        os.write(told, str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _do(words: list[str], told: int) -> NoReturn:
    """One command; never comes back."""
    from carnet.cli.main import run  # noqa: PLC0415  not by who only asks

    code = 1
    with contextlib.suppress(BaseException):
        code = run(words)
        sys.stdout.flush()
        sys.stderr.flush()
    os.write(told, str(code).encode())
    os._exit(0)


def _go_on(words: list[str]) -> NoReturn:
    """One that goes on: it ends as a program does, with all that Python does then."""
    from carnet import faults  # noqa: PLC0415  not by who only asks
    from carnet.cli.main import main as serve  # noqa: PLC0415

    importlib.reload(faults)  # it looks at the environment when it is imported
    sys.argv[:] = ["carnet", *words]
    sys.path[0] = os.getcwd()  # noqa: PTH109
    serve()
    raise AssertionError


if __name__ == "__main__":
    main(int(sys.argv[1]))
