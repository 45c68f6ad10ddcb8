"""Header fields: a strict view of those that arrived, and the builder of those that leave.

It is not a multidict and it knows no header by its meaning: a stamp asks for a field by name and
says how it must look. Framing (Host, Content-Length, line breaks) was judged by the edge before.

Law 1. A field that may stand once and stands twice is refused, also when both say the same:
       nobody may choose which of two payers or depths is meant.
Law 2. Blank is absent, both ways: read as None, and not written.
Law 3. A count is ASCII digits or it is malformed. It is never coerced, and it saturates, so that
       no number of digits raises or costs more than looking at them.
Law 4. A refusal names our header and our reason, never what a peer sent.
Law 5. No value leaves that could end its line or that a receiver would read differently.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from carnet.errors import InvalidRequest, MalformedCallerContext

MAX_COUNT: Final = 2**31 - 1

_COUNT_DIGITS: Final = 10  # as many as MAX_COUNT has; a longer number is at least that large
_OWS: Final = " \t"
_PLAIN_COUNT: Final = re.compile(rb"[0-9]{1,9}")
_TOKEN: Final = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]+", re.ASCII)

# Values as nearly all are, one a line: nothing, or visible ASCII with spaces inside.
_PLAIN_VALUES: Final = re.compile(r"(?:[!-~]+(?: +[!-~]+)*)?(?:\n(?:[!-~]+(?: +[!-~]+)*)?)*")


@lru_cache(maxsize=256)  # nearly all are our own; of a signature's components few
def _key(name: str) -> bytes:
    return name.lower().encode("latin-1")


@lru_cache(maxsize=64)  # the names are our own
def _are_names(names: tuple[str, ...]) -> bool:
    return all(_TOKEN.fullmatch(name) for name in names)


@lru_cache(maxsize=64)  # so are the prefixes
def _beginning(prefixes: tuple[bytes, ...]) -> re.Pattern[bytes]:
    """Finds the first of the joined names that begins with one of these."""
    return re.compile(b"\n(?:" + b"|".join(map(re.escape, prefixes)) + b")")


class Headers:
    """The fields of one request or response, as ASGI hands them over: names in lower case.

    Nothing is decoded until it is asked for, and nothing is copied.
    """

    __slots__ = ("_index", "_joined", "_repeats", "raw")

    def __init__(self, raw: Sequence[tuple[bytes, bytes]], /) -> None:
        self.raw = raw
        self._index: dict[bytes, bytes] | None = None
        self._joined: bytes | None = None
        self._repeats = False  # some name stands twice; known with the index

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Every field line in order, its value without the whitespace around it."""
        for name, value in self.raw:
            yield name.decode("latin-1"), value.decode("latin-1").strip(_OWS)

    def has(self, name: bytes) -> bool:
        """Whether a field of this name, in lower case, stands there at all."""
        return name in self._indexed()

    def names(self, *prefixes: bytes) -> list[str]:
        """The names that begin with one of these, each once, in the order of first appearance."""
        if (
            _beginning(prefixes).search(self._joined or self.joined()) is None
        ):  # one search for the usual case
            return []
        return [name.decode("latin-1") for name in self._indexed() if name.startswith(prefixes)]

    def joined(self) -> bytes:
        """All names, each after a line break: one search tells whether a prefix stands there."""
        joined = self._joined
        if joined is None:
            joined = self._joined = b"\n".join([b"", *self._indexed()])
        return joined

    def underscored(self) -> list[str]:
        """The names that hold an underscore, of which an honest request has few or none."""
        if b"_" not in (self._joined or self.joined()):  # one search for the usual case
            return []
        return [name.decode("latin-1") for name in self._indexed() if b"_" in name]

    def get_all(self, name: str) -> list[str]:
        """The values of every line with this name, in order, blank ones included."""
        key = _key(name)
        index = self._index or self._indexed()
        if not self._repeats:
            only = index.get(key)
            return [] if only is None else [str(only, "latin-1").strip(_OWS)]
        return [value.decode("latin-1").strip(_OWS) for other, value in self.raw if other == key]

    def get(self, name: str) -> str | None:
        """The one value of this field, or None if it is absent or blank.

        For fields that may stand once; a list (Accept, Via) is read with `get_all`.
        """
        key = _key(name)
        value = (self._index or self._indexed()).get(key)
        if value is None:
            return None
        if self._repeats:
            self._refuse_repeated(key)
        return str(value, "latin-1").strip(_OWS) or None

    def visible(self, name: str, *, max_bytes: int) -> str | None:
        """Like `get`, for what we act on or pass on: visible ASCII and inner spaces only."""
        value = self.get(name)
        if value is None:
            return None
        if len(value) > max_bytes:
            raise MalformedCallerContext(name, f"is longer than {max_bytes} bytes")
        if not (value.isascii() and value.isprintable()):
            raise MalformedCallerContext(name, "holds a character that is not visible ASCII")
        return value

    def read_count(self, name: str) -> int | None:
        """The field as a number from 0 to `MAX_COUNT`, larger ones as `MAX_COUNT`."""
        key = _key(name)
        value = (self._index or self._indexed()).get(key)
        if value is None:
            return None
        if self._repeats:
            self._refuse_repeated(key)
        if _PLAIN_COUNT.fullmatch(value) is not None:
            return int(value)
        # Spaces alone are taken off here: a tab beside a number is refused (attacks.json).
        digits = value.strip(b" ")
        if not digits:
            return None
        if not digits.isdigit():  # of bytes this is ASCII only; of str it would take U+0663
            raise MalformedCallerContext(name, "is not one whole number in ASCII digits")
        digits = digits.lstrip(b"0")
        if len(digits) > _COUNT_DIGITS:
            return MAX_COUNT
        return min(int(digits or b"0"), MAX_COUNT)

    def _indexed(self) -> dict[bytes, bytes]:
        index = self._index
        if index is None:
            index = self._index = dict(self.raw)
            self._repeats = len(index) != len(self.raw)
        return index

    def _refuse_repeated(self, key: bytes) -> None:
        if sum(name == key for name, _ in self.raw) > 1:
            raise MalformedCallerContext(key.decode("latin-1"), "is given more than once")


def refuse_lookalikes(headers: Headers, prefixes: Sequence[str]) -> None:
    """Refuse names such as `x_tangle_runid`: a CGI-like hop would make the real name of them.

    `prefixes` are those of the real names, which are somebody's to read.
    """
    for name in headers.underscored():
        real = name.replace("_", "-")
        for prefix in prefixes:
            if real.startswith(prefix):
                raise MalformedCallerContext(f"{prefix}*", "is spelled with an underscore")


def write_headers(fields: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the fields to send, in the order given, without the blank ones.

    A value that carries a line break, another control character, anything beyond ASCII or
    whitespace at an end is refused, whoever it came from: it would not arrive as it left.
    """
    values = "\n".join(fields.values())
    is_plain = _PLAIN_VALUES.fullmatch(values) is not None and _are_names(tuple(fields))
    if is_plain and values.count("\n") + 1 == len(fields):
        return [field for field in fields.items() if field[1]]
    written = []
    for name, value in fields.items():
        if _TOKEN.fullmatch(name) is None:
            raise InvalidRequest("header name", "is not a token in lower case")
        bare = value.strip(_OWS)
        if not bare:
            continue
        if bare != value or not (value.isascii() and value.replace("\t", " ").isprintable()):
            raise MalformedCallerContext(name, "holds a character that may not leave in a header")
        written.append((name, value))
    return written
