"""After a stop of any kind: the turns that nobody runs any more.

Law 1. A running turn whose worker is gone becomes unknown, and what it held is released, in one
       transaction each. A crash in the middle leaves whole turns for the next start.
Law 2. Doing it twice changes nothing.
Law 3. It is done before the first claim, by the one process that may run turns (for SQLite the
       holder of the lock file), so every turn that is still running is an earlier worker's.
"""

import asyncio
from typing import Final

from carnet.faults import point
from carnet.stores.database import Database, Row, Statement
from carnet.stores.journal import ENDED, sealed_row

AT_A_TIME: Final = 100

_LOST = "SELECT n, fence, reserve, purse FROM turn WHERE state = 'running' ORDER BY n LIMIT ?"
_END = (
    "UPDATE turn SET state = 'unknown', ended = ?, reserve = 0, retryable = 1"
    " WHERE n = ? AND fence = ? AND state = 'running'"
)
_RELEASE = "UPDATE purse SET reserved = reserved - ? WHERE name = ?"
_NOTE = "INSERT INTO journal (turn, kind, first, last, data, crc) VALUES (?, ?, ?, ?, ?, ?)"
_FORGET_WORKERS = "DELETE FROM worker"


async def recover(database: Database, *, now: int) -> int:
    """Give up the turns of earlier workers; how many there were."""
    point("recover.begin")
    ended = 0
    while lost := await database.fetch(_LOST, (AT_A_TIME,)):
        # Each is a transaction of its own; those of one round share a commit.
        given_up = []
        for row in lost:
            point("recover.each_turn")
            given_up.append(database.transact(_given_up(row, now)))
        await asyncio.gather(*given_up)
        ended += len(lost)
    await database.execute(_FORGET_WORKERS)
    point("recover.end")
    return ended


def _given_up(row: Row, now: int) -> list[Statement]:
    n, fence, reserve, purse = row
    statements: list[Statement] = [
        (_END, (now, n, fence)),
        (_NOTE, sealed_row(n, ENDED, 0, 0, b'{"state":"unknown"}')),
    ]
    if reserve:
        statements.append((_RELEASE, (reserve, purse)))
    return statements
