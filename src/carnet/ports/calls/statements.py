"""The calls between us and one partner, as our records have them."""

from collections.abc import Sequence
from typing import Protocol

from carnet.core.money.statement import StatementLine
from carnet.ports.calls.turns import Turns


class StatementLines(Protocol):
    """What statements are made of."""

    async def served(
        self, peer: str, since: int, until: int, *, limit: int
    ) -> tuple[list[StatementLine], int]:
        """What we have served for a partner, and until when that is all of it."""

    async def made(
        self, peer: str, since: int, until: int, *, domain: str, limit: int
    ) -> tuple[list[StatementLine], int]:
        """The same of what we have called there; `domain` is ours. It looks at all calls."""

    async def made_of(
        self, peer: str, calls: Sequence[tuple[str, str]], *, domain: str
    ) -> list[StatementLine]:
        """What we have called there, of the calls with these runs and turns."""

    async def match(
        self, turns: Turns, peer: str, line: StatementLine, *, most: int, now: int
    ) -> int | None:
        """Post what a partner proves that a call of ours has cost, which nobody had told us.

        How much is owed for it; None where it is not, or no longer, unmatched. Above `most` it is
        disputed.
        """

    async def keep(
        self, peer: str, period: str, ours: int, theirs: int, jws: str, now: int
    ) -> None:
        """Keep the statement that ours was compared with."""
