"""Other gateways that run turns on the same store.

Law 1. A turn runs in one process. Whoever reads it elsewhere is a reader all the same, and whoever
       may cancel it may do so anywhere.
Law 2. What a gateway wants of a turn is forgotten when that attempt has ended, or when the gateway
       has gone.
"""

from collections.abc import Collection
from typing import Protocol

from carnet.core.chain.turn import Turn


class Cluster(Protocol):
    """The gateways on one store, and what they request of one another's turns."""

    async def attend(self, turn: Turn) -> None:
        """Say that a turn of another gateway is read here."""

    async def leave(self, turn: Turn) -> None:
        """Say that it is read here no more."""

    async def are_reading(self, turn: Turn) -> bool:
        """Whether another gateway reads a turn of ours."""

    async def cancel(self, turns: Collection[int], *, seconds: float) -> int:
        """Have those of these turns cancelled that run elsewhere; how many ended in that time."""
