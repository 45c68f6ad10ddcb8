"""The hosts whose caller contexts can be verified: the port `carnet.ports.trust.callers`.

Law 1. The text of a key is shown once and kept nowhere: the table has its HMAC under a pepper that
       is not in the database. Those of the file are hashed when it is read.
Law 2. A host written in carnet.toml wins over a stored one, and the program does not change it.
Law 3. Looking one up touches no disk: all of them are in memory and at most a second old.
"""

import builtins
import hmac
from collections.abc import Iterable
from typing import Final

import msgspec

from carnet.core.people.caller_host import CallerHost, site_of
from carnet.core.people.identity import Secret
from carnet.core.people.proof import SECOND_US
from carnet.errors import UsageInvalid
from carnet.ports.trust.callers import NewCaller
from carnet.ports.world.clock import Ids
from carnet.stores.database import Database, Row
from carnet.stores.secrets.secrets_file import Keys

PREFIX: Final = "cck_"  # "ck_" is in it: whatever removes tokens from logs removes it too

_LOAD: Final = (
    "SELECT url, hash, former, former_until, certificate, metadata, rate_calls, rate_seconds,"
    " added, ended FROM caller ORDER BY url"
)
_ADD: Final = (
    "INSERT INTO caller (url, hash, key_id, certificate, metadata, rate_calls, rate_seconds, added)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (url) DO UPDATE SET hash = excluded.hash,"
    " key_id = excluded.key_id, former = NULL, former_until = NULL,"
    " certificate = excluded.certificate, metadata = excluded.metadata,"
    " rate_calls = excluded.rate_calls, rate_seconds = excluded.rate_seconds,"
    " added = excluded.added, ended = NULL WHERE caller.ended IS NOT NULL"
)
_ROTATE: Final = (
    "UPDATE caller SET former = hash, former_until = ?, hash = ?, key_id = ?"
    " WHERE url = ? AND ended IS NULL AND hash IS NOT NULL"
)
_END: Final = (
    "UPDATE caller SET ended = ?, hash = NULL, former = NULL, former_until = NULL"
    " WHERE url = ? AND ended IS NULL"
)

Hashes = tuple[bytes | None, bytes | None]  # of the key, and of the one before it


class StoredCallers:
    """The calling hosts of one store, with those of the configuration file over them."""

    def __init__(self, database: Database, keys: Keys, ids: Ids) -> None:
        self._database = database
        self._keys = keys
        self._ids = ids
        self._from_file: dict[str, CallerHost] = {}
        self._stored: dict[str, CallerHost] = {}
        self._stored_hashes: dict[str, Hashes] = {}
        self._file_hashes: dict[str, Hashes] = {}

    def take(self, from_file: Iterable[tuple[CallerHost, Secret | None]]) -> None:
        """Know these of the file from now on, in the place of those that it had."""
        listed = list(from_file)
        self._from_file = {host.url: host for host, _ in listed}
        self._file_hashes = {
            host.url: (None if key is None else self._hash(key), None) for host, key in listed
        }

    def find(self, url: str, /) -> CallerHost | None:
        """A live one by its URL, however that is spelled; from memory, at most a second old."""
        site = site_of(url)
        if site is None:
            return None
        host = self._from_file.get(site) or self._stored.get(site)
        return None if host is None or host.ended is not None else host

    def holds(self, host: CallerHost, key: Secret, now: int, /) -> bool:
        """Whether a key is the host's, or the one before it while that still holds."""
        hashes = self._file_hashes if host.from_file else self._stored_hashes
        current, former = hashes.get(host.url, (None, None))
        shown = self._hash(key)
        if current is not None and hmac.compare_digest(shown, current):
            return True
        is_in_time = host.former_until is not None and now < host.former_until
        return former is not None and is_in_time and hmac.compare_digest(shown, former)

    async def add(self, new: NewCaller, now: int) -> Secret | None:
        """List one; its key is shown once and kept nowhere. None where it has a certificate."""
        self._refuse_of_file(new.url)
        key = None if new.certificate is not None else Secret(PREFIX + self._ids.token())
        row = (
            *(new.url, None if key is None else self._hash(key)),
            *(None if key is None else self._keys.key_id, new.certificate),
            *(msgspec.json.encode(new.metadata).decode(), new.rate_calls, new.rate_seconds, now),
        )
        if not await self._database.execute(_ADD, row):
            raise UsageInvalid(
                reason=f"{new.url} is listed already.",
                fix=f"Give it another key: carnet callers rotate {new.url}",
            )
        await self.refresh()
        return key

    async def rotate(self, url: str, now: int, *, overlap_seconds: int) -> Secret:
        """Give one another key; the one before holds for a while."""
        self._refuse_of_file(url)
        key, until = Secret(PREFIX + self._ids.token()), now + overlap_seconds * SECOND_US
        row = (until, self._hash(key), self._keys.key_id, url)
        if not await self._database.execute(_ROTATE, row):
            raise UsageInvalid(
                reason=f"There is no host {url} that has a key.",
                fix="'carnet callers list' shows which there are.",
            )
        await self.refresh()
        return key

    async def end(self, url: str, now: int) -> bool:
        """Believe one no longer; False if there is none."""
        self._refuse_of_file(url)
        ended = await self._database.execute(_END, (now, url))
        await self.refresh()
        return ended > 0

    async def list(self) -> builtins.list[CallerHost]:
        """All of them, by their URLs, ended ones too."""
        await self.refresh()
        known = self._stored | self._from_file
        return [known[url] for url in sorted(known)]

    async def refresh(self) -> None:
        rows = await self._database.fetch(_LOAD)
        self._stored = {row[0]: _read(row) for row in rows}
        self._stored_hashes = {row[0]: (row[1], row[2]) for row in rows}

    def _refuse_of_file(self, url: str) -> None:
        if url in self._from_file:
            raise UsageInvalid(
                reason=f"{url} is written in carnet.toml, which wins over the store.",
                fix=f'Change the section [callers."{url}"] there.',
            )

    def _hash(self, key: Secret) -> bytes:
        # Not the hash of a token: a key that is shown as one, or the other way, opens nothing.
        return hmac.digest(self._keys.pepper, b"caller\0" + key.reveal().encode(), "sha256")


def _read(row: Row) -> CallerHost:
    url, hashed, _, former_until, certificate, metadata, calls, seconds, added, ended = row
    return CallerHost(
        url=url,
        certificate=certificate,
        metadata=msgspec.json.decode(metadata),
        rate_calls=calls,
        rate_seconds=seconds,
        added=added,
        ended=ended,
        has_key=hashed is not None,
        former_until=former_until,
    )
