"""What was said before, as an agent may look for it: a small part of a store of conversations.

Law 1. Only the conversations of the person whom the turn is for are looked through.
Law 2. What it costs has a bound, whatever the words: of much that was said not all is found.
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct


class PastHit(Struct, frozen=True, kw_only=True):
    """A conversation in which something was said."""

    conversation: str  # its id
    title: str
    at: str  # when something was said in it last, as people read it
    text: str = ""  # a part of what was said, where it is known


class TurnPast(Protocol):
    """The conversations of the person whom a turn is for."""

    async def search(self, question: str, /) -> Sequence[PastHit]:
        """Those of hers that hold all words; the newest first."""
