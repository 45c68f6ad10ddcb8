"""Ending a run, here and wherever it has gone."""

from typing import Protocol

from msgspec import Struct

from carnet.core.chain.hop import Hop
from carnet.core.chain.turn import Turn


class CancelAsk(Struct, frozen=True, kw_only=True):
    """What is to end."""

    run: str
    reader: str | None  # whose turns; None: everybody's
    turns: frozenset[str] | None = None  # of these alone, and what they called; None: of all
    only: Turn | None = None  # of those that have such an id
    seconds: float  # that it may take


class CancelReport(Struct, frozen=True, kw_only=True):
    """What has come of it."""

    stopped: int  # turns here that were told to stop
    hops: tuple[Hop, ...]


class Cancels(Protocol):
    """Ends runs."""

    async def __call__(self, asked: CancelAsk, /) -> CancelReport | None:
        """End what runs or waits of it, hop by hop; None if there is nothing of it to see."""
