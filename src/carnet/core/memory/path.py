"""The path of a file in a person's memory: one grammar, and nothing else is a path.

    path     [ "/" ] segment *( "/" segment )      8 segments, 200 characters at the most
    segment  1 to 64 of A-Z a-z 0-9 . _ -          no dot first or last

Law 1. What the grammar does not know is refused, and never repaired: `..`, an empty segment, a
       backslash, a percent sign, NUL and other control characters, and every letter that is no
       ASCII letter, so that nothing looks like another path or becomes one when it is normalised.
Law 2. One stored form: `/AGENT.md` and `AGENT.md` are the same file, stored as `AGENT.md`.
       `parse_path(path) == path` for a path that is stored.
Law 3. Two files whose paths differ in capitals alone cannot be there together, and no file is also
       a folder: `folded` and `above` tell them.
"""

import re
from typing import Final

from carnet.errors import InvalidRequest

MOST_PATH: Final = 200  # characters
MOST_SEGMENTS: Final = 8
AGENT_FILE: Final = "AGENT.md"  # what an agent reads first

_SEGMENT: Final = re.compile(r"[A-Za-z0-9_-](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9_-])?", re.ASCII)
_RULE: Final = (
    "is no path: segments of A-Z, a-z, 0-9, '.', '_' and '-' between slashes, "
    "no dot first or last in one"
)


def parse_path(given: str) -> str:
    """The stored form of the path of a file; InvalidRequest for what is none."""
    path = given.removeprefix("/")
    segments = path[: MOST_PATH + 1].split("/")
    if len(path) > MOST_PATH or len(segments) > MOST_SEGMENTS:
        reason = f"is longer than {MOST_PATH} characters or {MOST_SEGMENTS} segments"
        raise InvalidRequest("path", reason)
    if not all(_SEGMENT.fullmatch(segment) for segment in segments):
        raise InvalidRequest("path", _RULE)
    return path


def parse_folder(given: str) -> str:
    """What the paths of the files in a folder begin with: empty for all, else with a slash last."""
    if given in {"", "/", "."}:
        return ""
    return f"{parse_path(given.removesuffix('/'))}/"


def folded(path: str) -> str:
    """What two paths have in common that differ in capitals alone."""
    return path.lower()


def above(path: str) -> tuple[str, ...]:
    """The folders that a path lies in, which no file may be called."""
    segments = path.split("/")
    return tuple("/".join(segments[:count]) for count in range(1, len(segments)))
