"""The text of files: which of its lines hold some words, and what a change of it changes.

Law. Both take time that grows as the text does, whatever it holds, and what they give has a bound:
     a comparison finds where two texts begin and end alike, and shows what is between.
"""

from collections.abc import Iterable, Iterator
from itertools import islice, takewhile
from typing import Final

from msgspec import Struct

MOST_WORDS: Final = 16  # of one question
MOST_QUESTION: Final = 250  # characters of it
MOST_HITS: Final = 50
MOST_LINE: Final = 240  # characters of a line that are shown
MOST_SHOWN_LINES: Final = 40  # of a change, removed and added each


class LineHit(Struct, frozen=True):
    """A line that holds all words."""

    path: str
    line: int  # the first is 1
    text: str


def find_lines(files: Iterable[tuple[str, str]], question: str) -> list[LineHit]:
    """The lines of files, given by their paths, that hold every word, whatever the capitals."""
    words = question[:MOST_QUESTION].casefold().split()[:MOST_WORDS]
    if not words:
        return []
    return list(islice(_hits(files, words), MOST_HITS))


def _hits(files: Iterable[tuple[str, str]], words: list[str]) -> Iterator[LineHit]:
    for path, text in files:
        for number, line in enumerate(text.split("\n"), 1):
            searched = line.casefold()
            if all(word in searched for word in words):
                start = max(0, searched.find(words[0]) - MOST_LINE // 2)
                yield LineHit(path, number, line[start : start + MOST_LINE].strip())


def change_of(before: str | None, after: str) -> str:
    """What becomes of a file, in a few lines for whoever decides; None: there was no such file."""
    size = len(after.encode(errors="replace"))
    if before is None:
        return _shown(f"a new file of {size} bytes", [], after.split("\n"))
    if before == after:
        return f"nothing changes: {size} bytes"
    old, new = before.split("\n"), after.split("\n")
    first = _alike(old, new)
    old, new = old[first:], new[first:]
    last = _alike(reversed(old), reversed(new))
    removed, added = old[: len(old) - last], new[: len(new) - last]
    was = len(before.encode(errors="replace"))
    return _shown(f"from line {first + 1}: {was} bytes become {size}", removed, added)


def _alike(one: Iterable[str], other: Iterable[str]) -> int:
    """How many lines two texts have in common before they differ."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _shown(title: str, removed: list[str], added: list[str]) -> str:
    return "\n".join([title, *_marked("-", removed), *_marked("+", added)])


def _marked(sign: str, lines: list[str]) -> Iterator[str]:
    for line in lines[:MOST_SHOWN_LINES]:
        yield f"{sign}{line[:MOST_LINE]}" + ("..." if line[MOST_LINE:] else "")
    if lines[MOST_SHOWN_LINES:]:
        yield f"{sign} and {len(lines) - MOST_SHOWN_LINES} more lines"
