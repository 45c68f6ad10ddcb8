"""Where turns are kept, in memory or on a disk, with a crash that leaves what was committed.

A crash is an image: what is committed at that moment is copied and opened anew with its recovery.
What the old life still does, it does to the old copy.
"""

import shutil
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Protocol, Self

from msgspec.structs import replace

from carnet.core.chain.turn import Turn
from carnet.ports.calls.turns import Turns
from carnet.runtime.system import SystemIds
from carnet.stores.open import Store
from carnet.stores.turn.row import SELECT_TURN, read_turn
from carnet.testing.turns import MemoryTurns
from tests.stores.support.scenes import Place


class World(Protocol):
    """One life of a store."""

    @property
    def turns(self) -> Turns: ...
    def records(self) -> Sequence[Turn]: ...
    def billed(self) -> int:
        """The sum of the ledger."""
        ...

    def held(self) -> int:
        """What is reserved of quotas."""
        ...

    def image(self) -> Self:
        """The next life, as a crash at this moment would leave it; still to be opened."""
        ...

    async def open(self) -> None: ...
    async def close(self) -> None: ...


class MemoryWorld:
    """Dictionaries."""

    def __init__(self) -> None:
        self.turns = MemoryTurns()

    def records(self) -> list[Turn]:
        return list(self.turns.turns.values())

    def billed(self) -> int:
        return sum(debit.amount for debit in self.turns.debits)

    def held(self) -> int:
        return 0

    def image(self) -> Self:
        after = copy(self)
        after.turns = MemoryTurns()
        for name, value in vars(self.turns).items():
            if name != "before_write":
                setattr(after.turns, name, copy(value))
        after.turns.batches = {n: list(batches) for n, batches in self.turns.batches.items()}
        return after

    async def open(self) -> None:
        for n, turn in self.turns.turns.items():
            if turn.state == "running":
                self.turns.turns[n] = replace(turn, state="unknown")

    async def close(self) -> None:
        """Nothing is open."""


class DiskWorld:
    """A SQLite database; every life has a folder of its own."""

    def __init__(self, folder: Path, life: int = 0) -> None:
        self._root = folder
        self._life = life
        folder = folder / str(life)
        folder.mkdir(exist_ok=True)
        self._place = Place(folder)
        self._store: Store | None = None

    @property
    def turns(self) -> Turns:
        assert self._store is not None
        return self._store.turns

    def records(self) -> list[Turn]:
        return [read_turn(row) for row in self._place.rows(f"{SELECT_TURN} ORDER BY t.n")]

    def billed(self) -> int:
        return int(self._place.rows("SELECT COALESCE(SUM(amount), 0) FROM ledger")[0][0])

    def held(self) -> int:
        return int(self._place.rows("SELECT COALESCE(SUM(reserved), 0) FROM purse")[0][0])

    def image(self) -> Self:
        folder = self._root / str(self._life + 1)
        folder.mkdir()
        for name in ("secrets.key", "carnet.db", "carnet.db-wal"):  # the log last: it is newer
            if (self._place.folder / name).exists():
                shutil.copy(self._place.folder / name, folder / name)
        return type(self)(self._root, self._life + 1)

    async def open(self) -> None:
        self._store = await self._place.open(ids=SystemIds())
        await self._store.start()

    async def close(self) -> None:
        assert self._store is not None
        await self._store.close()
