"""The reader of structured fields."""

import re
from base64 import b64encode
from binascii import a2b_base64
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Final, NoReturn

from carnet.wire.grammar.structured.values import (
    KEY,
    MAX_WHOLE_DIGITS,
    TOKEN,
    Bare,
    Date,
    Display,
    InnerList,
    Item,
    Member,
    Parameters,
    SpelledMember,
    StructuredInvalid,
    StructuredToken,
)

_INTEGER_DIGITS: Final = 15
_FRACTION_DIGITS: Final = 3

_NUMBER: Final = re.compile(r"(-?)([0-9]+)(?:\.([0-9]*))?")
_STRING: Final = re.compile(r'"((?:[ !#-\[\]-~]|\\["\\])*)"')
_BYTES: Final = re.compile(r":([A-Za-z0-9+/]*={0,2}):")
_BOOLEAN: Final = re.compile(r"\?([01])")
_DISPLAY: Final = re.compile(r'%"((?:[ !#$&-~]|%[0-9a-f]{2})*)"')
_ESCAPED: Final = re.compile(r'\\(["\\])')


def read_item(text: str) -> Item:
    """The value of an item field."""
    reader = _Reader(text)
    item = reader.item()
    reader.finish()
    return item


def read_list(text: str) -> tuple[Member, ...]:
    """The members of a list field; an empty text has none."""
    reader = _Reader(text)
    members = []
    while reader.more():
        members.append(reader.member())
        reader.separate()
    return tuple(members)


def read_dictionary(text: str, *, unique: bool = False) -> dict[str, Member]:
    """The members of a dictionary field by key; an empty text has none."""
    return {key: entry.member for key, entry in read_entries(text, unique=unique).items()}


def read_entries(text: str, *, unique: bool = False) -> dict[str, SpelledMember]:
    """Like `read_dictionary`, with the literal text of every member."""
    reader = _Reader(text, unique=unique)
    entries: dict[str, SpelledMember] = {}
    while reader.more():
        key = reader.key(entries)
        entries[key] = reader.entry()
        reader.separate()
    return entries


class _Reader:
    """A place in a text, and the rules of the grammar that move it on."""

    __slots__ = ("at", "text", "unique")

    def __init__(self, text: str, *, unique: bool = False) -> None:
        self.text = text.strip(" ")
        self.at = 0
        self.unique = unique

    def more(self) -> bool:
        return self.at < len(self.text)

    def finish(self) -> None:
        if self.more():
            self.refuse("has more after its value")

    def separate(self) -> None:
        """Go to the next member: nothing more, or a comma and then more."""
        self.skip(" \t")
        if not self.more():
            return
        if not self.take(","):
            self.refuse("has no comma between two members")
        self.skip(" \t")
        if not self.more():
            self.refuse("ends with a comma")

    def member(self) -> Member:
        return self.inner_list() if self.peek() == "(" else self.item()

    def entry(self) -> SpelledMember:
        start = self.at
        if not self.take("="):
            return SpelledMember(Item(True, self.parameters()), self.text[start : self.at])  # noqa: FBT003
        member = self.member()
        return SpelledMember(member, self.text[start + 1 : self.at])

    def inner_list(self) -> InnerList:
        self.at += 1  # the parenthesis that brought us here
        items: list[Item] = []
        while True:
            self.skip(" ")
            if self.take(")"):
                return InnerList(tuple(items), self.parameters())
            items.append(self.item())
            if self.peek() not in (" ", ")"):
                self.refuse("has no space between two items")

    def item(self) -> Item:
        return Item(self.bare(), self.parameters())

    def parameters(self) -> Parameters:
        found: Parameters = {}
        while self.take(";"):
            self.skip(" ")
            key = self.key(found)
            found[key] = self.bare() if self.take("=") else True
        return found

    def key(self, known: Mapping[str, object]) -> str:
        key = self.match(KEY, "has a key that is not one").group()
        if self.unique and key in known:
            self.refuse("has a key twice")
        return key

    def bare(self) -> Bare:
        read = _BARE.get(self.peek())
        if read is None:
            self.refuse("has a value of no known kind")
        return read(self)

    def number(self) -> int | Decimal:
        found = self.match(_NUMBER, "has a number that is not one")
        sign, whole, fraction = found.groups()
        if fraction is None:
            if len(whole) > _INTEGER_DIGITS:
                self.refuse("has an integer that is too long")
            return int(sign + whole)
        if len(whole) > MAX_WHOLE_DIGITS or not 1 <= len(fraction) <= _FRACTION_DIGITS:
            self.refuse("has a decimal that is too long or ends with its point")
        return Decimal(found.group())

    def string(self) -> str:
        inner = self.match(_STRING, "has a string that does not end or is not ASCII").group(1)
        return _ESCAPED.sub(r"\1", inner) if "\\" in inner else inner

    def token(self) -> StructuredToken:
        return StructuredToken(self.match(TOKEN, "has a token that is not one").group())

    def byte_sequence(self) -> bytes:
        return read_base64(self.match(_BYTES, "has bytes that are not base64").group(1))

    def boolean(self) -> bool:
        return self.match(_BOOLEAN, "has a boolean that is neither 0 nor 1").group(1) == "1"

    def date(self) -> Date:
        self.at += 1
        seconds = self.number()
        if not isinstance(seconds, int):
            self.refuse("has a date that is not in whole seconds")
        return Date(seconds)

    def display(self) -> Display:
        inner = self.match(_DISPLAY, "has a display string that does not end").group(1)
        parts = inner.encode().split(b"%")
        raw = parts[0] + b"".join(bytes.fromhex(p[:2].decode()) + p[2:] for p in parts[1:])
        try:
            return Display(raw.decode())
        except UnicodeDecodeError:
            self.refuse("has a display string that is not UTF-8")

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def take(self, character: str) -> bool:
        if not self.text.startswith(character, self.at):
            return False
        self.at += 1
        return True

    def skip(self, blanks: str) -> None:
        while self.more() and self.text[self.at] in blanks:
            self.at += 1

    def match(self, pattern: re.Pattern[str], reason: str) -> re.Match[str]:
        found = pattern.match(self.text, self.at)
        if found is None:
            self.refuse(reason)
        self.at = found.end()
        return found

    def refuse(self, reason: str) -> NoReturn:
        raise StructuredInvalid(f"{reason}, at character {self.at}")


_BARE: Final[dict[str, Callable[[_Reader], Bare]]] = {
    **dict.fromkeys("-0123456789", _Reader.number),
    **dict.fromkeys("*ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", _Reader.token),
    '"': _Reader.string,
    ":": _Reader.byte_sequence,
    "?": _Reader.boolean,
    "@": _Reader.date,
    "%": _Reader.display,
}


def read_base64(text: str) -> bytes:
    """The bytes of the one canonical spelling: standard alphabet, padded, no bits left over."""
    try:
        raw = a2b_base64(text, strict_mode=True)
    except ValueError:
        raise StructuredInvalid("is not base64") from None
    if b64encode(raw).decode() != text:
        raise StructuredInvalid("is not canonical base64")
    return raw
