"""The addresses that are told the end of a task.

Law 1. An address is added or taken away under the lock of its run, as every change of a turn, and
       never of a task that has ended, unless it has a name: whoever named it may look it up.
Law 2. An end is told to the addresses that there are when it is committed: deliveries are written
       for those that were read before, and an end that finds others is written anew.
"""
# ruff: noqa: S608  the texts are put together from our own words; every value is an argument

import logging
from collections.abc import Sequence
from typing import Final

from msgspec.structs import asdict

from carnet.core.chain.turn import Turn
from carnet.core.people.identity import Secret
from carnet.ports.calls.tasks import MOST_CALLBACKS, Callback
from carnet.ports.calls.turns import Tell, TurnFinish
from carnet.stores.database import Database, Row, Statement
from carnet.stores.secrets.seal import Unsealable
from carnet.stores.turn.sealed_calls import CallSeal

_log = logging.getLogger(__name__)

CALLBACK_COLUMNS: Final = "b.turn, b.place, b.url, b.created"  # what says whether they are the same

_SELECT = (
    f"SELECT {CALLBACK_COLUMNS}, b.dialect, b.token, b.auth_sealed, b.name, k.id FROM"
    " callback b"
    " JOIN task k ON k.turn = b.turn WHERE {} = ? ORDER BY b.place"
)
_OF_TASK, _OF_TURN = _SELECT.format("k.id"), _SELECT.format("k.turn")
_LOCK = (
    "SELECT n FROM run WHERE n ="
    " (SELECT t.run FROM task k JOIN turn t ON t.n = k.turn WHERE k.id = ?)"
)
# The next place, if the task has not ended and has not too many.
_ADD = (
    "INSERT INTO callback (turn, place, url, dialect, token, created, name)"
    " SELECT k.turn, (SELECT COALESCE(MAX(b.place) + 1, 0) FROM callback b WHERE b.turn = k.turn),"
    " CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS BIGINT),"
    " CAST(? AS TEXT)"
    " FROM task k WHERE k.id = ? AND (k.ended IS NULL OR CAST(? AS TEXT) IS NOT NULL)"
    " AND (SELECT COUNT(*) FROM callback b WHERE b.turn = k.turn) < ?"
)
_SEAL = (
    "UPDATE callback SET auth_sealed = ?, key_id = ? WHERE url = ? AND created = ?"
    " AND auth_sealed IS NULL AND turn IN (SELECT k.turn FROM task k WHERE k.id = ?)"
)
_REMOVE = (
    "DELETE FROM callback WHERE place = ? AND turn IN"
    " (SELECT k.turn FROM task k WHERE k.id = ?)"
    " AND (name IS NOT NULL OR turn IN (SELECT k.turn FROM task k WHERE k.ended IS NULL))"
)


class CallbacksChanged(Exception):
    """The task has other addresses than its deliveries; nothing was written."""


class NotifyingFinish(TurnFinish, frozen=True, kw_only=True):
    """The end of a task, with deliveries to the addresses it had a moment ago.

    An end that is none of these is told to nobody.
    """

    addresses: tuple[Row, ...]  # as CALLBACK_COLUMNS has them


class StoredCallbacks:
    """The addresses of the tasks of one store."""

    def __init__(self, database: Database, call_seal: CallSeal) -> None:
        self._database = database
        self._call_seal = call_seal
        self._lock = _LOCK + database.row_lock

    async def of(self, task: str) -> list[Callback]:
        """Those of a task, in the order in which they were named."""
        return [self._read(row) for row in await self._database.fetch(_OF_TASK, (task,))]

    async def of_turn(self, turn: int) -> list[Callback]:
        """Those of the task that a turn is."""
        return [self._read(row) for row in await self._database.fetch(_OF_TURN, (turn,))]

    def _read(self, row: Row) -> Callback:
        _, place, url, created, dialect, token, sealed, name, task = row
        authorization: Secret | None = None
        if sealed is not None:
            try:
                authorization = Secret(self._call_seal.open_word(sealed, task))
            except Unsealable:
                _log.warning("a callback of task %s was sealed with another secrets file", task)
        return Callback(
            place=place,
            name=name,
            url=url,
            dialect=dialect,
            token=token,
            created=created,
            authorization=authorization,
        )

    async def add(self, task: str, callback: Callback) -> bool:
        """Tell the end there too; False if the task has ended, or has as many as it may."""
        what = (callback.url, callback.dialect, callback.token, callback.created, callback.name)
        statements: list[Statement] = [(_ADD, (*what, task, callback.name, MOST_CALLBACKS))]
        if callback.authorization is not None:
            sealed = self._call_seal.seal_word(callback.authorization.reveal(), task)
            statements.append((_SEAL, (*sealed, callback.url, callback.created, task)))
        return await self._change(task, statements)

    async def remove(self, task: str, place: int) -> bool:
        """Tell the end there no more; False if there is none, or the task has ended."""
        return await self._change(task, [(_REMOVE, (place, task))])

    async def _change(self, task: str, statements: Sequence[Statement]) -> bool:
        """Whether the first of them changed something."""
        return (await self._database.transact([(self._lock, (task,)), *statements]))[1] > 0

    async def finish(self, finish: TurnFinish, tell: Tell) -> Turn:
        """End a task, and tell it to the addresses that it has then. Raises Fenced."""
        rows: Sequence[Row] = ()  # few have any: that is found out when the end is written
        if finish.has_callback:
            rows = await self._database.fetch(_OF_TURN, (finish.turn.n,))
        while True:
            try:
                return await self._database.finish(
                    self._notifying(finish, tell, rows) if rows else finish
                )
            except CallbacksChanged:  # it has some, or somebody names or takes back one just now
                rows = await self._database.fetch(_OF_TURN, (finish.turn.n,))

    def _notifying(self, finish: TurnFinish, tell: Tell, rows: Sequence[Row]) -> NotifyingFinish:
        deliveries = tell([self._read(row) for row in rows])
        given = asdict(finish) | {"deliveries": (*finish.deliveries, *deliveries)}
        return NotifyingFinish(**given, addresses=tuple([tuple(row[:4]) for row in rows]))
