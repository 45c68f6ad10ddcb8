"""A turn's row as a `Turn`, and looking up many rows with one statement.

The statements are constant: a driver prepares each once. A lookup has one text for each power of
two; a shorter list is filled up with its last key, which finds the same row again.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Any, Final, Protocol

from carnet.core.identity import Account
from carnet.core.turn import Turn
from carnet.stores.database import Row

TURN_COLUMNS: Final = (
    "t.n, t.agent, r.id, t.turn, t.parent, t.speaker, t.depth, t.state, t.attempt, t.fence,"
    " t.actor, r.issuer, r.account, t.created, t.ended, t.tokens_in, t.tokens_out, t.cost,"
    " t.run_cost, t.code, t.worker, t.key"
)
TURN_WIDTH: Final = 22
SELECT_TURN: Final = "SELECT " + TURN_COLUMNS + " FROM run r JOIN turn t ON t.run = r.n"  # noqa: S608

MOST_KEYS: Final = 256


def read_turn(row: Row) -> Turn:
    """The record of a row whose first columns are TURN_COLUMNS."""
    return Turn(
        n=row[0],
        agent=row[1],
        run=row[2],
        turn=row[3],
        parent_turn=row[4],
        speaker=row[5],
        depth=row[6],
        state=row[7],
        attempt=row[8],
        fence=row[9],
        actor=row[10],
        payer=Account(row[11], row[12]),
        created=row[13],
        ended=row[14],
        tokens_in=row[15],
        tokens_out=row[16],
        cost=row[17],
        run_cost=row[18],
        code=row[19],
        worker=row[20],
        key=row[21],
    )


class Cursor(Protocol):
    """What a statement gave."""

    def fetchall(self) -> list[Any]: ...
    def fetchone(self) -> Any: ...  # noqa: ANN401, RUF100  rows are as wide as their statement
    @property
    def rowcount(self) -> int: ...


class Connection(Protocol):
    """The part of a DB-API connection that the batches use."""

    def execute(self, sql: str, args: Sequence[Any] = ..., /) -> Cursor: ...
    def executemany(self, sql: str, rows: Sequence[Sequence[Any]], /) -> Cursor: ...


class Lookup:
    """A query over many keys: `{keys}` in its text becomes their VALUES, `{turn}` TURN_COLUMNS."""

    def __init__(self, text: str, *, width: int) -> None:
        one = "(" + ", ".join(["?"] * width) + ")"
        sizes = [1 << power for power in range(MOST_KEYS.bit_length())]
        self._texts = {
            size: text.format(keys=", ".join([one] * size), turn=TURN_COLUMNS) for size in sizes
        }

    def __call__(self, connection: Connection, keys: list[Row]) -> list[Row]:
        """The rows of all the keys."""
        if not keys:
            return []
        if len(keys) > MOST_KEYS:
            return self(connection, keys[:MOST_KEYS]) + self(connection, keys[MOST_KEYS:])
        size = 1 << (len(keys) - 1).bit_length()
        filled = keys + keys[-1:] * (size - len(keys))
        return connection.execute(self._texts[size], list(chain.from_iterable(filled))).fetchall()
