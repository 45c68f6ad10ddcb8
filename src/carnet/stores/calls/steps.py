"""What agents have done already: the port `carnet.ports.calls.steps.Steps`.

Law 1. Only the owner of a turn keeps a step: under its fence, while the turn is running.
Law 2. What is kept stays as it is. To keep the same again changes nothing.
Law 3. A row whose checksum does not fit is reported and never given.
"""

from typing import Final
from zlib import crc32

from carnet.core.chain.turn import Turn
from carnet.errors import Internal
from carnet.ports.calls.steps import Step
from carnet.ports.calls.turns import Fenced
from carnet.stores.database import Database

_WORD: Final = 0xFFFFFFFF

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
        row = (step.place, step.name, step.result, crc)
        if await self._database.execute(self._keep, (*row, turn.n, turn.fence)):
            return
        kept = (turn.n, turn.fence, step.place, step.name, step.result)
        if not await self._database.fetch(_KEPT, kept):
            raise _fenced(turn)


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
