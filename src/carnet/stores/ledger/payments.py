"""What an account has paid for: the port `carnet.ports.money.payments.Payments` (R26).

Law 1. A payer sees its own postings and one line of each run that they are of: when, which agent,
       how deep, how it stands, what it cost this account. Never what was asked or answered.
Law 2. Lists go by the rows of the account, newest first, and through nobody else's.
Law 3. An account is seen from the moment on that its holder has it: it may have been another's.
"""
# ruff: noqa: S608  the texts are put together from our own words; every value is an argument

from collections.abc import Sequence
from typing import Final

from carnet.core.chain.turn import Turn
from carnet.core.people.identity import Account
from carnet.ports.money.payments import HeldAccount, Kind, Total, UsedQuota
from carnet.ports.world.records import LedgerEntry, RunSummary
from carnet.stores.calls.records import POSTINGS, POSTINGS_OF_RUN, RUNS_AT_A_TIME, summary
from carnet.stores.calls.turns import SearchRows
from carnet.stores.database import Database, Row, Value, marks
from carnet.stores.turn.row import SELECT_TURN, read_turn

_OWN: Final = " WHERE account = ? AND issuer = ?{} ORDER BY n DESC LIMIT ?"
_PAID: Final = (
    "SELECT DISTINCT s.run FROM turn_seen s WHERE s.payer = ?{} ORDER BY s.run DESC LIMIT ?"
)
_RUNS: Final = "SELECT n, id, issuer, account, cost, started FROM run WHERE n IN ({})"
_USED: Final = "SELECT name, spent + unpaid, reserved FROM purse WHERE name IN ({})"
_AT_A_TIME: Final = 500
_BY: Final[dict[Kind, tuple[str, str]]] = {
    "payer": ("account || '@' || issuer", ""),
    "agent": ("credit", " WHERE credit LIKE 'agent:%'"),
    "peer": ("credit", " WHERE credit LIKE 'peer:%'"),
    "run": ("run", ""),
}


class StoredPayments:
    """The postings of accounts, and the runs that they are of."""

    def __init__(self, database: Database, search_rows: SearchRows) -> None:
        self._database = database
        self._search_rows = search_rows

    async def quotas(self, names: Sequence[str]) -> dict[str, UsedQuota]:
        """How much of each of these is used; of one that nothing was spent of, nothing."""
        found: dict[str, UsedQuota] = {}
        wanted = sorted(set(names))
        for at in range(0, len(wanted), _AT_A_TIME):
            some: list[Value] = list(wanted[at : at + _AT_A_TIME])
            for name, spent, held in await self._database.fetch(
                _USED.format(marks(len(some))), some
            ):
                found[name] = UsedQuota(spent, held)
        return found

    async def postings(
        self,
        held: Sequence[HeldAccount],
        *,
        limit: int,
        before: int | None = None,
        run: str | None = None,
    ) -> tuple[list[LedgerEntry], int | None]:
        """Postings that debit these accounts, newest first, and where the next ones begin."""
        found: list[Row] = []
        postings, named = (POSTINGS, ()) if run is None else (POSTINGS_OF_RUN, (run,) * 3)
        query = postings + _OWN.format(" AND n < ?" if before else "")
        for each in held:
            args: list[Value] = [*named, each.account.id, each.account.issuer]
            args += [*([before] if before else []), limit + 1]
            rows = await self._database.fetch(query, args)
            found += [row for row in rows if row[1] >= each.since]
        found.sort(reverse=True)
        following = found[limit - 1][0] if len(found) > limit else None
        return [read_posting(row) for row in found[:limit]], following

    async def runs(
        self, held: Sequence[HeldAccount], *, limit: int, before: int | None = None
    ) -> tuple[list[RunSummary], int | None]:
        """The newest runs that these accounts pay for, and where the next ones begin."""
        await self._search_rows.fresh()
        numbers: set[int] = set()
        since = {each.account: each.since for each in held}
        for account in since:
            args: list[Value] = [str(account), *([before] if before else []), limit + 1]
            query = _PAID.format(" AND s.run < ?" if before else "")
            numbers |= {n for (n,) in await self._database.fetch(query, args)}
        newest = sorted(numbers, reverse=True)[:limit]
        following = newest[-1] if len(numbers) > limit else None
        return await self._lines(newest, since), following

    async def _lines(self, numbers: Sequence[int], since: dict[Account, int]) -> list[RunSummary]:
        if not numbers:
            return []
        listed = marks(len(numbers))
        turns: dict[tuple[str, Account], list[Turn]] = {}
        for i in range(0, len(numbers), RUNS_AT_A_TIME):  # each holds nobody up
            some = numbers[i : i + RUNS_AT_A_TIME]
            sql = f"{SELECT_TURN} WHERE r.n IN ({marks(len(some))}) ORDER BY t.n"
            for turn in map(read_turn, await self._database.fetch(sql, some)):
                turns.setdefault((turn.run, turn.payer), []).append(turn)
        rows = await self._database.fetch(f"{_RUNS.format(listed)} ORDER BY n DESC", numbers)
        keyed = [(row, (row[1], Account(row[2], row[3]))) for row in rows]
        return [
            summary(row, turns[key])
            for row, key in keyed
            if key in turns and key[1] in since and row[5] >= since[key[1]]
        ]

    async def totals(self, by: Kind, *, limit: int) -> list[Total]:
        """What was debited in all, for the operator: to each payer, agent, peer or run."""
        name, where = _BY[by]
        rows = await self._database.fetch(
            f"SELECT {name}, COUNT(*), SUM(amount) FROM ledger{where} GROUP BY {name}"
            " ORDER BY 3 DESC, 1 LIMIT ?",
            (limit,),
        )
        return [
            Total(name=name, postings=count, amount=int(amount)) for name, count, amount in rows
        ]


def read_posting(row: Row) -> LedgerEntry:
    """One posting."""
    n, at, run, turn, issuer, name, credit, amount = row
    return LedgerEntry(
        n=n,
        at=at,
        run=run,
        turn=turn,
        debit=Account(issuer, name),
        credit=credit,
        amount=amount,
    )
