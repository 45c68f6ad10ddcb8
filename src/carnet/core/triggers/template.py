"""The message that is made of an event: a text with places, which hold what the event says.

    New order {{ body.order.id }} of {{ body.customer.name }}: {{ body.items.0.title }}

A place names a way through the JSON of the event, by the names of members and, in a list, by
numbers from 0. A text stands as it is, but for NUL; anything else, and `{{ body }}` as a whole, as
JSON. Where the event has nothing there, nothing stands there.

Law 1. There is no code in it: no conditions, no calls, and what an event says is never read as a
       template.
Law 2. Whatever is written twice braced and is no place is refused when the template is read.
Law 3. What is made is bounded, each place and the whole of it, however large the event is; to read
       a template takes time that grows as its text does.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from carnet.errors import InvalidRequest

FIELD: Final = "template"
ROOTS: Final = ("body", "event", "hook")  # what was sent; its id; the name of what received it
MOST_CHARACTERS: Final = 8_000
MOST_PLACES: Final = 20
MOST_LEVELS: Final = 16
MOST_OF_PLACE: Final = 20_000  # characters
MOST_WRITTEN: Final = 50_000
CUT: Final = "…"
NO_SIGN: Final = "\ufffd"  # in the place of NUL, which not every store can keep in a text

_WAY: Final = re.compile(r" *([a-z]+(?:\.[A-Za-z0-9_$@-]{1,100})*) *", re.ASCII)
_NUMBER: Final = re.compile(r"[0-9]{1,6}", re.ASCII)

Encode = Callable[[Any], str]


class MessageTemplate(Struct, frozen=True):
    """A template that was read: texts, and between two of them a way."""

    texts: tuple[str, ...]
    ways: tuple[tuple[str, ...], ...]

    def write(self, values: Mapping[str, Any], encode: Encode) -> str:
        """The message for an event; `encode` writes as JSON what is no text."""
        written = [self.texts[0]]
        for way, text in zip(self.ways, self.texts[1:], strict=True):
            written += [_shown(_found(values, way), encode), text]
        return _cut("".join(written), MOST_WRITTEN)


def read_template(text: str) -> MessageTemplate:
    """The template that a text is, else a refusal that says why it is none."""
    if not text.strip() or len(text) > MOST_CHARACTERS or "\0" in text:
        reason = f"must be a text of 1 to {MOST_CHARACTERS} characters, none of them NUL"
        raise InvalidRequest(FIELD, reason)
    texts, braced = _parted(text)
    if len(braced) > MOST_PLACES:
        raise InvalidRequest(FIELD, f"must have at most {MOST_PLACES} places")
    if any("{{" in piece or "}}" in piece for piece in texts):
        raise InvalidRequest(FIELD, "has two braces that open or close no place")
    return MessageTemplate(tuple(texts), tuple(map(_way, braced)))


def _parted(text: str) -> tuple[list[str], list[str]]:
    """The texts of a template, and what stands in braces between each two; it is read once."""
    texts, braced, at = list[str](), list[str](), 0
    while (begin := text.find("{{", at)) >= 0 and (end := text.find("}}", begin + 2)) >= 0:
        texts.append(text[at:begin])
        braced.append(text[begin + 2 : end])
        at = end + 2
    return [*texts, text[at:]], braced


def _way(text: str) -> tuple[str, ...]:
    match = _WAY.fullmatch(text)
    way = () if match is None else tuple(match[1].split("."))
    if not way or way[0] not in ROOTS or len(way) > MOST_LEVELS:
        raise InvalidRequest(
            FIELD,
            "has a place that is no way such as {{ body.order.id }} or {{ body.items.0.name }}; it"
            f" begins with {', '.join(ROOTS)}",
        )
    return way


def _found(values: Mapping[str, Any], way: tuple[str, ...]) -> Any:
    found: Any = values
    for name in way:
        if isinstance(found, Mapping):
            found = found.get(name)
        elif isinstance(found, list) and _NUMBER.fullmatch(name):
            found = found[int(name)] if int(name) < len(found) else None
        else:
            return None
    return found


def _shown(value: Any, encode: Encode) -> str:
    if value is None:
        return ""
    text = _cut(value if isinstance(value, str) else encode(value), MOST_OF_PLACE)
    return text.replace("\0", NO_SIGN)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + CUT
