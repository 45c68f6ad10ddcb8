"""What agents have done already: the port `carnet.ports.calls.steps.Steps`.

Law 1. Only the owner of a turn keeps a step: under its fence, while the turn is running.
Law 2. What is kept stays as it is. To keep the same again changes nothing.
Law 3. On a database that others write too, what several turns keep meanwhile is one transaction;
       who breaks it is alone with that.
Law 4. A row whose checksum does not fit is reported and never given.
"""

import asyncio
from collections.abc import Sequence
from typing import Final
from zlib import crc32

from carnet.core.chain.turn import Turn
from carnet.errors import Internal, OutcomeUnknown
from carnet.ports.calls.steps import Step
from carnet.ports.calls.turns import Fenced
from carnet.stores.database import Database, Value

_WORD: Final = 0xFFFFFFFF
_N: Final = 4  # where the number of its turn stands in a row
TOGETHER: Final = 64  # steps of one transaction

_OF = "SELECT place, name, data, crc FROM step WHERE turn = ? ORDER BY place"
_OURS = "t.n = ? AND t.state = 'running' AND t.fence = ?"
# The row of the turn is locked until the step is written: who takes the turn away waits for that.
_KEEP = (
    "INSERT INTO step (turn, place, name, data, crc) SELECT t.n, ?, ?, ?, ? FROM turn t"  # noqa: S608
    f" WHERE {_OURS}{{lock}} ON CONFLICT (turn, place) DO NOTHING"
)
_IS_OURS = f"SELECT 1 FROM turn t WHERE {_OURS}"  # noqa: S608
_KEPT = (
    "SELECT 1 FROM step s JOIN turn t ON t.n = s.turn"  # noqa: S608
    f" WHERE {_OURS} AND s.place = ? AND s.name = ? AND s.data = ?"
)


class StoredSteps:
    """The steps of the turns of one store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._keep = _KEEP.format(lock=database.row_lock)
        self._waiting: list[_Keeping] = []  # not yet handed over
        self._writing: asyncio.Task[None] | None = None

    async def of(self, turn: Turn) -> list[Step]:
        """What is kept of a turn, in order."""
        return [
            Step(place, name, _verified(turn, place, name, data, crc))
            for place, name, data, crc in await self._database.fetch(_OF, (turn.n,))
        ]

    async def check(self, turn: Turn) -> None:
        """Raise Fenced if the turn is not ours any more: what was done now would not be kept.

        Where one process runs turns, nobody takes one away from it.
        """
        is_alone = not self._database.is_shared
        if is_alone or await self._database.fetch(_IS_OURS, (turn.n, turn.fence)):
            return
        raise _fenced(turn)

    async def keep(self, turn: Turn, step: Step) -> None:
        """Make one durable. Raises Fenced if the turn is not ours any more."""
        crc = _checksum(turn.n, step.place, step.name, step.result)
        row = (step.place, step.name, step.result, crc, turn.n, turn.fence)
        if self._database.is_shared:
            count = await self._kept_with_others(row)
        else:  # whose writer does that
            count = await self._database.execute(self._keep, row)
        if count:
            return
        kept = (turn.n, turn.fence, step.place, step.name, step.result)
        if not await self._database.fetch(_KEPT, kept):
            raise _fenced(turn)

    async def _kept_with_others(self, row: Sequence[Value]) -> int:
        loop = asyncio.get_running_loop()
        kept: asyncio.Future[int] = loop.create_future()
        self._waiting.append((row, kept))
        if self._writing is None:
            self._writing = loop.create_task(self._write_all())
        return await kept

    async def _write_all(self) -> None:
        while self._waiting:
            together, self._waiting = self._waiting[:TOGETHER], self._waiting[TOGETHER:]
            await self._write(together)
        self._writing = None

    async def _write(self, together: Sequence["_Keeping"]) -> None:
        """Write some, in one order: whoever else does so waits for us, and never in a circle."""
        ordered = sorted(together, key=lambda each: (each[0][_N], each[0][0]))
        try:
            counts = await self._database.transact([(self._keep, row) for row, _ in ordered])
        except Exception as error:  # noqa: BLE001  it is told to those who wait
            if len(together) > 1 and not isinstance(error, OutcomeUnknown):
                for each in together:
                    await self._write([each])
                return
            for _, kept in together:
                if not kept.done():
                    kept.set_exception(error)
            return
        for (_, kept), count in zip(ordered, counts, strict=True):
            if not kept.done():  # else nobody waits for it any more
                kept.set_result(count)


_Keeping = tuple[Sequence[Value], "asyncio.Future[int]"]


def _fenced(turn: Turn) -> Fenced:
    return Fenced(f"turn {turn.n} is not running under fence {turn.fence}")


def _checksum(turn: int, place: int, name: str, data: bytes) -> int:
    """The CRC-32 of a row; its small fields are the seed, so that none of them can change alone."""
    seed = crc32(name.encode(), (turn * 0x9E3779B1 + place * 0x85EBCA6B) & _WORD)
    return crc32(data, seed)


def _verified(turn: Turn, place: int, name: str, data: bytes, crc: int) -> bytes:
    if _checksum(turn.n, place, name, data) != crc:
        raise Internal(f"step {place} of turn {turn.n} is damaged: its checksum does not fit")
    return data
