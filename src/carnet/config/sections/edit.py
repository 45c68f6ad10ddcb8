"""One value of a configuration file changed, and everything else left as it was written.

Law 1. The text that comes out says the same as the one that went in, but for that value: it is read
       again and compared. Where that cannot be had, such as for a value that stands on several
       lines, nothing is changed.
Law 2. Comments, order and blank lines stay.
"""

import re
import tomllib
from typing import Any, Final

import msgspec

from carnet.config.lines import KeyPath, find_lines
from carnet.config.readers import ValueReader, Wrong
from carnet.config.sources import dotted

_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


class EditRefused(ValueError):
    """The value cannot be changed here; the text says why."""


def read_written(text: str, reader: ValueReader) -> Any:
    """What somebody typed for a value, as it is written in the file: as TOML, or as plain text.

    Raises:
        Wrong: It is none that the reader takes.
    """
    try:
        (found,) = tomllib.loads(f"value = {text}").values()
        reader.read(found)
    except (tomllib.TOMLDecodeError, ValueError, Wrong):
        reader.read(text)
        return text
    return found


def edited(text: str, path: KeyPath, value: Any | None) -> str:
    """The text of a file with another value of a key; None takes it out."""
    tree = tomllib.loads(text)
    wanted = _with(tree, path, value)
    lines, places = text.splitlines(), find_lines(text)
    at = places.get(path)
    if at is not None:
        lines[at - 1 : at] = _replaced(lines[at - 1], value)
    elif value is not None:
        _add(lines, places, path, value)
    after = "\n".join(lines) + "\n"
    try:
        found = tomllib.loads(after)
    except tomllib.TOMLDecodeError:
        found = None
    if found != wanted:
        raise EditRefused("stands in the file in a form that only you can change there")
    return after


def _with(tree: dict[str, Any], path: KeyPath, value: Any | None) -> dict[str, Any]:
    """The tree with another value; a table that becomes empty stays."""
    name, *rest = path
    if not rest:
        kept = {key: each for key, each in tree.items() if key != name}
        return kept if value is None else kept | {name: value}
    below = tree.get(name, {})
    if not isinstance(below, dict):
        raise EditRefused("has no place in the file")
    if value is None and name not in tree:
        return tree
    return {**tree, name: _with(below, tuple(rest), value)}


def _replaced(line: str, value: Any | None) -> list[str]:
    """The line of a key with another value, its comment after it."""
    if value is None:
        return []
    before, _, after = line.partition("=")
    comment = ""
    for at, sign in enumerate(after):
        if sign == "#" and _is_value(after[:at]):
            comment = f"  {after[at:]}"
            break
    return [f"{before.rstrip()} = {written(value)}{comment}"]


def _is_value(text: str) -> bool:
    try:
        tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return False
    return True


def _add(lines: list[str], places: dict[KeyPath, int], path: KeyPath, value: Any) -> None:
    """A line more, at the end of its section; a section more, at the end of the file."""
    section, entry = path[:-1], f"{_key(path[-1])} = {written(value)}"
    header = places.get(section)
    if header is None:
        lines += ["", f"[{dotted(section)}]", entry]
        return
    following = [line for found, line in places.items() if line > header and _opens(lines, line)]
    at = min(following) - 1 if following else len(lines)
    while at > header and (not lines[at - 1].strip() or lines[at - 1].lstrip().startswith("#")):
        at -= 1
    lines.insert(at, entry)


def _opens(lines: list[str], line: int) -> bool:
    return lines[line - 1].lstrip().startswith("[")


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else written(name)


def written(value: Any) -> str:
    """A value as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list):
        return f"[{', '.join(map(written, value))}]"
    if isinstance(value, dict):
        inner = ", ".join(f"{_key(name)} = {written(each)}" for name, each in value.items())
        return f"{{{inner}}}"
    raise EditRefused("is of a kind that only you can write there")
