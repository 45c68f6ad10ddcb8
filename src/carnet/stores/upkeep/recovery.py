"""After a stop of any kind: the turns that nobody runs any more.

Law 1. A running turn whose worker is gone becomes unknown, and what it held is released, in one
       transaction each; a task waits again instead, one attempt later, and goes on to hold it. A
       crash in the middle leaves whole turns for the next start.
Law 2. Doing it twice changes nothing, also by two processes at once: the fence decides.
Law 3. Where one process runs turns (for SQLite the holder of the lock file), it is done before the
       first claim, so every turn that is still running is an earlier worker's. Where several do,
       only those of workers whose lease has run out are given up.
Law 4. A task that is unknown was given up by a gateway of a version that knows of no tasks: the
       next start takes it up, and it waits again.
"""

import asyncio
from typing import Final

from carnet.core.chain.turn import Turn
from carnet.core.messages.outbound_call import lost_attempt
from carnet.core.people.identity import Payer
from carnet.faults import point
from carnet.ports.calls.turns import Fenced, TurnFinish
from carnet.stores.calls.tasks import waits_again
from carnet.stores.database import Database
from carnet.stores.turn.moves import becomes, moves
from carnet.stores.turn.row import TURN_COLUMNS, place, read_turn

AT_A_TIME: Final = 100

_HAS_SEALED_CALL = "SELECT 1 FROM task k JOIN kept_call c ON c.turn = k.turn WHERE k.turn = t.n"
_LOST = (
    f"SELECT {TURN_COLUMNS}, EXISTS ({_HAS_SEALED_CALL}) FROM run r JOIN turn t ON t.run = r.n"  # noqa: S608
    " WHERE t.state = 'running' AND {} ORDER BY t.n LIMIT ?"
)
_FORGET_WORKERS = "DELETE FROM worker"
_GIVEN_UP = (
    f"SELECT {TURN_COLUMNS} FROM task k JOIN turn t ON t.n = k.turn"  # noqa: S608
    " JOIN run r ON r.n = t.run JOIN kept_call c ON c.turn = k.turn"
    " WHERE k.ended IS NULL AND t.state = 'unknown' ORDER BY t.n"
)
_LOCK_RUN = "SELECT n FROM run WHERE n = ?"
_TAKE_UP = (
    f"UPDATE turn SET {becomes('running')}, worker = ?, ended = NULL,"  # noqa: S608
    " run_cost = NULL, code = NULL, retryable = 0"
    f" WHERE n = ? AND {moves('unknown', 'running')} AND fence = ?"
)


async def recover(database: Database, *, now: int) -> int:
    """Give up the turns of workers that are gone; how many there were."""
    point("recover.begin")
    ended = 0
    query = _LOST.format(database.abandoned)
    while lost := await database.fetch(query, (AT_A_TIME,)):
        # Each stands for itself; those of one round share a commit.
        given_up = []
        for row in lost:
            point("recover.each_turn")
            turn = read_turn(row)
            end = waits_again(turn, now, lost=True) if row[-1] else _given_up(turn, now)
            given_up.append(database.finish(end))
        for answer in await asyncio.gather(*given_up, return_exceptions=True):
            if not isinstance(answer, BaseException):
                ended += 1
            elif not isinstance(answer, Fenced):  # that one, another process has given up
                raise answer
    if not database.is_shared:  # else the leases are kept by the clock of the database
        await database.execute(_FORGET_WORKERS)
    point("recover.end")
    return ended


async def take_up(database: Database, worker: str, *, now: int) -> int:
    """Let tasks wait again that were given up as if they were calls; how many there were."""
    taken = 0
    for row in await database.fetch(_GIVEN_UP):
        turn = read_turn(row)
        locked = (_LOCK_RUN + database.row_lock, (row[place("run")],))
        counts = await database.transact([locked, (_TAKE_UP, (worker, turn.n, turn.fence))])
        if counts[1]:
            await database.finish(waits_again(turn, now, lost=True))
            taken += 1
    return taken


def _given_up(turn: Turn, now: int) -> TurnFinish:
    return TurnFinish(
        turn=turn,
        state="unknown",
        payer=Payer(account=turn.payer, quota=""),  # nothing is spent; the row says what it held
        events=b"",
        first=0,
        last=0,
        debits=(),
        children_cost=0,
        reserve=0,
        now=now,
        retryable=True,
        outbound=(lost_attempt(turn),),
    )
