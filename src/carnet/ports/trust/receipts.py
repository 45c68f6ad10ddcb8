"""Receipts: the signed word that an answer was given to another organisation.

Here is also the proof of a run: who has signed for which of its calls.

Law. A turn has one receipt for each attempt: who repeats the call gets the same bytes again.
"""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from carnet.core.chain.turn import Turn
from carnet.wire.travel import ReceiptNode


class Receipts(Protocol):
    """The receipts that were given."""

    async def put(self, turn: Turn, jws: str) -> str:
        """Keep the receipt of this attempt, and give the kept one: one that was there stays."""

    async def get(self, turn: Turn) -> str | None:
        """The receipt of this attempt."""


class ProofAsk(Struct, frozen=True, kw_only=True):
    """What is to be proved."""

    run: str
    reader: str | None  # whose turns; None: everybody's
    turns: frozenset[str] | None = None  # of these alone, and what they called; None: of all
    seconds: float  # that it may take


class CallTree(Struct, frozen=True, kw_only=True):
    """Receipts as a tree, and what is to be said of them."""

    nodes: tuple[ReceiptNode, ...]
    verdicts: Mapping[str, str]  # by the hash of a receipt: signed, vouched, or nothing
    faults: tuple[tuple[str, str, str], ...]  # issuer, turn, what is wrong
    unproved: int  # calls below that no receipt was shown for


class Proves(Protocol):
    """Proves runs."""

    async def gather(self, asked: ProofAsk, /) -> tuple[ReceiptNode, ...] | None:
        """The receipts of a run, each with those below it; None if there is nothing to see."""

    async def __call__(self, asked: ProofAsk, /) -> CallTree | None:
        """The same, judged."""
