"""What payers owe above their limits, and what has become of it.

Law 1. What is unpaid was posted when it was used, and no posting is ever changed. A settlement is a
       row beside them that says how much of it was paid or forgiven, under a seal.
Law 2. No more is settled than is unpaid, also by two who settle at once.
"""

from typing import Final, Literal

from msgspec import Struct

from carnet.stores.database import Database
from carnet.stores.turn.finish_rules import Seals

How = Literal["paid", "forgiven"]

_UNPAID = "SELECT name, unpaid FROM purse WHERE unpaid > 0 ORDER BY name"
_UNPAID_OF = "SELECT unpaid FROM purse WHERE name = ?"
_LOCK = "SELECT name FROM purse WHERE name = ?"
_ENOUGH: Final = "name = ? AND unpaid >= ?"
_SETTLE = (
    "INSERT INTO settlement (id, at, name, amount, how, seal)"  # noqa: S608
    f" SELECT CAST(? AS TEXT), CAST(? AS BIGINT), name, CAST(? AS BIGINT), CAST(? AS TEXT), ?"
    f" FROM purse WHERE {_ENOUGH}"
)
_REDUCE = f"UPDATE purse SET unpaid = unpaid - ? WHERE {_ENOUGH}"  # noqa: S608


class Unpaid(Struct, frozen=True):
    """What is owed above a limit."""

    quota: str
    amount: int


class Settlements:
    """The settlements of one store."""

    def __init__(self, database: Database, seals: Seals) -> None:
        self._database = database
        self._seals = seals

    async def unpaid(self) -> list[Unpaid]:
        """Who owes, and how much."""
        return [Unpaid(*row) for row in await self._database.fetch(_UNPAID)]

    async def settle(
        self, name: str, quota: str, *, amount: int | None, how: How, now: int
    ) -> int | None:
        """Note that what is unpaid was paid, or need not be; `name` is that of the settlement.

        How much was settled; None where less is unpaid than that.
        """
        found = await self._database.fetch(_UNPAID_OF, (quota,))
        owed: int = found[0][0] if found else 0
        settled = owed if amount is None else amount
        if settled < 1 or settled > owed:
            return None
        seal = self._seals.settlement(name, now, quota, settled, how)
        counts = await self._database.transact(
            [
                (_LOCK + self._database.row_lock, (quota,)),
                (_SETTLE, (name, now, settled, how, seal, quota, settled)),
                (_REDUCE, (settled, quota, settled)),
            ]
        )
        return settled if counts[2] else None
