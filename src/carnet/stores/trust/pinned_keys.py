"""The keys of others that the operator wrote down: the port `carnet.ports.trust.keys.PinnedKeys`.

Law 1. The keys of a sender that carnet.toml names win over stored ones of the same sender, and the
       program does not change them.
Law 2. A key that would verify forged signatures is refused when it is written down.
"""

import builtins
from collections.abc import Iterable, Sequence

from carnet.errors import UsageInvalid
from carnet.ports.trust.keys import PinnedKey
from carnet.stores.database import Database, Row
from carnet.wire.crypto.ed25519 import check_public_key

_LOAD = "SELECT sender, kid, public, added, revoked FROM pinned_key ORDER BY sender, kid"
_PIN = (
    "INSERT INTO pinned_key (sender, kid, public, added) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (sender, kid) DO UPDATE SET public = excluded.public, added = excluded.added,"
    " revoked = NULL, person = CASE WHEN pinned_key.revoked IS NULL THEN pinned_key.person END"
)
_REVOKE_ALL = "UPDATE pinned_key SET revoked = ? WHERE sender = ? AND revoked IS NULL"
_REVOKE_ONE = f"{_REVOKE_ALL} AND kid = ?"
_REMOVE = "DELETE FROM pinned_key WHERE sender = ?"

_ANY = ""  # in place of the kid of a key that has none


class StoredPinnedKeys:
    """The pinned keys of one store, with those of the configuration file over them."""

    def __init__(self, database: Database, from_file: Iterable[PinnedKey]) -> None:
        self._database = database
        self._from_file = _by_sender(from_file)
        self._stored: dict[str, builtins.list[PinnedKey]] = {}
        self._known = self._from_file

    def take(self, from_file: Iterable[PinnedKey]) -> None:
        """Know these of the file from now on, in the place of those that it had."""
        self._from_file = _by_sender(from_file)
        self._known = self._stored | self._from_file

    def of(self, sender: str) -> Sequence[PinnedKey]:
        """The keys of a sender, revoked ones too; from memory, at most a second old."""
        try:
            return self._known[sender]
        except KeyError:
            return ()

    async def pin(self, key: PinnedKey) -> None:
        """Add one; the same sender and kid again replaces it."""
        self._refuse_from_file(key.sender)
        public = check_public_key(key.public)
        await self._database.execute(_PIN, (key.sender, key.kid or _ANY, public, key.added))
        await self.refresh()

    async def revoke(self, sender: str, kid: str | None, now: int) -> int:
        """Revoke the keys of a sender (one of them, with a kid); how many."""
        self._refuse_from_file(sender)
        if kid is None:
            revoked = await self._database.execute(_REVOKE_ALL, (now, sender))
        else:
            revoked = await self._database.execute(_REVOKE_ONE, (now, sender, kid))
        await self.refresh()
        return revoked

    async def remove(self, sender: str) -> int:
        """Forget a sender's keys; how many there were."""
        self._refuse_from_file(sender)
        removed = await self._database.execute(_REMOVE, (sender,))
        await self.refresh()
        return removed

    async def list(self) -> builtins.list[PinnedKey]:
        await self.refresh()
        return [key for sender in sorted(self._known) for key in self._known[sender]]

    async def refresh(self) -> None:
        stored = _by_sender(map(_read, await self._database.fetch(_LOAD)))
        self._stored, self._known = stored, stored | self._from_file

    def _refuse_from_file(self, sender: str) -> None:
        if sender in self._from_file:
            raise UsageInvalid(
                reason=f"The keys of {sender} are written in carnet.toml, which wins over the"
                " store.",
                fix="Change 'keys' in its section [peers.\"...\"] there.",
            )


def _by_sender(keys: Iterable[PinnedKey]) -> dict[str, builtins.list[PinnedKey]]:
    found: dict[str, list[PinnedKey]] = {}
    for key in keys:
        found.setdefault(key.sender, []).append(key)
    return found


def _read(row: Row) -> PinnedKey:
    sender, kid, public, added, revoked = row
    return PinnedKey(sender=sender, kid=kid or None, public=public, added=added, revoked=revoked)
