"""The command line without the second that loading it takes: one process has, and forks for each.

A command runs in a process of its own, with its own folder, environment and output, as if it had
been started; only what it would import is there already. So does a gateway, or a module of these
tests. Each can be killed as any other: a process between it and this one tells how it ended.
Run as a module it is the process that forks.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parents[2]
CARNET = "carnet.cli.main"
# The modules of these rooms, and what a gateway imports when it needs it.
WITH = (
    *("carnet.cli", "carnet.assembly", "carnet.stores", "carnet.runtime", "carnet.gateway"),
    *("carnet.http", "carnet.wire", "carnet.guards"),
)
AND = (
    *(
        "carnet.api",
        "tests.stores.support.scenes",
        "importlib.resources.readers",
        "asyncpg",
        "uvloop",
    ),
    *("uvicorn.lifespan.off", "uvicorn.protocols.http.httptools_impl"),
)
# How long what runs here waits for PostgreSQL, and for a neighbour to stop a turn: it runs beside
# other tests, on a machine that is busy. With USUAL in its environment it waits as a gateway does.
CONNECT_SECONDS = 20.0
STOP_SECONDS = 30.0
USUAL = "TESTS_USUAL_WAITS"


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

    @property
    def pid(self) -> int:
        return self._process.pid

    def has_died(self) -> bool:
        return self._process.poll() is not None

    def close(self) -> None:
        """End it; what it forked goes on."""
        self._ours.close()
        self._process.wait()

    def run(
        self,
        words: Sequence[str],
        *,
        at: Path,
        env: dict[str, str],
        seconds: float,
        given: str = "",
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, which may be that it is killed; `given` is its input."""
        with (
            tempfile.TemporaryFile() as source,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            source.write(given.encode())
            source.seek(0)
            fds = (source.fileno(), out.fileno(), err.fileno())
            code = self.start(CARNET, words, at=at, env=env, fds=fds).wait(seconds)
            return subprocess.CompletedProcess(list(words), code, _whole(out), _whole(err))

    def start(
        self,
        module: str,
        words: Sequence[str],
        *,
        at: Path,
        env: dict[str, str],
        fds: tuple[int, ...],
    ) -> "Started":
        """Start a module as `python -m` would.

        `fds` are its input, its output and its errors, and one that its last word names by number.
        """
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with there:
            asked = json.dumps([module, list(words), str(at), env]).encode()
            socket.send_fds(self._ours, [asked], [there.fileno(), *fds])
        return Started(here)


class Started:
    """A command that goes on, with what tests use of `subprocess.Popen`."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self.pid = int(line.recv(64))
        self.returncode: int | None = None
        self._ended = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with self._line:
            self.returncode = int(self._line.recv(64) or -signal.SIGKILL)
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


_current: list[Commands] = []


def commands() -> Commands:
    """Those of this process; the other one ends when this one has, and is replaced if it died."""
    if _current and _current[0].has_died():
        _current.pop().close()
    if not _current:
        _current.append(Commands())
    return _current[0]


@contextmanager
def speaking(module: str, *words: str, env: dict[str, str]) -> Iterator[tuple["Started", IO[str]]]:
    """A module of these tests in a process of its own, and what it says; it ends with the block."""
    reads, writes = os.pipe()
    with os.fdopen(reads) as output, Path(os.devnull).open("rb") as nothing:
        try:
            fds = (nothing.fileno(), writes, sys.__stderr__.fileno() if sys.__stderr__ else 2)
            process = commands().start(module, words, at=ROOT, env=env, fds=fds)
        finally:
            os.close(writes)
        try:
            yield process, output
        except BaseException:
            process.kill()
            raise
        finally:
            process.wait()


def main(fd: int) -> None:
    """Fork for each that is asked for, until nobody can ask any more."""
    atexit.register(_leave)  # before all others, so that they come first
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for room in WITH:
        for module in pkgutil.walk_packages(importlib.import_module(room).__path__, f"{room}."):
            importlib.import_module(module.name)
    for name in AND:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # what is loaded is not looked through in each of them
    if (asked := _asked(fd)) is not None:
        _go_on(*asked)


def _asked(fd: int) -> tuple[str, list[str]] | None:
    """What is to be run in a process that was forked for it; nothing if there is no more."""
    with socket.socket(fileno=fd) as asking:
        while True:
            data, fds, _, _ = socket.recv_fds(asking, 1_000_000, 5)
            if not data:
                return None
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                break
            for each in fds:
                os.close(each)
    module, words, at, env = json.loads(data)
    report, *given = fds
    _keep(report, given)
    for number, each in enumerate(given[:3]):
        os.dup2(each, number)
        os.close(each)
    os.chdir(at)
    os.environ.clear()
    os.environ.update(env)
    return module, [*words, *map(str, given[3:])]


def _keep(report: int, given: list[int]) -> None:
    """Go on in a process whose end this one tells."""
    pid = os.fork()
    if pid == 0:
        os.close(report)
        return
    for each in given:
        os.close(each)
    os.write(report, str(pid).encode())
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(OSError):  # nobody wants to know any more
        os.write(report, str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


_codes: list[int] = []  # of a gateway that ends by itself


def _leave() -> None:
    """End, when threads have ended and all that was to be done at the end is done.

    What Python does after that is to take apart all that is loaded, which here is shared with the
    process that forked: each page would be copied first, 50 of the 60 ms that a stop takes.
    """
    if _codes:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(_codes[0])


def _go_on(module: str, words: list[str]) -> None:
    """Run it; what goes on ends as a program does."""
    from carnet import faults  # noqa: PLC0415  not by who only asks
    from carnet.runtime.turns import runner  # noqa: PLC0415
    from carnet.stores.postgres import writer  # noqa: PLC0415

    importlib.reload(faults)  # it looks at the environment when it is imported
    if USUAL not in os.environ:
        vars(writer)["CONNECT_SECONDS"] = CONNECT_SECONDS
        vars(runner)["STOP_SECONDS"] = STOP_SECONDS
    sys.argv[:] = ["carnet", *words]
    sys.path[0] = os.getcwd()  # noqa: PTH109
    if module != CARNET:
        runpy.run_module(module, run_name="__main__")
    elif words[:1] == ["serve"]:
        try:
            importlib.import_module(CARNET).main()
        except SystemExit as end:
            _codes.extend([end.code] if isinstance(end.code, int) else [])
            raise
    else:
        code = importlib.import_module(CARNET).run(words)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main(int(sys.argv[1]))
