"""The rows of the journal: their kinds and their checksum.

accepted   what was asked and why it was admitted, written by the claim
events     a batch of events, in the journal's form
discard    the attempt before this row is no longer part of the answer
ended      the turn ended without an event: its worker is gone, or it waits

Law. A row whose checksum does not fit is reported by its number and never served.
"""

from collections.abc import Iterable
from typing import Final
from zlib import crc32

from carnet.errors import Internal
from carnet.stores.database import Row

ACCEPTED: Final = "accepted"
EVENTS: Final = "events"
DISCARD: Final = "discard"
ENDED: Final = "ended"

_SEEDS: Final = {ACCEPTED: 1, EVENTS: 2, DISCARD: 3, ENDED: 4}
_WORD: Final = 0xFFFFFFFF
# Between what was asked and why it was admitted: it stands in no line of JSON, which that is.
APART: Final = b"\0"


def sealed_row(turn: int, kind: str, first: int, last: int, data: bytes) -> Row:
    """The values of a row to insert, without its number.

    The last is its CRC-32; the small fields are the seed, so that none of them can change alone.
    """
    seed = turn * 0x9E3779B1 + first * 0x85EBCA6B + last * 0xC2B2AE35 + _SEEDS[kind]
    return (turn, kind, first, last, data, crc32(data, seed & _WORD))


def grounds_in(data: bytes) -> bytes:
    """Why a call was admitted; empty in rows of the former form."""
    _, apart, grounds = data.rpartition(APART)
    return grounds if apart else b""


def verified(rows: Iterable[Row]) -> Iterable[Row]:
    """The same rows (all columns, in the table's order); raises at the first damaged one."""
    for row in rows:
        n, turn, kind, first, last, data, crc = row
        if kind not in _SEEDS or sealed_row(turn, kind, first, last, data)[-1] != crc:
            raise Internal(f"journal row {n} of turn {turn} is damaged: its checksum does not fit")
        yield row
