"""Receipts: the signed word that an answer was given to another organisation.

Law. A turn has one receipt for each attempt: who repeats the call gets the same bytes again.
"""

from typing import Protocol

from carnet.core.chain.turn import Turn


class Receipts(Protocol):
    """The receipts that were given."""

    async def put(self, turn: Turn, jws: str) -> str:
        """Keep the receipt of this attempt, and give the kept one: one that was there stays."""

    async def get(self, turn: Turn) -> str | None:
        """The receipt of this attempt."""
