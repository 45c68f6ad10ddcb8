"""Reading the journal, so much at a time: what one reader asks for never fills the memory (A74).

Law 1. The sizes of rows are looked at before the rows are. A piece is as many as fit; a row that is
       larger than a piece is one by itself, and is read by those alone who have asked for it so.
Law 2. A row that is read was verified; nothing is given of a damaged one.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Final, NamedTuple

from carnet.core.messages.events import PIECE_BYTES
from carnet.stores.database import Database, Row, Value, marks
from carnet.stores.turn.row import verified

MOST_ROWS: Final = 500  # of a piece

_SIZES: Final = "SELECT j.n, LENGTH(j.data) FROM journal j WHERE {} ORDER BY j.n LIMIT ?"
_ROWS: Final = "SELECT j.n, j.turn, j.kind, j.first, j.last, j.data, j.crc FROM journal j"
_KINDS: Final = "SELECT j.n, j.turn, j.kind, j.first, j.last FROM journal j WHERE j.n = ?"


class FirstRows(NamedTuple):
    """The first rows of a condition."""

    rows: list[Row]
    size: int  # of their data
    is_all: bool = False  # there were no others
    is_unread: bool = False  # the only one does not fit: it is here without data and checksum


async def first_rows(
    database: Database, which: str, args: Sequence[Value], *, limit: int, most_bytes: int
) -> FirstRows:
    """The first rows of a condition that fit."""
    sizes = await database.fetch(_SIZES.format(which), (*args, min(limit, MOST_ROWS)))
    numbers, size = _fitting(sizes, most_bytes)
    if numbers:
        which = f"{_ROWS} WHERE j.n IN ({marks(len(numbers))}) ORDER BY j.n"
        rows = list(verified(await database.fetch(which, numbers)))
        return FirstRows(rows, size, is_all=len(numbers) == len(sizes) < limit)
    if not sizes:
        return FirstRows([], 0, is_all=True)
    number, size = sizes[0]
    return FirstRows(await database.fetch(_KINDS, (number,)), size, is_unread=True)


def _fitting(sizes: Sequence[Row], room: int) -> tuple[list[Value], int]:
    numbers: list[Value] = []
    taken = 0
    for number, size in sizes:
        if taken + size > room:
            break
        numbers.append(number)
        taken += size
    return numbers, taken


async def pieces(database: Database, which: str, args: Sequence[Value]) -> AsyncIterator[list[Row]]:
    """All rows of a condition, oldest first, a piece at a time; a large row is one by itself."""
    after = 0
    while True:
        fitting, most = (f"{which} AND j.n > ?", (*args, after)), PIECE_BYTES
        first = await first_rows(database, *fitting, limit=MOST_ROWS, most_bytes=most)
        if first.is_unread:
            first = await first_rows(database, *fitting, limit=1, most_bytes=first.size)
        if first.rows:
            yield first.rows
            after = first.rows[-1][0]
        if first.is_all:
            return
