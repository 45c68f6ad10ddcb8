"""The delegations that this gateway has granted, and those of them that were ended (R59).

Law 1. A delegation needs no row to hold: whoever is asked verifies it with our key. The row says
       whose it is, so that it can be ended, and what has ended is known by its id.
Law 2. With one ends every one below it: those of ours that were derived from it are ended too, and
       of any other its chain names the one that ended.
Law 3. An id is told as ended until the delegation would have expired by itself, and no longer.
"""

import builtins
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from carnet.core.people.delegation import SKEW_SECONDS, Delegation
from carnet.core.people.proof import SECOND_US
from carnet.ports.world.clock import Clock
from carnet.stores.database import Database, Row

_RECORD: Final = (
    "INSERT INTO delegation (jti, parent, person, audience, scopes, budget, until)"
    " SELECT ?, (SELECT d.n FROM delegation d WHERE d.jti = ?), ?, ?, ?, ?, ?"
    " WHERE COALESCE(?, 0) = 0 OR EXISTS (SELECT 1 FROM person WHERE n = ? AND ended IS NULL)"
)
# Who is ended in this moment has ended before, or after and with it.
_LOCK: Final = "SELECT n FROM person WHERE n = ? AND ended IS NULL"
_END: Final = (
    "UPDATE delegation SET ended = ? WHERE ended IS NULL AND n IN ("
    "WITH RECURSIVE below (n) AS (SELECT n FROM delegation WHERE jti = ?"
    " UNION SELECT d.n FROM delegation d JOIN below b ON d.parent = b.n) SELECT n FROM below)"
)
_ENDED_AT: Final = "SELECT jti FROM delegation WHERE ended = ? ORDER BY n"
_ENDED: Final = "SELECT jti, until FROM delegation WHERE ended IS NOT NULL AND until > ? ORDER BY n"
_LIST: Final = (
    "SELECT d.jti, p.name, d.audience, d.scopes, d.until, d.ended, u.jti FROM delegation d"
    " LEFT JOIN person p ON p.n = d.person LEFT JOIN delegation u ON u.n = d.parent"
    " WHERE d.until > ? ORDER BY d.n DESC LIMIT ?"
)
_MARGIN_US: Final = SKEW_SECONDS * SECOND_US


class GrantedDelegation(Struct, frozen=True, kw_only=True):
    """A delegation of ours, as it is listed."""

    id: str
    person: str | None
    audience: str
    scope: tuple[str, ...]
    until: int  # microseconds since the epoch
    ended: int | None
    parent: str | None


class StoredDelegations:
    """What was granted, and what of it has ended."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._ended: dict[str, int] = {}  # by id, until when it would have held

    def ended_link(self, delegation: Delegation, /) -> int | None:
        """The number of the first link of a chain that was ended; from memory, a second old."""
        if not self._ended:
            return None
        links = enumerate(delegation.chain(), 1)
        return next((number for number, link in links if link.token_id in self._ended), None)

    def has_ended(self, ids: Iterable[str]) -> bool:
        """Whether one of these was ended."""
        return not self._ended.keys().isdisjoint(ids)

    def ended(self) -> dict[str, int]:
        """The ids that were ended, each with until when it would have held."""
        return self._ended

    async def record(self, granted: Delegation, person: int | None = None) -> bool:
        """Note one that was granted; False if its person has ended."""
        budget, above = granted.budget, granted.parent
        row = (
            *(granted.token_id, None if above is None else above.token_id, person),
            *(granted.audience or "", " ".join(granted.scope)),
            *(None if budget is None else budget.money, granted.expires * SECOND_US),
            *(person, person),
        )
        locked = (_LOCK + self._database.row_lock, (person or 0,))
        *_, recorded = await self._database.transact([locked, (_RECORD, row)])
        return recorded > 0

    async def end(self, id: str, now: int) -> builtins.list[str]:
        """End one and all below it; their ids, none if it is unknown or ended already."""
        ended = await self._database.execute(_END, (now, id))
        await self.refresh()
        rows = await self._database.fetch(_ENDED_AT, (now,)) if ended else []
        return [str(found) for (found,) in rows]

    async def list(self, now: int, *, limit: int) -> builtins.list[GrantedDelegation]:
        """Those that have not expired, newest first."""
        return [_read(row) for row in await self._database.fetch(_LIST, (now, limit))]

    async def refresh(self) -> None:
        since = self._clock.wall_us() - _MARGIN_US
        self._ended = dict(await self._database.fetch(_ENDED, (since,)))


def _read(row: Row) -> GrantedDelegation:
    id, person, audience, scopes, until, ended, parent = row
    return GrantedDelegation(
        id=id,
        person=person,
        audience=audience,
        scope=tuple(scopes.split()),
        until=until,
        ended=ended,
        parent=parent,
    )
