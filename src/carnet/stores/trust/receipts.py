"""The receipts that were given: the port `carnet.ports.trust.receipts.Receipts`."""

from carnet.core.chain.turn import Turn
from carnet.stores.database import Database

_PUT = (
    "INSERT INTO receipt (turn, attempt, jws) VALUES (?, ?, ?)"
    " ON CONFLICT (turn, attempt) DO NOTHING"
)
_GET = "SELECT jws FROM receipt WHERE turn = ? AND attempt = ?"


class StoredReceipts:
    """The receipts of one store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, turn: Turn, jws: str) -> str:
        """Keep the receipt of this attempt, and give the kept one: one that was there stays."""
        if await self._database.execute(_PUT, (turn.n, turn.attempt, jws)):
            return jws
        return await self.get(turn) or jws

    async def get(self, turn: Turn) -> str | None:
        rows = await self._database.fetch(_GET, (turn.n, turn.attempt))
        return rows[0][0] if rows else None
