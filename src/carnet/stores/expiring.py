"""Turns whose answer did not come in its time.

Law 1. One that waits longer than it may fails, and gives back what it held, in one transaction.
Law 2. Several gateways that do it at once do no harm: the fence and the state decide.
"""

from typing import Final

from carnet.core.events import Failed, write_events
from carnet.core.identity import Payer
from carnet.core.turn import Turn
from carnet.errors import InterruptExpired
from carnet.faults import point
from carnet.ports.turns import Fenced, TurnFinish
from carnet.stores.database import Database
from carnet.stores.rows import SELECT_TURN
from carnet.stores.turn_row import read_turn

AT_A_TIME: Final = 100

_OVER = (
    f"{SELECT_TURN} WHERE t.state = 'waiting' AND t.waits_until <= ? ORDER BY t.waits_until LIMIT ?"
)
_SAID = (
    "SELECT COALESCE(MAX(last) + 1, 0) FROM journal WHERE turn = ? AND kind = 'events' AND n >"
    " COALESCE((SELECT MAX(n) FROM journal WHERE turn = ? AND kind = 'discard'), 0)"
)


async def expire(database: Database, *, now: int) -> int:
    """End the turns whose time is over; how many there were."""
    ended = 0
    for row in await database.fetch(_OVER, (now, AT_A_TIME)):
        turn = read_turn(row)
        point("expire.each_turn")
        ((said,),) = await database.fetch(_SAID, (turn.n, turn.n))
        try:
            await database.finish(_expired(turn, said, now))
        except Fenced:  # it was answered, or ended by another gateway, in this moment
            continue
        ended += 1
    return ended


def _expired(turn: Turn, said: int, now: int) -> TurnFinish:
    return TurnFinish(
        turn=turn,
        state="failed",
        payer=Payer(account=turn.payer, purse=""),  # nothing is spent; the row says what it held
        events=write_events([Failed(InterruptExpired.code)]),
        first=said,
        last=said,
        debits=(),
        children_cost=0,
        reserve=0,
        now=now,
        tokens_in=turn.tokens_in,
        tokens_out=turn.tokens_out,
        code=InterruptExpired.code,
    )
