"""What an agent has done already, so that it is not done again when its turn runs again.

Law. A step that is kept has happened: whoever runs the turn later is given its result instead.
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from carnet.core.chain.turn import Turn


class Step(Struct, frozen=True):
    """One step of a turn, by its place among the steps of that turn."""

    place: int
    name: str
    result: bytes  # JSON


class Steps(Protocol):
    """The steps of the turns of one store."""

    async def of(self, turn: Turn) -> Sequence[Step]:
        """What is kept of a turn, in order."""

    async def check(self, turn: Turn) -> None:
        """Raise Fenced if the turn is not ours any more: what was done now would not be kept."""

    async def keep(self, turn: Turn, step: Step) -> None:
        """Make one durable. Raises Fenced if the turn is not ours any more."""


class Progress(Protocol):
    """Where the agent of a task tells how far it is."""

    def tell(self, turn: Turn, thousandths: int, note: str | None) -> None:
        """Tell it soon; what follows quickly replaces it."""
