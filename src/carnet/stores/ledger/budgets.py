"""The budgets of one store: the port `carnet.ports.money.budgets.Budgets`, and what sets them.

Law 1. What is written in carnet.toml has the last word: no command changes it.
Law 2. Setting a limit changes no count: what is spent stays spent.
Law 3. Which ones an operator has set is kept in memory, at most a second old; how much is left of
       them is read where it counts, in the transaction of a claim.
Law 4. Whoever is told that most of one is used is told once for each period.
"""

import builtins
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from carnet.core.people.proof import Spending
from carnet.errors import UsageInvalid
from carnet.ports.money.budgets import CALL, DAY, DAY_US, WARN_AT, BudgetRecord
from carnet.stores.database import Database, marks
from carnet.stores.turn.budgets.rows import COLUMNS, read_budget, record_of

_NAMES: Final = ", ".join(COLUMNS)
_STANDING = f"SELECT {_NAMES} FROM budget WHERE name NOT LIKE '{CALL}%'"  # noqa: S608
_FIND = f"SELECT {_NAMES} FROM budget WHERE name = ?"  # noqa: S608
_OF_RUN = f"SELECT {_NAMES} FROM budget WHERE run = ? ORDER BY since, name"  # noqa: S608
_PAYERS = "SELECT issuer, account FROM run_by_name WHERE id = ? ORDER BY n"
_PUT = (
    "INSERT INTO budget (name, run, money, currency, calls, tokens, until, period, since, asks,"
    " written) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET"
    " money = excluded.money, currency = excluded.currency, calls = excluded.calls,"
    " tokens = excluded.tokens, until = excluded.until, period = excluded.period,"
    " asks = excluded.asks, written = excluded.written"
)
_CLEAR = "DELETE FROM budget WHERE name = ? AND written = 0"
_UNWRITE = "DELETE FROM budget WHERE written = 1 AND NOT name IN ({})"
_PART = "({0} IS NOT NULL AND {0} > 0 AND spent_{0} * 100 >= {0} * " + str(WARN_AT) + ")"
_USED = " OR ".join(_PART.format(part) for part in ("money", "calls", "tokens"))
_TO_WARN = (
    f"SELECT {_NAMES} FROM budget b WHERE run = '' AND ({_USED}) AND NOT EXISTS"  # noqa: S608
    " (SELECT 1 FROM budget_warning w WHERE w.name = b.name AND w.since = b.since)"
    " ORDER BY name LIMIT 100"
)
_WARNED = (
    "INSERT INTO budget_warning (name, since, at) SELECT ?, since, ? FROM budget WHERE name = ?"
    " ON CONFLICT (name, since) DO NOTHING"
)
_OLD = f"DELETE FROM budget WHERE name LIKE '{CALL}%' AND since < ? AND held_calls = 0"  # noqa: S608
_OLD_WARNINGS = "DELETE FROM budget_warning WHERE at < ?"


class StoredBudgets:
    """The budgets of one store."""

    def __init__(self, database: Database) -> None:
        """Know none before the first look."""
        self._database = database
        self.known: Mapping[str, BudgetRecord] = {}

    def standing(self, names: Sequence[str]) -> tuple[str, ...]:
        """Those of these names, and of their days, that an operator has set; from memory."""
        known = self.known
        return tuple([n for name in names for n in (name, name + DAY) if n in known])

    async def refresh(self) -> None:
        """Read which are set."""
        self.known = {one.name: one for one in await self._fetch(_STANDING)}

    async def list(self) -> builtins.list[BudgetRecord]:
        """Those that operators have set."""
        await self.refresh()
        return [self.known[name] for name in sorted(self.known)]

    async def find(self, name: str) -> BudgetRecord | None:
        """One by its name."""
        found = await self._fetch(_FIND, name)
        return found[0] if found else None

    async def of_run(self, run: str) -> builtins.list[BudgetRecord]:
        """Those of a run, its root first."""
        return await self._fetch(_OF_RUN, run)

    async def payers_of(self, run: str) -> builtins.list[tuple[str, str]]:
        """Who pays for a run: issuer and account of each."""
        rows = await self._database.fetch(_PAYERS, (run,))
        return [(issuer, account) for issuer, account in rows]

    async def put(
        self,
        name: str,
        limits: Spending,
        *,
        now: int,
        run: str = "",
        until: int | None = None,
        asks: bool = False,
        written: bool = False,
    ) -> None:
        """Set the limits of one; UsageInvalid where carnet.toml says them."""
        before = await self.find(name)
        if before is not None and before.written and not written:
            raise UsageInvalid(
                reason=f"The budget {name} is written in carnet.toml, which wins over the store.",
                fix="Change it there: [agents.NAME] spending_limit.",
            )
        period = DAY_US if name.endswith(DAY) else None
        since = now if period is None else now - now % period
        await self._database.execute(
            _PUT,
            (
                *(name, run, limits.money, limits.currency, limits.calls, limits.tokens),
                *(until, period, since, int(asks), int(written)),
            ),
        )
        await self.refresh()

    async def clear(self, name: str) -> bool:
        """Bound it no more; False if it is not bounded, or carnet.toml says so."""
        cleared = await self._database.execute(_CLEAR, (name,))
        await self.refresh()
        return cleared > 0

    async def take_written(self, limits: Mapping[str, Spending], now: int) -> None:
        """Set those that carnet.toml says, in the place of those that it said."""
        names = [*limits] or [""]
        await self._database.execute(_UNWRITE.format(marks(len(names))), names)
        for name, each in limits.items():
            await self.put(name, each, now=now, written=True)

    async def to_warn(self) -> builtins.list[BudgetRecord]:
        """Those of which most is used, and nobody was told yet."""
        return await self._fetch(_TO_WARN)

    async def warned(self, one: BudgetRecord, now: int) -> None:
        """Somebody was told of it."""
        await self._database.execute(_WARNED, (one.name, now, one.name))

    async def forget(self, before: int) -> int:
        """Delete those of calls that began before a time and hold nothing."""
        await self._database.execute(_OLD_WARNINGS, (before,))
        return await self._database.execute(_OLD, (before,))

    async def _fetch(self, sql: str, *args: str) -> builtins.list[BudgetRecord]:
        rows: Iterable[object] = await self._database.fetch(sql, args)
        return [record_of(read_budget(row)) for row in rows]  # type: ignore[arg-type]
