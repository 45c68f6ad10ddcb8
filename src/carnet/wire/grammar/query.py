"""The query of a request, strictly: each name once, numbers in digits, words not empty.

A moment is one of RFC 3339. Its `+` is a space in a query unless it is written `%2B`; both will do.
"""

from typing import Final
from urllib.parse import parse_qs

from carnet.errors import InvalidRequest
from carnet.wire.grammar.times import micros_of

MOST_LINES: Final = 200  # of a list
USUAL_LINES: Final = 50
MOST_WORD: Final = 256  # characters

_MOST_DIGITS: Final = 18  # fits 64 bits

Query = dict[str, list[str]]


def read_query(text: str | None) -> Query:
    """The names of a query, each with its values, also where those are empty."""
    return parse_qs(text or "", keep_blank_values=True)


def read_lines(query: Query) -> int:
    """How many lines of a list are asked for."""
    return max(1, min(read_number(query, "limit", USUAL_LINES), MOST_LINES))


def is_number(text: str) -> bool:
    """Whether a text is a whole number that a store can hold."""
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS


def read_number(query: Query, name: str, default: int) -> int:
    """A whole number of a query."""
    values = query.get(name, [""])
    if values == [""]:
        return default
    if len(values) > 1 or not is_number(values[0]):
        raise InvalidRequest(name, "must be one whole number")
    return int(values[0])


def read_word(query: Query, name: str) -> str | None:
    """A word of a query. An empty one would name nothing, and is refused rather than forgotten."""
    values = query.get(name)
    if values is None:
        return None
    if len(values) > 1:
        raise InvalidRequest(name, "must stand once")
    if not 1 <= len(values[0]) <= MOST_WORD:
        raise InvalidRequest(name, f"must be 1 to {MOST_WORD} characters")
    if not values[0].isprintable():  # no store need hold a NUL
        raise InvalidRequest(name, "holds control characters")
    return values[0]


def read_moment(query: Query, name: str) -> int | None:
    """A moment of a query, in microseconds since the epoch."""
    word = read_word(query, name)
    if word is None:
        return None
    micros = micros_of(word.replace(" ", "+") if "T" in word else word)
    if micros is None:
        raise InvalidRequest(name, "must be a moment such as 2026-11-15T09:00:00Z")
    return micros


def read_flag(query: Query, name: str) -> bool:
    """Whether something was asked for."""
    word = read_word(query, name)
    if word not in {None, "true", "false"}:
        raise InvalidRequest(name, "must be true or false")
    return word == "true"
