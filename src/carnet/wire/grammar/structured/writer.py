"""The writer of structured fields."""

import re
from binascii import b2a_base64
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any, Final

from carnet.wire.grammar.structured.values import (
    KEY,
    MAX_INTEGER,
    MAX_WHOLE_DIGITS,
    TOKEN,
    Bare,
    Date,
    Display,
    Item,
    Member,
    StructuredInvalid,
    StructuredToken,
)

_THOUSANDTH: Final = Decimal("0.001")
_VISIBLE: Final = re.compile(r"[ -~]*")


def write_item(item: Item) -> str:
    """The text of an item field."""
    return write_bare(item.value) + write_parameters(item.parameters)


def write_member(member: Member) -> str:
    """The text of a member of a list or a dictionary."""
    if isinstance(member, Item):
        return write_item(member)
    inner = " ".join(write_item(item) for item in member.items)
    return f"({inner})" + write_parameters(member.parameters)


def write_list(members: Sequence[Member]) -> str:
    """The text of a list field; an empty one is not to be sent at all."""
    return ", ".join(write_member(member) for member in members)


def write_dictionary(members: Mapping[str, Member]) -> str:
    """The text of a dictionary field; an empty one is not to be sent at all."""
    return ", ".join(_write_entry(key, member) for key, member in members.items())


def _write_entry(key: str, member: Member) -> str:
    if isinstance(member, Item) and member.value is True:
        return _write_key(key) + write_parameters(member.parameters)
    return f"{_write_key(key)}={write_member(member)}"


def write_parameters(parameters: Mapping[str, Bare]) -> str:
    """The text of parameters, each after its semicolon."""
    return "".join(
        f";{_write_key(key)}" + ("" if value is True else f"={write_bare(value)}")
        for key, value in parameters.items()
    )


def write_bare(value: Bare) -> str:
    """The text of a value alone."""
    write = _WRITERS.get(type(value))
    if write is None:
        raise StructuredInvalid("is of no kind that a structured field knows")
    return write(value)


def _write_key(key: str) -> str:
    if KEY.fullmatch(key) is None:
        raise StructuredInvalid("has a key that is not one")
    return key


def _write_integer(value: int) -> str:
    if abs(value) > MAX_INTEGER:
        raise StructuredInvalid("has an integer that is too long")
    return str(value)


def _write_decimal(value: Decimal) -> str:
    if not value.is_finite() or abs(value) > MAX_INTEGER:
        raise StructuredInvalid("has a decimal that is too long")
    rounded = value.quantize(_THOUSANDTH, rounding=ROUND_HALF_EVEN)
    sign = "-" if rounded < 0 else ""
    whole, _, fraction = f"{abs(rounded):f}".partition(".")
    if len(whole) > MAX_WHOLE_DIGITS:
        raise StructuredInvalid("has a decimal that is too long")
    return f"{sign}{whole}.{fraction.rstrip('0') or '0'}"


def write_string(value: str) -> str:
    """The text of a string, in quotes."""
    if _VISIBLE.fullmatch(value) is None:
        raise StructuredInvalid("has a string that is not visible ASCII")
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _write_token(value: StructuredToken) -> str:
    if TOKEN.fullmatch(value.text) is None:
        raise StructuredInvalid("has a token that is not one")
    return value.text


def write_bytes(value: bytes) -> str:
    """The text of bytes, between colons."""
    return f":{str(b2a_base64(value, newline=False), 'ascii')}:"


def _write_display(value: Display) -> str:
    try:
        raw = value.text.encode()
    except UnicodeEncodeError:
        raise StructuredInvalid("has a display string with half a surrogate pair") from None
    written = "".join(
        chr(byte) if 0x20 <= byte <= 0x7E and byte not in b'%"' else f"%{byte:02x}"  # noqa: PLR2004
        for byte in raw
    )
    return f'%"{written}"'


_WRITERS: Final[dict[type, Callable[[Any], str]]] = {
    int: _write_integer,
    Decimal: _write_decimal,
    str: write_string,
    StructuredToken: _write_token,
    bytes: write_bytes,
    bool: lambda value: "?1" if value else "?0",
    Date: lambda value: f"@{_write_integer(value.seconds)}",
    Display: _write_display,
}
