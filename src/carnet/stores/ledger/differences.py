"""Where our ledger and that of a peer may differ, and by how much.

disputed    a peer says that a call cost more than it may: we owe the rest to nobody
unpaid      one of our agents was used above a payer's limit: nobody was told to pay it
unmatched   a call left us, and nobody told us what it cost: the peer may have a posting of it, and
            we have none, or one by its quote

Law. Whatever is posted here for a peer and is not the same there is one of these. A call that is
made again and answered is unmatched no more.
"""
# ruff: noqa: S608  the texts are put together from our own words; every value is an argument

from collections.abc import Sequence
from typing import Any, Final, Literal

from msgspec import Struct

from carnet.ports.calls.turns import DISPUTED, UNPAID
from carnet.stores.database import Database, Value, marks

Kind = Literal["disputed", "unpaid", "unmatched"]

_ASIDE: Final = "(credit >= '{0}' AND credit < '{0}~')"
_POSTED = (
    "SELECT at, run, turn, account || '@' || issuer, credit, amount FROM ledger WHERE"
    f" {_ASIDE.format(DISPUTED)} OR {_ASIDE.format(UNPAID)} ORDER BY n DESC LIMIT ?"
)
# An attempt at a call out that got no answer, or was lost with us, unless a later attempt was told
# what it cost: to what an earlier one was told, this one may have added. One that never left was
# told nothing: it cost nothing by itself. An attempt that was lost is of the turn as a whole: a
# turn that is a call out makes no other.
_UNMATCHED = (
    "SELECT MAX(t.ended), r.id, o.child_turn, MAX(r.account || '@' || r.issuer), MAX(o.callee)"
    " FROM outbound o JOIN turn t ON t.n = o.turn JOIN run r ON r.n = t.run"
    " WHERE o.cost IS NULL AND o.peer_status IS NULL AND (o.state IN ('done', 'failed')"
    " OR (o.state = 'lost' AND"
    " (o.callee LIKE '@%' OR o.callee LIKE 'agent://%' OR o.callee IN ({}))))"
    " AND t.state IN ('done', 'failed', 'unknown') AND NOT EXISTS (SELECT 1 FROM outbound p"
    " WHERE p.turn = o.turn AND (p.child_turn = o.child_turn OR o.state = 'lost')"
    " AND (p.fence > o.fence OR (p.fence = o.fence AND p.ordinal > o.ordinal))"
    " AND p.cost IS NOT NULL"
    " AND (p.cost > 0 OR p.state = 'done' OR p.peer_status IS NOT NULL))"
    " GROUP BY o.turn, r.id, o.child_turn ORDER BY o.turn DESC LIMIT ?"
)


class Difference(Struct, frozen=True, kw_only=True):
    """One of them."""

    kind: Kind
    at: int | None
    run: str
    turn: str
    payer: str  # an account here
    other: str  # the account that says or is owed more; of a call that is unmatched, its callee
    amount: int | None = None  # None: nobody knows


async def differences(
    database: Database, *, elsewhere: Sequence[str], limit: int
) -> list[Difference]:
    """The newest of each kind; `elsewhere` are names here for agents of others."""
    found = [_posted(*row) for row in await database.fetch(_POSTED, (limit,))]
    names: list[Value] = list(elsewhere) or [""]
    unmatched = await database.fetch(_UNMATCHED.format(marks(len(names))), (*names, limit))
    return [*found, *(_unmatched(*row) for row in unmatched)]


def _posted(at: int, run: str, turn: str, payer: str, credit: str, amount: int) -> Difference:
    kind: Kind = "disputed" if credit.startswith(DISPUTED) else "unpaid"
    other = credit.partition(":")[2]
    return Difference(kind=kind, at=at, run=run, turn=turn, payer=payer, other=other, amount=amount)


def _unmatched(at: int | None, run: str, turn: str, payer: str, other: str, *_: Any) -> Difference:  # noqa: ANN401, RUF100
    return Difference(kind="unmatched", at=at, run=run, turn=turn, payer=payer, other=other)
