"""A program of the operator's as a process of ours: how it is started, and that it ends.

Law 1. It is started from its arguments, never by a shell, in a session of its own. Whoever leaves,
       for whatever reason, leaves nothing of it behind: the whole group is killed.
Law 2. Of our environment it has what every program needs (`PASSED_ON`), and the variables that the
       operator names. Nothing else: our secrets are there.
Law 3. What it writes is read to its end, and kept to a bound.
"""

import asyncio
import os
import shutil
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process, SubprocessStreamProtocol
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

PASSED_ON: Final = (
    *("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "TERM", "TMPDIR", "TZ", "USER"),
)
CHUNK: Final = 65_536
GRACE_SECONDS: Final = 1.0  # that a server has to end when its input has, and after SIGTERM
_DEFAULT_PATH: Final = "/usr/local/bin:/usr/bin:/bin"


class Launch(Struct, frozen=True, kw_only=True):
    """How a program is started."""

    program: tuple[str, ...]  # and its arguments
    folder: Path
    environment: Mapping[str, str]


class Ended(Struct, frozen=True):
    """What came of a program."""

    code: int
    output: bytes
    errors: bytes


def environment_of(ours: Mapping[str, str], named: Sequence[str]) -> dict[str, str]:
    """What a program is given of our environment."""
    given = {name: ours[name] for name in (*PASSED_ON, *named) if name in ours}
    return {"PATH": _DEFAULT_PATH} | given


def find_program(name: str, folder: Path, environment: Mapping[str, str]) -> str | None:
    """Where a program is: by its path below a folder, or by its name; None if it is nowhere."""
    where = str(folder / name) if "/" in name else name
    return shutil.which(where, path=environment.get("PATH", _DEFAULT_PATH))


@asynccontextmanager
async def running(launch: Launch, *, limit: int, has_input: bool) -> AsyncIterator[Process]:
    """A program that runs; leaving ends it, and all that it has started.

    `limit` is the most that is held of a line, or of what nobody has read. OSError where it cannot
    be started.
    """
    loop = asyncio.get_running_loop()
    # As asyncio does it, but for the transport, which it keeps: pipes are closed by that alone.
    transport, protocol = await loop.subprocess_exec(
        lambda: SubprocessStreamProtocol(limit=limit, loop=loop),
        *launch.program,
        stdin=PIPE if has_input else DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        cwd=launch.folder,
        env=dict(launch.environment),
        start_new_session=True,
    )
    process = Process(transport, protocol, loop)
    try:
        yield process
    finally:
        _kill(process, signal.SIGKILL)
        transport.close()
        await _is_gone(process)


async def ended(process: Process, *, most: int) -> Ended:
    """Wait for its end; of each stream `most` bytes are kept."""
    assert process.stdout is not None  # noqa: S101  it was started with pipes
    assert process.stderr is not None  # noqa: S101
    output, errors = await asyncio.gather(_read(process.stdout, most), _read(process.stderr, most))
    return Ended(await process.wait(), output, errors)


async def leave(process: Process) -> None:
    """Ask a server to end, as its protocol says: by the end of its input, then by a signal."""
    if process.stdin is not None:
        process.stdin.close()
    if not await _is_gone(process):
        _kill(process, signal.SIGTERM)
        await _is_gone(process)


async def _is_gone(process: Process) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(GRACE_SECONDS):
            await process.wait()
    return process.returncode is not None


def _kill(process: Process, sign: signal.Signals) -> None:
    """Signal the whole group, also where its first process has ended and others have not."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, sign)


async def _read(stream: asyncio.StreamReader, most: int) -> bytes:
    kept = bytearray()
    while chunk := await stream.read(CHUNK):
        kept += chunk[: most - len(kept)]
    return bytes(kept)
