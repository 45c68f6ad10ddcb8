"""Agents that are named in what is said: `@critic`, or `@critic@globex.example`.

Law. A mention begins a text or follows a space or an opening bracket, and is a name or an address
     in its form: what stands in an e-mail address is none. They are looked for in the beginning of
     a long text alone.
"""

import re
from typing import Final

MOST_MENTIONS: Final = 16
MOST_HANDLES: Final = 64  # that a text begins with, also if it names one again
MOST_CHARACTERS: Final = 131_072  # of a text that are looked at

_LOCAL: Final = r"[A-Za-z0-9_-](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9_-])?"
_DOMAIN: Final = r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?"
_HANDLE: Final = rf"@{_LOCAL}(?:@{_DOMAIN})?"
_LEADING: Final = re.compile(rf"\s*({_HANDLE})(?=[\s,:;]|\Z)(?:\s*[,:;])?", re.ASCII)
_WITHIN: Final = re.compile(rf"(?:(?<=[\s(\[])|\A)({_HANDLE})(?![\w@])", re.ASCII)


def leading_handles(text: str) -> tuple[tuple[str, ...], str]:
    """The handles that a text begins with, each once, and what follows them."""
    found: dict[str, None] = {}
    at = 0
    for _ in range(MOST_HANDLES):
        match = _LEADING.match(text, at)
        if match is None or len(found) >= MOST_MENTIONS:
            break
        found[match[1]] = None
        at = match.end()
    return tuple(found), text[at:].strip()


def mentions(text: str) -> tuple[str, ...]:
    """The handles in a text, each once, in their order."""
    found: dict[str, None] = {}
    for match in _WITHIN.finditer(text[:MOST_CHARACTERS]):
        found[match[1].rstrip(".-")] = None
        if len(found) >= MOST_MENTIONS:
            break
    return tuple(found)


def named(handle: str) -> str:
    """What a router finds an agent by: its bare name, or its address."""
    return handle if "@" in handle[1:] else handle[1:]
