"""Lists of conversations, by the time of the last change or by the words in them.

Law 1. A list reads some rows of an index at a time, and ends after so many of them: a page may hold
       less than was asked for, and the next one goes on where it ended.
Law 2. What holds several words is looked for by the rarest of them.
"""

# ruff: noqa: S608  the texts are put together from our own words; every value is an argument

import re
from collections.abc import Sequence
from typing import Final

from carnet.errors import InvalidRequest
from carnet.ports.calls.conversations import ConversationFilter, KeptConversation, Page
from carnet.stores.conversations.rows import CONVERSATION_COLUMNS, DELETED, read_conversation
from carnet.stores.database import Database, Row, Value, marks

SLICE: Final = 250  # rows that are read at a time
MOST_SLICES: Final = 4  # for one page
MOST_COUNTED: Final = 1_000  # conversations that hold a word, to find the rarest

_LAST: Final = 2**62
_CURSOR: Final = re.compile(r"([0-9]{1,18})(?:\.([0-9]{1,18}))?", re.ASCII)

_BY_TIME: Final = (
    f"SELECT {CONVERSATION_COLUMNS} FROM conversation c"
    " WHERE c.owner = ? AND c.deleted IS NULL AND c.archived IS {}"
    " AND (c.updated, c.n) < (?, ?) ORDER BY c.updated DESC, c.n DESC LIMIT ?"
)
_COUNT: Final = (
    "SELECT COUNT(*) FROM"
    " (SELECT 1 AS one FROM message_word WHERE owner = ? AND word = ? LIMIT ?) AS few"
)
_HOLDING: Final = (
    "SELECT w.conversation FROM message_word w WHERE w.owner = ? AND w.word = ?"
    " AND w.conversation < ? ORDER BY w.conversation DESC LIMIT ?"
)
_ALSO: Final = (
    " AND EXISTS (SELECT 1 FROM message_word o WHERE o.owner = c.owner AND o.word = ?"
    " AND o.conversation = c.n)"
)
_NUMBERED: Final = (
    f"SELECT {CONVERSATION_COLUMNS} FROM conversation c"
    " WHERE c.n IN ({}) AND c.owner = ?{} ORDER BY c.n DESC"
)


class ConversationSearch:
    """Finds conversations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(
        self, owner: str, matching: ConversationFilter, *, limit: int, before: str | None
    ) -> Page:
        """Hers that are like that."""
        if matching.words:
            return await self._by_words(owner, matching, limit, before)
        return await self._by_time(owner, matching, limit, before)

    async def _by_time(
        self, owner: str, matching: ConversationFilter, limit: int, before: str | None
    ) -> Page:
        at = _read_cursor(before, parts=2)
        until = matching.until
        if until is not None and (until + 1, 0) < at:
            at = (until + 1, 0)
        query = _BY_TIME.format("NOT NULL" if matching.archived else "NULL")
        found: list[KeptConversation] = []
        for _ in range(MOST_SLICES):
            rows = await self._database.fetch(query, (owner, *at, SLICE))
            for row in rows:
                conversation = read_conversation(row)
                at = (conversation.updated, conversation.n)
                if matching.since is not None and conversation.updated < matching.since:
                    return Page(found, None)
                if _fits(conversation, matching):
                    found.append(conversation)
                if len(found) == limit:
                    return Page(found, f"{at[0]}.{at[1]}")
            if len(rows) < SLICE:
                return Page(found, None)
        return Page(found, f"{at[0]}.{at[1]}")

    async def _by_words(
        self, owner: str, matching: ConversationFilter, limit: int, before: str | None
    ) -> Page:
        rarest, *others = await self._by_rarity(owner, matching.words)
        at = _read_cursor(before, parts=1)[0]
        found: list[KeptConversation] = []
        for _ in range(MOST_SLICES):
            rows = await self._database.fetch(_HOLDING, (owner, rarest, at, SLICE))
            numbers: list[Value] = list(dict.fromkeys([n for (n,) in rows]))
            for row in await self._numbered(owner, numbers, others):
                conversation = read_conversation(row)
                if _fits(conversation, matching) and row[DELETED] is None:
                    found.append(conversation)
                if len(found) == limit:
                    return Page(found, str(conversation.n))
            if len(rows) < SLICE:
                return Page(found, None)
            at = rows[-1][0]
        return Page(found, str(at))

    async def _by_rarity(self, owner: str, words: Sequence[str]) -> Sequence[str]:
        counted: list[tuple[int, str]] = []
        for word in words:
            ((count,),) = await self._database.fetch(_COUNT, (owner, word, MOST_COUNTED))
            counted.append((count, word))
        return [word for _, word in sorted(counted)]

    async def _numbered(
        self, owner: str, numbers: Sequence[Value], words: Sequence[str]
    ) -> Sequence[Row]:
        if not numbers:
            return []
        query = _NUMBERED.format(marks(len(numbers)), _ALSO * len(words))
        return await self._database.fetch(query, (*numbers, owner, *words))


def _fits(conversation: KeptConversation, matching: ConversationFilter) -> bool:
    return (
        (matching.agent is None or conversation.agent == matching.agent)
        and (matching.trigger is None or conversation.trigger == matching.trigger)
        and (matching.since is None or conversation.updated >= matching.since)
        and (matching.until is None or conversation.updated <= matching.until)
        and (not matching.unread or conversation.unread > 0)
        and matching.archived == (conversation.archived is not None)
    )


def _read_cursor(before: str | None, *, parts: int) -> tuple[int, int]:
    """Where a list goes on; InvalidRequest for what no list has given."""
    if before is None:
        return _LAST, _LAST
    match = _CURSOR.fullmatch(before)
    if match is None or (match[2] is None) != (parts == 1):
        raise InvalidRequest("before", "is none that a list of conversations has given")
    return int(match[1]), int(match[2] or 0)
