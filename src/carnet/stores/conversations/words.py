"""The words of a text, as conversations are found by them.

Law 1. A word is found however it is capitalised or composed. Where people write without spaces, two
       letters that stand side by side are a word.
Law 2. However long a text is, it has at most so many words; the first ones count. To find them
       takes time that grows as the text does.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from carnet.stores.database import Statement

MOST_WORDS: Final = 512  # of one message
MOST_LETTERS: Final = 40  # of one word; longer ones are known by their beginning
MOST_CHARACTERS: Final = 65_536  # of a text that are looked at
AT_A_TIME: Final = 64  # words of one statement

_WORD: Final = re.compile(r"\w+")
_PIECE: Final = re.compile(r"\S{1,256}\s?|\s{1,256}")
# Han, kana and Hangul, whose words have no spaces between them.
_DENSE: Final = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+")

TEXT: Final = 0
TITLE: Final = 1

_INSERT: Final = (
    "INSERT INTO message_word (owner, word, conversation, source)"
    " SELECT c.owner, v.column1, c.n, CAST(? AS {number}) FROM conversation c"
    " CROSS JOIN (VALUES {words}) AS v"
    " WHERE c.id = ? AND c.owner = ? AND c.deleted IS NULL ON CONFLICT DO NOTHING"
)


def words_of(text: str, most: int = MOST_WORDS) -> tuple[str, ...]:
    """The words of a text, each once, in their order."""
    found: dict[str, None] = {}
    for word in _words(_composed(text).casefold()):
        found[word[:MOST_LETTERS]] = None
        if len(found) >= most:
            break
    return tuple(found)


def _composed(text: str) -> str:
    """As much of a text as is looked at, each letter in its one form.

    To put marks in their order takes as long as the square of how many follow each other: a text is
    composed in pieces that are short.
    """
    if text.isascii():
        return text[:MOST_CHARACTERS]
    found, room = list[str](), MOST_CHARACTERS
    for match in _PIECE.finditer(text):
        found.append(unicodedata.normalize("NFKC", match[0]))
        room -= len(found[-1])
        if room <= 0:
            break
    return "".join(found)[:MOST_CHARACTERS]


def _words(text: str) -> Iterator[str]:
    for match in _WORD.finditer(text):
        word, last = match[0], 0
        for dense in _DENSE.finditer(word):
            if dense.start() > last:
                yield word[last : dense.start()]
            run = dense[0]
            yield from [run] if len(run) == 1 else map("".join, pairwise(run))
            last = dense.end()
        if last < len(word):
            yield word[last:]


def index(owner: str, conversation: str, words: Sequence[str], source: int) -> list[Statement]:
    """What writes that a conversation holds words; not of one that was deleted meanwhile."""
    statements: list[Statement] = []
    for at in range(0, len(words), AT_A_TIME):
        some = words[at : at + AT_A_TIME]
        # As many as a power of two: there are few statements to prepare.
        size = 1 << (len(some) - 1).bit_length()
        filled = [*some, *[some[-1]] * (size - len(some))]
        text = _INSERT.format(words=", ".join(["(?)"] * size), number="BIGINT")
        statements.append((text, (source, *filled, conversation, owner)))
    return statements
