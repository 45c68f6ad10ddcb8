"""Sealing where the shards of the ledger end, each minute and at every start and stop.

Law 1. A checkpoint is one row, chained to the one before it; the first also seals the postings
       from before the chain, so that none can be added to them.
Law 2. Two gateways that write one at once want the same number: one of them writes it, the other
       looks again.
Law 3. What is read for it was committed, so what it says stays true.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from carnet.stores.database import Database, Statement
from carnet.stores.turn.finish_rules import BEFORE_THE_CHAIN, START, Seals

EVERY_SECONDS: Final = 60.0
POSTING: Final = "n, at, run, turn, issuer, account, credit, amount"
MOST_ATTEMPTS: Final = 5
AT_A_TIME: Final = 2000

_LAST = "SELECT n, seal FROM checkpoint ORDER BY n DESC LIMIT 1"
_GROWN = (
    "SELECT l.id, l.postings, l.head FROM lane l LEFT JOIN sealed s ON s.lane = l.id"
    " WHERE l.postings > COALESCE(s.postings, 0) ORDER BY l.id"
)
_UNCHAINED = f"SELECT {POSTING} FROM ledger WHERE lane IS NULL AND n > ? ORDER BY n LIMIT ?"  # noqa: S608
_WRITE = (
    "INSERT INTO checkpoint (n, at, lanes, seal) VALUES (?, ?, ?, ?) ON CONFLICT (n) DO NOTHING"
)
_MARK = (  # only if the checkpoint of that number is ours
    "INSERT INTO sealed (lane, postings) SELECT CAST(? AS TEXT), CAST(? AS BIGINT)"
    " WHERE EXISTS (SELECT 1 FROM checkpoint WHERE n = ? AND seal = ?)"
    " ON CONFLICT (lane) DO UPDATE SET postings = excluded.postings"
)

End = tuple[str, int, bytes]  # a shard, how many postings it has, the hash of the last


def write_ends(ends: Iterable[End]) -> str:
    """The ends of shards as a checkpoint has them."""
    return msgspec.json.encode([(shard, count, head.hex()) for shard, count, head in ends]).decode()


def read_ends(text: str) -> list[End]:
    """The ends of shards in a checkpoint. Raises ValueError."""
    found = msgspec.json.decode(text, type=list[tuple[str, int, str]])
    return [(shard, count, bytes.fromhex(head)) for shard, count, head in found]


class Checkpoints:
    """The checkpoints of one store."""

    def __init__(self, database: Database, seals: Seals) -> None:
        self._database = database
        self._seals = seals

    async def write(self, now: int) -> bool:
        """Seal the shards that grew since the last one; whether there were any."""
        for _ in range(MOST_ATTEMPTS):
            last = await self._database.fetch(_LAST)
            n, before = last[0] if last else (0, START)
            ends: list[End] = [(*row,) for row in await self._database.fetch(_GROWN)]
            if not last:
                ends.insert(0, await self._unchained())
            if not ends:
                return False
            if await self._put(n + 1, now, before, ends):
                return True
        return False  # others do the same just now, and seal our shard as well

    async def _put(self, n: int, now: int, before: bytes, ends: list[End]) -> bool:
        shards = write_ends(ends)
        seal = self._seals.checkpoint(before, n, now, shards)
        marks: list[Statement] = [(_MARK, (shard, count, n, seal)) for shard, count, _ in ends]
        done = await self._database.transact([(_WRITE, (n, now, shards, seal)), *marks])
        return bool(done[0])

    async def _unchained(self) -> End:
        """The postings from before the chain, as a shard whose hashes are kept nowhere else."""
        count, last, head = 0, 0, START
        while rows := await self._database.fetch(_UNCHAINED, (last, AT_A_TIME)):
            for row in rows:
                count += 1
                head = self._seals.posting(head, (*row, BEFORE_THE_CHAIN, count))
            last = rows[-1][0]
        return BEFORE_THE_CHAIN, count, head
