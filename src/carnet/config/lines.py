"""Where in a TOML file each key stands, as well as can be told without a parser of our own.

`tomllib` gives values without places. This walks the lines, lets `tomllib` read each header and
each key, and remembers the line. What it cannot place (keys inside an inline table) is answered
with the line of what surrounds it. A wrong guess costs a line number in a message, nothing else.
"""

import re
import tomllib
from typing import Any, Final

KeyPath = tuple[str, ...]

_HEADER: Final = re.compile(r"\s*\[{1,2}([^\[\]]+)\]{1,2}\s*(?:#.*)?")
_KEY: Final = re.compile(
    r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=(.*)"""
)
_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"' + r"|'[^']*'")


def find_lines(text: str) -> dict[KeyPath, int]:
    """The line of every header and key that can be placed."""
    found: dict[KeyPath, int] = {}
    header: KeyPath = ()
    ends_at: str | None = None  # the closing quotes of a text that spans lines
    depth = 0  # open brackets of a list that spans lines
    for number, line in enumerate(text.splitlines(), 1):
        if ends_at is not None:
            ends_at = None if ends_at in line else ends_at
            continue
        if depth > 0:
            depth += _opened(line)
            continue
        if match := _HEADER.fullmatch(line):
            header = _path(f"[{match[1]}]")
            found.setdefault(header, number)
        elif match := _KEY.fullmatch(line):
            found.setdefault(header + _path(f"{match[1]} = 0"), number)
            ends_at = _unclosed_quotes(match[2])
            depth = 0 if ends_at else _opened(match[2])
    return found


def line_of(lines: dict[KeyPath, int], path: KeyPath) -> int | None:
    """The line of a key, or of what surrounds it."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return None


def _path(statement: str) -> KeyPath:
    try:
        table: Any = tomllib.loads(statement)
    except tomllib.TOMLDecodeError:
        return ()
    path: list[str] = []
    while isinstance(table, dict) and table:
        ((key, table),) = table.items()
        path.append(key)
    return tuple(path)


def _unclosed_quotes(value: str) -> str | None:
    for quotes in ('"""', "'''"):
        if value.lstrip().startswith(quotes) and value.count(quotes) == 1:
            return quotes
    return None


def _opened(line: str) -> int:
    bare = _QUOTED.sub("", line).partition("#")[0]
    return bare.count("[") - bare.count("]")
