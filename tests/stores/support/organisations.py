"""An organisation whose store can be put elsewhere, and a call that can be repeated."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.stores.support import servers
from tests.support.http import Reply
from tests.support.organisation import Organisation

PAID = """
[agents.paid]
target = "agents:echo"
price = "0.0002"
"""
_URL = re.compile(r'^url = "(.+)"', re.MULTILINE)


class House(Organisation):
    """A gateway with a paid agent."""

    def __init__(self, folder: Path, url: str = "") -> None:
        super().__init__(folder, "acme.example")
        self.configure(PAID)
        if url:
            self.carnet("migrate", "--to", url)  # with its starter token
            self.use(url)

    def use(self, url: str) -> None:
        """Change the configuration as `migrate --to` says."""
        config = self.folder / "carnet.toml"
        config.write_text(_URL.sub(lambda _: f'url = "{url}"', config.read_text(), count=1))

    @property
    def store(self) -> str:
        """What the configuration names."""
        found = _URL.search((self.folder / "carnet.toml").read_text())
        assert found is not None
        return found[1]

    def call(self, name: str, *, token: str | None = None) -> Reply:
        """Ask for the only turn of a run; a repeat is the same turn."""
        stamp = [("x-tangle-runid", name), ("x-tangle-turnid", f"{name}.t0")]
        reply = self.chat(f"this is {name}", "paid", headers=stamp, token=token)
        assert reply.status == 200, reply.body
        return reply

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Look into the store from outside, or change it there."""
        if self.store.startswith("postgresql:"):
            return servers.rows(self.store, sql)
        path = self.folder / self.store.removeprefix("sqlite:")
        with closing(sqlite3.connect(path, timeout=30)) as connection:
            found = connection.execute(sql).fetchall()
            connection.commit()
            return found

    def postings(self) -> int:
        return int(self.rows("SELECT COUNT(*) FROM ledger")[0][0])
