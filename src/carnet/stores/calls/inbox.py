"""What people are asked, as the store keeps it: the port `carnet.ports.calls.inbox`.

Law. A question is looked up by its owner and its id, never by the id alone, but for an operator.
"""

import asyncio
import builtins
from functools import partial
from typing import Final

from carnet.ports.calls.inbox import InboxEntry
from carnet.stores.database import Database, Row, Value
from carnet.stores.secrets.seal import Unsealable, beside
from carnet.stores.turn.interrupts import Interrupts
from carnet.stores.turn.row import TURN_COLUMNS, TURN_WIDTH, place, read_turn
from carnet.stores.turn.sealed_calls import CallSeal

AT_A_TIME: Final = 8  # are read before others have their turn

_SELECT: Final = (
    f"SELECT {TURN_COLUMNS}, i.n, i.owner, {Interrupts.SELECTED},"  # noqa: S608  # our own words
    " (SELECT c.sealed FROM kept_call c WHERE c.turn = i.turn)"
    " FROM interrupt i JOIN turn t ON t.n = i.turn JOIN run r ON r.n = t.run"
    " WHERE {}i.owner {} ORDER BY {} DESC LIMIT ?"
)
_OPEN: Final = "i.status = 'open' AND "  # as the index of them says it, by owner
_NEWEST: Final = "i.n"
# Few are open and many were answered: in their order all of those would be read.
_NEWEST_OPEN: Final = "i.n + 0"
_BEFORE: Final = "i.n < ? AND "
_NAMED: Final = "i.id = ? AND "
_STATED: Final = f"i.state_hash = ? AND {_OPEN}"
_DIGEST, _KEY = place("digest"), place("key")


class StoredInbox:
    """The questions of one store."""

    def __init__(self, database: Database, interrupts: Interrupts, call_seal: CallSeal) -> None:
        self._database = database
        self._interrupts = interrupts
        self._call_seal = call_seal

    async def list(
        self, *, owner: str | None, is_open: bool, limit: int, before: int | None = None
    ) -> builtins.list[InboxEntry]:
        """The newest first; `owner` None is everybody's."""
        where = (_OPEN if is_open else "") + ("" if before is None else _BEFORE)
        args: builtins.list[Value] = [] if before is None else [before]
        found: builtins.list[InboxEntry] = []
        for row in await self._rows(where, args, owner, limit):
            found.append(self._read(row))
            if len(found) % AT_A_TIME == 0:
                await asyncio.sleep(0)  # each may be wide, and others wait
        return found

    async def find(self, name: str, *, owner: str | None) -> InboxEntry | None:
        """One of them by the public id of its interrupt; the newest, should there be several."""
        rows = await self._rows(_NAMED, [name], owner, 1)
        if not rows:
            return None
        return await beside(len(rows[0][-1] or b""), partial(self._read, rows[0], is_opened=True))

    async def of_state(self, state: bytes) -> builtins.list[InboxEntry]:
        """Open ones by the hash of their secret, the newest of them, with their calls."""
        rows = await self._rows(_STATED, [state], None, AT_A_TIME)
        return [
            await beside(len(row[-1] or b""), partial(self._read, row, is_opened=True))
            for row in rows
        ]

    async def _rows(
        self, where: str, args: builtins.list[Value], owner: str | None, limit: int
    ) -> builtins.list[Row]:
        whose = "IS NOT NULL" if owner is None else "= ?"
        is_of_all = owner is None and _OPEN in where
        query = _SELECT.format(where, whose, _NEWEST_OPEN if is_of_all else _NEWEST)
        more: builtins.list[Value] = [limit] if owner is None else [owner, limit]
        return [*await self._database.fetch(query, [*args, *more])]

    def _read(self, row: Row, *, is_opened: bool = False) -> InboxEntry:
        n, owner, *asked, sealed = row[TURN_WIDTH:]
        call_bytes = b""
        if is_opened and sealed is not None:
            try:
                call_bytes = self._call_seal.open(sealed, row[_KEY])
            except Unsealable:  # the secrets file is another one: nobody can run it on
                call_bytes = b""
        return InboxEntry(
            n=n,
            record=self._interrupts.read(tuple(asked)),
            turn=read_turn(row),
            owner=owner,
            digest=row[_DIGEST],
            call_bytes=call_bytes,
        )
