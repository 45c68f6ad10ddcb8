"""The hooks of one store: the port `carnet.ports.calls.triggers.Hooks`.

Law 1. A secret is sealed for its own hook: rows cannot be exchanged.
Law 2. An event is remembered, and what it begins is written down, in one transaction, which of
       several copies that come at once holds for one.
"""

import builtins
from typing import Final

from carnet.core.people.identity import Secret
from carnet.errors import (
    StorageUnavailable,
    TooManyFirings,
    TooManyTriggers,
    TriggerExists,
    TriggerPaused,
)
from carnet.faults import point
from carnet.ports.calls.triggers import Hook, NewFiring, NewHook
from carnet.stores.database import Database, Row
from carnet.stores.secrets.seal import Seal, Unsealable
from carnet.stores.secrets.secrets_file import Keys
from carnet.stores.triggers.firings import (
    FORGET_AT_A_TIME,
    FORGET_FIRINGS,
    RETRY_SECONDS,
    insert_firing,
)

_COLUMNS: Final = "n, person, name, token, agent, scheme, template, created, paused, previous_until"
_ADD: Final = (
    "INSERT INTO hook (person, name, token, agent, scheme, template, sealed, key_id, created)"
    " SELECT ?, ?, ?, ?, ?, ?, ?, ?, ? WHERE (SELECT COUNT(*) FROM hook WHERE person = ?) < ?"
    " AND EXISTS (SELECT 1 FROM person WHERE n = ? AND ended IS NULL) ON CONFLICT DO NOTHING"
)
_LIST: Final = f"SELECT {_COLUMNS} FROM hook WHERE person = ? ORDER BY name"  # noqa: S608
_FIND: Final = f"SELECT {_COLUMNS} FROM hook WHERE person = ? AND name = ?"  # noqa: S608
_SECRETS: Final = (
    "SELECT sealed, previous_sealed, previous_until FROM hook WHERE n = ? AND created = ?"
)
_ROTATE: Final = (
    "UPDATE hook SET previous_sealed = sealed, previous_until = ?, sealed = ?, key_id = ?"
    " WHERE n = ? AND created = ?"
)
_PAUSE: Final = "UPDATE hook SET paused = COALESCE(paused, ?) WHERE person = ? AND name = ?"
_RESUME: Final = "UPDATE hook SET paused = NULL WHERE person = ? AND name = ?"
_FORGET_SEEN: Final = (
    "DELETE FROM hook_seen WHERE hook IN (SELECT n FROM hook WHERE person = ? AND name = ?)"
)
_DELETE: Final = "DELETE FROM hook WHERE person = ? AND name = ?"
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
        self._key_id = keys.key_id
        self._seal = Seal(keys.seal)

    async def add(self, new: NewHook, secret: Secret, *, most: int, now: int) -> Hook:
        """Keep one. Raises TriggerExists, or TooManyTriggers where she has `most`."""
        sealed = self._seal.seal(secret.reveal(), label=_label(new, now))
        row = (
            *(new.person, new.name, new.token, new.agent, new.scheme, new.template, sealed),
            *(self._key_id, now, new.person, most, new.person),
        )
        if not await self._database.execute(_ADD, row):
            if await self.find(new.person, new.name) is not None:
                raise TriggerExists
            raise TooManyTriggers(limit=most)
        made = await self.find(new.person, new.name)
        if made is None:  # deleted in this moment
            raise TriggerExists
        return made

    async def list(self, person: int) -> builtins.list[Hook]:
        """Hers, by name."""
        return [_read(row) for row in await self._database.fetch(_LIST, (person,))]

    async def find(self, person: int, name: str) -> Hook | None:
        """One of hers."""
        rows = await self._database.fetch(_FIND, (person, name))
        return _read(rows[0]) if rows else None

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

    async def rotate(self, hook: Hook, secret: Secret, *, until: int) -> bool:
        """Give it another secret; the former one is good until then. False if there is none."""
        sealed = self._seal.seal(secret.reveal(), label=_label(hook, hook.created))
        row = (until, sealed, self._key_id, hook.n, hook.created)
        return await self._database.execute(_ROTATE, row) > 0

    async def pause(self, person: int, name: str, now: int) -> bool:
        """Let it take nothing; False if there is none."""
        return await self._database.execute(_PAUSE, (now, person, name)) > 0

    async def resume(self, person: int, name: str) -> bool:
        """Let it go on; False if there is none."""
        return await self._database.execute(_RESUME, (person, name)) > 0

    async def delete(self, person: int, name: str) -> bool:
        """Forget it, and what it was to begin; False if there is none."""
        whose = (person, name)
        *_, gone = await self._database.transact(
            [(FORGET_FIRINGS, ("webhook", *whose)), (_FORGET_SEEN, whose), (_DELETE, whose)]
        )
        return gone > 0

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
        found = await self.find(hook.person, hook.name)
        if found is None or found.paused is not None:
            raise TriggerPaused
        raise TooManyFirings(limit=most, retry_after=RETRY_SECONDS)

    async def forget(self, now: int) -> int:
        """Delete events that need to be remembered no longer; how many that were."""
        return await self._database.execute(_FORGET, (now, FORGET_AT_A_TIME))


def _label(hook: NewHook, created: int) -> str:
    return f"hook:{hook.person}:{hook.name}:{created}"


def _read(row: Row) -> Hook:
    n, person, name, token, agent, scheme, template, created, paused, previous_until = row
    return Hook(
        n=n,
        person=person,
        name=name,
        token=token,
        agent=agent,
        scheme=scheme,
        template=template,
        created=created,
        paused=paused,
        previous_until=previous_until,
    )
