"""The two stores that a gateway is tried on: choosing one, and looking into it from outside."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from carnet.stores.open import database_path, is_postgres
from tests.stores.support import servers
from tests.support.organisation import Organisation

_URL = re.compile(r'^url = "(.+)"', re.MULTILINE)


def store_of(gateway: Organisation) -> str:
    """The URL of its store: the first one of its file."""
    found = _URL.search((gateway.folder / "carnet.toml").read_text())
    assert found is not None
    return found[1]


def name_store(gateway: Organisation, url: str) -> None:
    """Give it another store, as its operator would: in its file."""
    config = gateway.folder / "carnet.toml"
    config.write_text(_URL.sub(lambda _: f'url = "{url}"', config.read_text(), count=1))


def move_to(gateway: Organisation, url: str) -> None:
    """Give it a new database, which has the layout, and a first token there."""
    name_store(gateway, url)
    (gateway.folder / "var" / "starter.token").unlink()
    gateway.carnet("init", ".", "--quiet")
    gateway.token = (gateway.folder / "var" / "starter.token").read_text().strip()


@contextmanager
def served_on(
    request: pytest.FixtureRequest, folder: Path, config: str, *, agents: str
) -> Iterator[Organisation]:
    """A started gateway on the store that the parameter of a fixture names; ended at the end."""
    gateway = Organisation(folder, "acme.example")
    if request.param == "postgres":
        server: servers.Server = request.getfixturevalue("server")
        move_to(gateway, server.create())
    gateway.configure(config, agents=agents)
    gateway.start()
    yield gateway
    assert gateway.stop() == 0


def rows(gateway: Organisation, sql: str, *args: object) -> list[tuple[Any, ...]]:
    """Look into a gateway's database from outside, also while it runs; or change it there."""
    url = store_of(gateway)
    if is_postgres(url):
        return servers.rows(url, sql, args)
    with closing(sqlite3.connect(database_path(url, gateway.folder), timeout=30)) as connection:
        found = connection.execute(sql, args).fetchall()
        connection.commit()
        return found


def stored(gateway: Organisation) -> bytes:
    """Everything that a server keeps for it; SQLite keeps it in a file of the folder."""
    if not is_postgres(store_of(gateway)):
        return b""
    tables = rows(gateway, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    found = [rows(gateway, f"SELECT * FROM {table}") for (table,) in tables]  # noqa: S608
    return repr(found).encode()


def holds(gateway: Organisation, word: str) -> bool:
    """Whether a word is anywhere in what a gateway keeps: its files, and what a server has."""
    files = [file for file in (gateway.folder / "var").rglob("*") if file.is_file()]
    found = any(word.encode() in file.read_bytes() for file in files)
    return found or word.encode() in stored(gateway)


def number(gateway: Organisation, sql: str, *args: object) -> int:
    """The one number that a query gives."""
    ((found,),) = rows(gateway, sql, *args)
    return int(found)


def end_leases(gateway: Organisation) -> None:
    """As if half a minute had gone by since a crash: nobody holds the turns of its workers.

    A gateway on SQLite holds them by a lock that ends with its process.
    """
    if is_postgres(store_of(gateway)):
        rows(gateway, "UPDATE worker SET until = until - 60000000")


def is_sound(gateway: Organisation) -> bool:
    """Whether the files of its database are whole. A server looks after its own."""
    if is_postgres(store_of(gateway)):
        return True
    return rows(gateway, "PRAGMA integrity_check") == [("ok",)]
