"""Processes that the benchmark starts, and stops by their id.

Law. Whatever was started is stopped when its block ends, whether it measured or failed.
"""

import os
import resource
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.cpu import running_on
from bench.load import Wrong
from carnet.testing.address import Address

START_SECONDS = 60.0
STOP_SECONDS = 10.0
RUN_SECONDS = 120.0
POLL_SECONDS = 0.05
LAST_LINES = 5


@contextmanager
def serving(
    command: Sequence[str],
    *,
    at: Address,
    core: int | None,
    folder: Path,
    env: Mapping[str, str] | None = None,
) -> Iterator[int]:
    """Run a server on a core until the block ends; its process id.

    The command has been told the descriptor of its address, which it inherits.
    """
    log = folder / f"{Path(command[0]).name}-{at.port}.log"
    with log.open("wb") as output, running_on(core):
        process = subprocess.Popen(  # noqa: S603 - the commands are in subjects.py
            command,
            cwd=folder,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=[at.fd],
        )
    try:
        _wait_until_listening(process, at.port, log)
        yield process.pid
    finally:
        _stop(process)
        at.shut()


def _wait_until_listening(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise Wrong(f"it ended with {process.returncode} before it listened: {_tail(log)}")
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            time.sleep(POLL_SECONDS)
    raise Wrong(f"it did not listen within {START_SECONDS:.0f} s: {_tail(log)}")


def _tail(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()
    return " | ".join(lines[-LAST_LINES:]) or "it wrote nothing"


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def run(command: Sequence[str], *, folder: Path, env: Mapping[str, str] | None = None) -> str:
    """Run a command to its end; what it printed."""
    try:
        done = subprocess.run(  # noqa: S603 - the commands are in subjects.py
            command,
            cwd=folder,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise Wrong(f"{Path(command[0]).name} had not ended after {RUN_SECONDS:.0f} s") from late
    if done.returncode != 0:
        last = (done.stderr or done.stdout).strip().splitlines()[-LAST_LINES:]
        raise Wrong(f"{Path(command[0]).name} ended with {done.returncode}: {' | '.join(last)}")
    return done.stdout


def allow_files(number: int) -> int:
    """Let this process, and what it starts, open so many files; how many it may open now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= number:
        return number
    allowed = number if hard == resource.RLIM_INFINITY else min(number, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed
