"""What a structured field can say: the kinds of values, and what they are put together to."""

import re
from decimal import Decimal
from typing import Final

from msgspec import Struct

MAX_INTEGER: Final = 999_999_999_999_999
MAX_WHOLE_DIGITS: Final = 12  # of a decimal, before its point

KEY: Final = re.compile(r"[a-z*][a-z0-9_.*-]*")
TOKEN: Final = re.compile(r"[A-Za-z*][A-Za-z0-9!#$%&'*+.^_`|~:/-]*")


class StructuredInvalid(ValueError):
    """The text is not a structured field of that kind, or the value cannot be written as one."""


class StructuredToken(Struct, frozen=True):
    """A short word without quotes."""

    text: str


class Date(Struct, frozen=True):
    """A point in time, in whole seconds since the epoch."""

    seconds: int


class Display(Struct, frozen=True):
    """A text for people, of any characters."""

    text: str


Bare = int | Decimal | str | StructuredToken | bytes | bool | Date | Display
Parameters = dict[str, Bare]


class Item(Struct, frozen=True):
    """One value and what is said about it."""

    value: Bare
    parameters: Parameters = {}


class InnerList(Struct, frozen=True):
    """Items in parentheses, and what is said about them together."""

    items: tuple[Item, ...] = ()
    parameters: Parameters = {}


Member = Item | InnerList


class SpelledMember(Struct, frozen=True):
    """A member of a dictionary beside the text that spelled it."""

    member: Member
    text: str  # what stood after the "="; empty where the key alone stood for true
