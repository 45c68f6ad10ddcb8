"""Those whom we have met without knowing them: the port `carnet.ports.trust.strangers`.

Law 1. A key is remembered once, whoever of several processes comes first.
Law 2. One caller has so many remembered and no more; that of others is not used up by it.
Law 3. What is remembered changes by what it vouches for itself (a set that holds a key of before),
       or by a person's word, and by nothing else.
"""

import builtins

from carnet.ports.trust.strangers import KEY_BYTES, Stranger
from carnet.ports.world.clock import Clock
from carnet.stores.database import Database, Row

_LIST = "SELECT domain, key, first_seen, confirmed_by, offered FROM stranger"
_FIND = _LIST + " WHERE domain = ?"
_MEET = (
    "INSERT INTO stranger (domain, key, first_seen, met_by)"
    " SELECT ?, ?, ?, ? WHERE (SELECT COUNT(*) FROM stranger WHERE met_by = ?) < ?"
    " ON CONFLICT (domain) DO NOTHING"
)
_FOLLOW = "UPDATE stranger SET key = ?, offered = NULL WHERE domain = ? AND key = ?"
_OFFER = "UPDATE stranger SET offered = ? WHERE domain = ?"
_CONFIRM = (
    "UPDATE stranger SET key = offered, offered = NULL, confirmed_by = ?"
    " WHERE domain = ? AND offered IS NOT NULL"
)


class StoredStrangers:
    """Those of one store."""

    def __init__(self, database: Database, clock: Clock) -> None:
        """`clock` says when they were met."""
        self._database = database
        self._clock = clock

    async def find(self, domain: str) -> Stranger | None:
        """One that we have met."""
        rows = await self._database.fetch(_FIND, (domain,))
        return _read(rows[0]) if rows else None

    async def meet(
        self, domain: str, keys: frozenset[bytes], *, by: str, most: int
    ) -> Stranger | None:
        """Remember one at first use; who was faster has it. None where `by` has met `most`."""
        given = (domain, _written(keys), self._clock.wall_us(), by, by, most)
        await self._database.execute(_MEET, given)
        return await self.find(domain)

    async def follow(self, domain: str, before: frozenset[bytes], now: frozenset[bytes]) -> None:
        """Remember what it publishes now, if what was remembered is still so."""
        await self._database.execute(_FOLLOW, (_written(now), domain, _written(before)))

    async def note_offer(self, domain: str, keys: frozenset[bytes]) -> None:
        """Note other keys that it showed, for a person to confirm."""
        await self._database.execute(_OFFER, (_written(keys), domain))

    async def confirm(self, domain: str, person: int) -> Stranger | None:
        """Take over the keys that were offered; None where none were."""
        if not await self._database.execute(_CONFIRM, (person, domain)):
            return None
        return await self.find(domain)

    async def list(self) -> builtins.list[Stranger]:
        """All that we have met."""
        return [_read(row) for row in await self._database.fetch(_LIST + " ORDER BY domain")]


def _written(keys: frozenset[bytes]) -> bytes:
    return b"".join(sorted(keys))


def _read(row: Row) -> Stranger:
    domain, key, first_seen, confirmed_by, offered = row
    return Stranger(
        domain=domain,
        keys=_keys(key),
        first_seen=first_seen,
        confirmed_by=confirmed_by,
        offered=None if offered is None else _keys(offered),
    )


def _keys(data: bytes) -> frozenset[bytes]:
    whole = bytes(data)
    return frozenset(whole[place : place + KEY_BYTES] for place in range(0, len(whole), KEY_BYTES))
