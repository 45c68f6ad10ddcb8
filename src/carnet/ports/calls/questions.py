"""What a turn asks for while it still runs: questions of those that it has called.

Law 1. A question of a turn that runs can be answered at once; what is answered stands with it until
       its turn has used it, also if its process dies.
Law 2. Before a turn waits it closes those that nobody has answered: no answer is lost between the
       last look and the end of the attempt, which opens them again.
"""

from collections.abc import Collection, Sequence
from typing import Protocol

from msgspec import Struct

from carnet.core.call import Call
from carnet.core.chain.turn import Turn
from carnet.core.messages.interrupt import Answered, Interrupt, InterruptRecord


class EarlyQuestions(Struct, frozen=True, kw_only=True):
    """What a turn asks for while it runs."""

    turn: Turn
    interrupts: tuple[Interrupt, ...]
    owners: tuple[str | None, ...]  # who is to answer each here
    call_bytes: bytes  # of `core.sealed_call`; the store seals them
    now: int


class OpenQuestions(Protocol):
    """The questions of the turns of one store that run."""

    async def ask(self, asking: EarlyQuestions) -> Sequence[InterruptRecord]:
        """Let them be answered; all of the turn as they are then.

        One that was asked before, with the same secret, keeps the answer that it has.
        """

    async def of(self, turn: Turn) -> Sequence[InterruptRecord]:
        """All of a turn, as they are."""

    async def withhold(self, turn: Turn, ids: Collection[str]) -> Sequence[InterruptRecord]:
        """Close those of these that nobody has answered; all of the turn as they are then."""


class Surface(Protocol):
    """Shows what a turn asks for while it runs, and brings the answers."""

    async def ask(self, call: Call, interrupts: Sequence[Interrupt]) -> None:
        """Let them be answered, if there is somebody here who can."""

    async def answers(self, call: Call) -> Sequence[Answered]:
        """What the turn of a call was answered so far."""

    async def withhold(self, call: Call, ids: Collection[str]) -> Sequence[Answered]:
        """Close those of these that nobody has answered; what the turn was answered."""
