"""The hooks of one store: the port `carnet.ports.calls.triggers.Hooks`.

Law 1. A secret is sealed for its own hook: rows cannot be exchanged.
Law 2. An event is remembered, and what it begins is written down, in one transaction, which of
       several copies that come at once holds for one.
"""

import builtins
from typing import Final

from msgspec.structs import asdict

from carnet.core.people.identity import Secret
from carnet.errors import (
    StorageUnavailable,
    TooManyFirings,
    TriggerPaused,
)
from carnet.faults import point
from carnet.ports.calls.triggers import Hook, NewFiring, NewHook
from carnet.stores.database import Database, Row
from carnet.stores.secrets.seal import Seal, Unsealable
from carnet.stores.secrets.secrets_file import Keys
from carnet.stores.triggers.firings import FORGET_AT_A_TIME, RETRY_SECONDS, insert_firing
from carnet.stores.triggers.owned import OwnedRows

_NAMES: Final = Hook.__struct_fields__
_COLUMNS: Final = ", ".join(_NAMES)
_SECRETS: Final = (
    "SELECT sealed, previous_sealed, previous_until FROM hook WHERE n = ? AND created = ?"
)
_ROTATE: Final = (
    "UPDATE hook SET previous_sealed = sealed, previous_until = ?, sealed = ?, key_id = ?,"
    " token = ?"
    " WHERE n = ? AND created = ?"
)
_FORGET_SEEN: Final = (
    "DELETE FROM hook_seen WHERE hook IN (SELECT n FROM hook WHERE person = ? AND name = ?)"
)
# Another copy waits here until this one is committed, and then finds that it is remembered.
_REMEMBER: Final = (
    "INSERT INTO hook_seen (hook, event, expires, claim) SELECT n, ?, ?, ? FROM hook"
    " WHERE n = ? AND created = ? AND paused IS NULL"
    " AND (SELECT COUNT(*) FROM firing WHERE person = ? AND state = 'due') < ?"
    " ON CONFLICT (hook, event) DO UPDATE SET expires = excluded.expires, claim = excluded.claim"
    " WHERE hook_seen.expires <= ?"
)
_CLAIMED: Final = (
    " WHERE EXISTS (SELECT 1 FROM hook_seen WHERE hook = ? AND event = ? AND claim = ?)"
    " ON CONFLICT DO NOTHING"
)
_IS_KNOWN: Final = "SELECT 1 FROM hook_seen WHERE hook = ? AND event = ? AND expires > ?"
_FORGET: Final = (
    "DELETE FROM hook_seen WHERE (hook, event) IN"
    " (SELECT hook, event FROM hook_seen WHERE expires <= ? ORDER BY expires LIMIT ?)"
)


class StoredHooks:
    """The hooks of one store."""

    def __init__(self, database: Database, keys: Keys) -> None:
        self._database = database
        self.own: Final = OwnedRows(
            database, "hook", "webhook", _COLUMNS, _read, forgets=(_FORGET_SEEN,)
        )
        self._key_id = keys.key_id
        self._seal = Seal(keys.seal)

    async def add(self, new: NewHook, secret: Secret, *, most: int, now: int) -> Hook:
        """Keep one. Raises TriggerExists, or TooManyTriggers where she has `most`."""
        sealed = self._seal.seal(secret.reveal(), label=_label(new, now))
        row = {**asdict(new), "sealed": sealed, "key_id": self._key_id, "created": now}
        return await self.own.add(row, most=most)

    async def secrets(self, hook: Hook, now: int) -> builtins.list[Secret]:
        """What a request to it may be signed with: the secret, and the former one for a while."""
        rows = await self._database.fetch(_SECRETS, (hook.n, hook.created))
        if not rows:
            return []
        sealed, former, until = rows[0]
        good = [sealed, *([former] if former is not None and now < (until or 0) else [])]
        label = _label(hook, hook.created)
        try:
            return [Secret(self._seal.open(each, label=label)) for each in good]
        except Unsealable as error:
            raise StorageUnavailable("the secrets file is another one") from error

    async def rotate(self, hook: Hook, secret: Secret, *, token: int, until: int) -> bool:
        """Give it another secret; the former one is good until then. False if there is none.

        It runs with this token from now on.
        """
        sealed = self._seal.seal(secret.reveal(), label=_label(hook, hook.created))
        row = (until, sealed, self._key_id, token, hook.n, hook.created)
        return await self._database.execute(_ROTATE, row) > 0

    async def receive(
        self, hook: Hook, event: str, firing: NewFiring, *, expires: int, most: int, now: int
    ) -> bool:
        """Write down what an event is to begin; False if the event is known already.

        Raises TriggerPaused, or TooManyFirings where `most` are to begin for her.
        """
        insert, row = insert_firing("webhook", hook, firing)
        remember = (event, expires, firing.key, hook.n, hook.created, hook.person, most, now)
        point("hook.before_keep")
        remembered, _ = await self._database.transact(
            [(_REMEMBER, remember), (insert + _CLAIMED, (*row, hook.n, event, firing.key))]
        )
        point("hook.kept")
        if remembered:
            return True
        if await self._database.fetch(_IS_KNOWN, (hook.n, event, now)):
            return False
        found = await self.own.find(hook.person, hook.name)
        if found is None or found.paused is not None:
            raise TriggerPaused
        raise TooManyFirings(limit=most, retry_after=RETRY_SECONDS)

    async def forget(self, now: int) -> int:
        """Delete events that need to be remembered no longer; how many that were."""
        return await self._database.execute(_FORGET, (now, FORGET_AT_A_TIME))


def _label(hook: NewHook, created: int) -> str:
    return f"hook:{hook.person}:{hook.name}:{created}"


def _read(row: Row) -> Hook:
    return Hook(**dict(zip(_NAMES, row, strict=True)))
