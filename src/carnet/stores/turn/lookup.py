"""Looking up many rows with one statement.

The statements are constant: a driver prepares each once. A lookup has one text for each power of
two; a shorter list is filled up with its last key, which finds the same row again.
"""

from collections.abc import Sequence
from typing import Any, Final, Protocol

from carnet.stores.turn.row import TURN_COLUMNS

SELECT_TURN: Final = "SELECT " + TURN_COLUMNS + " FROM run r JOIN turn t ON t.run = r.n"  # noqa: S608

MOST_KEYS: Final = 256


class Cursor(Protocol):
    """What a statement gave."""

    def fetchall(self) -> list[Any]: ...
    def fetchone(self) -> Any: ...  # noqa: ANN401, RUF100  rows are as wide as their statement
    @property
    def rowcount(self) -> int: ...


class SqlConnection(Protocol):
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
        self._width = width
        self._most = MOST_KEYS * width
        self._plans: dict[int, tuple[str, int]] = {}  # by how many values: text, keys to fill up
        for number in range(1, MOST_KEYS + 1):
            size = 1 << (number - 1).bit_length()
            self._plans[number * width] = (self._texts[size], size - number)

    def __call__(self, connection: SqlConnection, keys: list[Any]) -> list[Any]:
        """The rows of all the keys, whose values stand one after another."""
        if not keys:
            return []
        count = len(keys)
        if count > self._most:
            return self(connection, keys[: self._most]) + self(connection, keys[self._most :])
        text, left = self._plans[count]
        if left:
            keys = keys + keys[-self._width :] * left
        return connection.execute(text, keys).fetchall()
