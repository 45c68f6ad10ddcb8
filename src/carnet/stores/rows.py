"""Looking up many rows with one statement.

The statements are constant: a driver prepares each once. A lookup has one text for each power of
two; a shorter list is filled up with its last key, which finds the same row again.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Any, Final, Protocol

from carnet.stores.database import Row
from carnet.stores.turn_row import TURN_COLUMNS

SELECT_TURN: Final = "SELECT " + TURN_COLUMNS + " FROM run r JOIN turn t ON t.run = r.n"  # noqa: S608

MOST_KEYS: Final = 256


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
