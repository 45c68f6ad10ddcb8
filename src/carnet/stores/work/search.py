"""The rows by which runs are searched: beside the turns, written after the calls.

The indexes are on these rows and never on `turn`: a claim and an end cost three times as much with
six of them.

Law 1. A turn is found within a second of its claim, and again of its end: its number is noted when
       it changes here, and the rows of all noted turns are written together.
Law 2. What a process had noted when it died is found at the next start, and by the process that
       ends its turns.
"""
# ruff: noqa: S608  the texts are put together from our own words; every value is an argument

from collections.abc import Sequence
from typing import Final

from carnet.core.chain.turn import Turn
from carnet.stores.database import Database, marks

AT_A_TIME: Final = 500
MOST_NOTED: Final = 100_000  # beyond it the newest turns are compared instead
LOOK_BACK: Final = 50_000  # turns, the newest, that are compared after a start

_COLUMNS: Final = "turn, run, agent, actor, speaker, state, code, correlation, created"
_OF_TURN: Final = "n, run, agent, actor, speaker, state, code, correlation, created"
_WRITE: Final = (
    f"INSERT INTO turn_seen ({_COLUMNS}) SELECT {_OF_TURN} FROM turn WHERE n IN ({{}}) ORDER BY n"
    " ON CONFLICT (turn) DO UPDATE SET state = excluded.state, code = excluded.code"
    " WHERE turn_seen.state <> excluded.state"
    " OR COALESCE(turn_seen.code, '') <> COALESCE(excluded.code, '')"
)
_NEWEST: Final = "SELECT COALESCE(MAX(n), 0) FROM turn"
_MISSING: Final = (
    "SELECT t.n FROM turn t LEFT JOIN turn_seen s ON s.turn = t.n"
    " WHERE t.n > ? AND (s.turn IS NULL OR s.state <> t.state"
    " OR COALESCE(s.code, '') <> COALESCE(t.code, '')) ORDER BY t.n LIMIT ?"
)
_STALE: Final = (  # of turns that were written before they ended
    "SELECT s.turn FROM turn_seen s JOIN turn t ON t.n = s.turn"
    " WHERE s.state = '{}' AND t.state <> s.state AND s.turn > ? ORDER BY s.turn LIMIT ?"
)


class SearchRows:
    """Writes the search rows of the turns of one store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._noted: dict[int, None] = {}
        self._is_behind = True  # until it has looked for what others left

    def note(self, turns: Sequence[Turn]) -> None:
        """Turns have changed."""
        if len(self._noted) >= MOST_NOTED:
            self._is_behind = True
            return
        for turn in turns:
            self._noted[turn.n] = None

    def look_back(self) -> None:
        """A process has died: look for what it had noted."""
        self._is_behind = True

    async def keep(self) -> None:
        """Write what was noted."""
        noted, self._noted = sorted(self._noted), {}
        try:
            await self._write(noted)
        except BaseException:
            self._noted |= dict.fromkeys(noted)
            raise
        if self._is_behind:
            self._is_behind = False
            try:
                await self._catch_up()
            except BaseException:
                self._is_behind = True
                raise

    async def _write(self, turns: Sequence[int]) -> None:
        for i in range(0, len(turns), AT_A_TIME):
            some = turns[i : i + AT_A_TIME]
            await self._database.execute(_WRITE.format(marks(len(some))), some)

    async def _catch_up(self) -> None:
        ((newest,),) = await self._database.fetch(_NEWEST)
        await self._write_all(_MISSING, max(0, newest - LOOK_BACK))
        for state in ("running", "queued", "waiting"):
            await self._write_all(_STALE.format(state), 0)

    async def _write_all(self, query: str, last: int) -> None:
        while found := await self._database.fetch(query, (last, AT_A_TIME)):
            last = found[-1][0]
            await self._write([n for (n,) in found])
