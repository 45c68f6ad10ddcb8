"""The calls between us and a partner: the port `carnet.ports.calls.statements.StatementLines`.

Law 1. What was served is found by the partner that called, what was made there by its run and turn:
       whoever asks for a statement costs as many rows as it tells of. Only the operator's own list
       of what was made looks at every call of its time.
Law 2. What a partner proves of a call that nobody had told us of is posted once, however often it
       is compared and whatever kills us meanwhile: the posting is a turn of the same run, with a
       name that follows from the call.
"""
# ruff: noqa: S608  the texts are put together from our own words; every value is an argument

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final

from carnet.core.call import Admitted, Ask
from carnet.core.chain.carnet import Carnet
from carnet.core.chain.turn import Turn
from carnet.core.money.statement import StatementLine
from carnet.core.people.identity import Account, Actor, Caller, Payer
from carnet.ports.calls.turns import DISPUTED, Claimed, Debit, Known, TurnClaim, TurnFinish, Turns
from carnet.stores.calls.turns import SearchRows
from carnet.stores.database import Database, Row, marks

AT_A_TIME: Final = 100  # runs that are looked up by one query
MOST_RUN_CALLS: Final = 10**9  # a posting is no call
SETTLED: Final = "settled"  # how the turn of a posting ends

_SERVED: Final = (
    "SELECT r.id, t.turn, t.cost, r.issuer, r.account, s.created FROM turn_seen s"
    " JOIN turn t ON t.n = s.turn JOIN run r ON r.n = t.run"
    " WHERE s.actor = ? AND s.created >= ? AND s.created < ? AND t.state IN ('done', 'failed')"
    " ORDER BY s.turn LIMIT ?"
)
_TO_PEER: Final = "(o.callee LIKE ? OR o.callee = ? OR o.callee LIKE ?)"
_LEFT: Final = "o.state IN ('done', 'failed', 'lost') AND t.state IN ('done', 'failed', 'unknown')"
_OF_CALL: Final = (
    "SELECT r.id, o.child_turn, MAX(o.cost), r.issuer, r.account, MIN(t.created)"
    " FROM outbound o JOIN turn t ON t.n = o.turn JOIN run r ON r.n = t.run"
)
_BY_CALL: Final = " GROUP BY r.id, o.child_turn, r.issuer, r.account"
_MADE: Final = (
    f"{_OF_CALL} WHERE t.created >= ? AND t.created < ? AND {_LEFT} AND {_TO_PEER}{_BY_CALL}"
    " ORDER BY 6, 2 LIMIT ?"
)
_NAMED: Final = "r.n IN (SELECT n FROM run_by_name WHERE id IN ({}))"
_MADE_OF: Final = f"{_OF_CALL} WHERE {_NAMED} AND {_LEFT} AND {_TO_PEER}{_BY_CALL}"
_UNMATCHED: Final = (
    "SELECT o.turn, t.purse, r.issuer, r.account, o.callee, t.depth FROM outbound o"
    " JOIN turn t ON t.n = o.turn JOIN run r ON r.n = t.run"
    f" WHERE {_NAMED.format('?')} AND o.child_turn = ? AND {_LEFT} AND {_TO_PEER}"
    " AND NOT EXISTS (SELECT 1 FROM outbound p WHERE p.turn = o.turn"
    " AND p.child_turn = o.child_turn AND p.cost IS NOT NULL) ORDER BY o.turn LIMIT 1"
)
_MATCH: Final = (
    "UPDATE outbound SET cost = ?, matched = 'theirs'"
    " WHERE turn = ? AND child_turn = ? AND cost IS NULL"
)
_KEEP: Final = (
    "INSERT INTO statement (peer, period, ours, theirs, jws, compared) VALUES (?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (peer, period) DO UPDATE SET ours = excluded.ours, theirs = excluded.theirs,"
    " jws = excluded.jws, compared = excluded.compared"
)


class StoredStatements:
    """What statements are made of, and those that came from partners."""

    def __init__(self, database: Database, search_rows: SearchRows) -> None:
        self._database = database
        self._search_rows = search_rows

    async def served(
        self, peer: str, since: int, until: int, *, limit: int
    ) -> tuple[list[StatementLine], int]:
        """What we have served for a partner, and until when that is all of it.

        What was billed to an account of our own issue costs the partner nothing.
        """
        await self._search_rows.fresh()
        args = (f"peer:{peer}", since, until, limit + 1)
        lines = []
        for run, turn, cost, issuer, account, at in await self._database.fetch(_SERVED, args):
            is_theirs = issuer == peer
            billed = cost or 0 if is_theirs else 0
            lines.append(StatementLine(run, turn, billed, account if is_theirs else None, at))
        return _within(lines, limit, until)

    async def made(
        self, peer: str, since: int, until: int, *, domain: str, limit: int
    ) -> tuple[list[StatementLine], int]:
        """The calls that we have made there, and until when that is all of them."""
        rows = await self._database.fetch(_MADE, (since, until, *_names(peer), limit + 1))
        return _within(_lines(rows, domain), limit, until)

    async def made_of(
        self, peer: str, calls: Sequence[tuple[str, str]], *, domain: str
    ) -> list[StatementLine]:
        """Those of the calls that we have made there."""
        wanted, found = set(calls), []
        runs = sorted({run for run, _ in calls})
        for start in range(0, len(runs), AT_A_TIME):
            some = runs[start : start + AT_A_TIME]
            query = _MADE_OF.format(marks(len(some)))
            rows = await self._database.fetch(query, (*some, *_names(peer)))
            found += [line for line in _lines(rows, domain) if line.key in wanted]
        return found

    async def match(
        self, turns: Turns, peer: str, line: StatementLine, *, most: int, now: int
    ) -> int | None:
        """Post what a partner proves that a call has cost which was unmatched here."""
        args = (line.run, line.turn, *_names(peer))
        found = await self._database.fetch(_UNMATCHED, args)
        if not found or line.cost is None:
            return None
        number, quota, issuer, account, callee, depth = found[0]
        payer = Payer(account=Account(issuer, account), quota=quota)
        owed = min(line.cost, most)
        debits = [Debit(f"peer:{peer}", owed)] if owed else []
        if line.cost > owed:
            beyond = line.cost - owed
            debits.append(Debit(f"{DISPUTED}peer:{peer}", beyond, "disputed"))
        claim = _claim(line, payer, callee, depth, now)
        verdict = await turns.claim(claim)
        if isinstance(verdict, Claimed):
            await turns.finish(_finish(verdict.turn, payer, debits, now))
        elif not isinstance(verdict, Known) or verdict.turn.state != "done":
            return None  # whoever began it is gone, or not yet: the next comparison goes on
        await self._database.execute(_MATCH, (owed, number, line.turn))
        return owed

    async def keep(
        self, peer: str, period: str, ours: int, theirs: int, jws: str, now: int
    ) -> None:
        """Keep the statement that ours was compared with."""
        await self._database.execute(_KEEP, (peer, period, ours, theirs, jws, now))


def _lines(rows: Iterable[Row], domain: str) -> list[StatementLine]:
    """Calls that we have made, with what their callee was told of who pays; `domain` is ours."""
    return [
        StatementLine(run, turn, cost, account if issuer == domain else f"{account}@{issuer}", at)
        for run, turn, cost, issuer, account, at in rows
    ]


def _names(peer: str) -> tuple[str, str, str]:
    """What the addresses of a partner's agents are like."""
    return f"%@{peer}", f"agent://{peer}", f"agent://%.{peer}"


def _within(lines: list[StatementLine], limit: int, until: int) -> tuple[list[StatementLine], int]:
    """The first of them, whole moments alone, and the moment that they reach to."""
    if len(lines) <= limit:
        return lines, until
    reached = lines[limit].at
    return [line for line in lines[:limit] if line.at < reached], reached


def _claim(line: StatementLine, payer: Payer, callee: str, depth: int, now: int) -> TurnClaim:
    name = f"{line.turn}.{SETTLED}"
    key = blake2b(f"{line.run}\n{name}".encode(), person=b"carnet.settled", digest_size=32).digest()
    operator = Caller(actor=Actor(name="operator", how="in_process"), scopes=frozenset())
    return TurnClaim(
        admitted=Admitted(
            callee,
            Ask(messages=()),
            Carnet(run=line.run, turn=name, depth=depth, parent_turn=line.turn),
            operator,
            payer,
        ),
        key=key,
        digest=key,
        most_run_calls=MOST_RUN_CALLS,
        now=now,
        request=b"{}",
    )


def _finish(turn: Turn, payer: Payer, debits: Sequence[Debit], now: int) -> TurnFinish:
    return TurnFinish(
        turn=turn,
        state="done",
        payer=payer,
        events=b"",
        first=0,
        last=0,
        debits=debits,
        children_cost=0,
        reserve=0,
        now=now,
    )
