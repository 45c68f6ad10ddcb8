"""A part of a stream of a loop elsewhere, as a step of its turn keeps it.

Law. A part that a named budget of the agent has ended is gone on from once who pays has given more
     than until then, and refuses before.
"""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from carnet.core.money.budget import read_counts
from carnet.errors import BudgetExceeded
from carnet.ports.engine.calls import AgentAsk
from carnet.ports.engine.loop import LoopTurn
from carnet.wire.dialects.engine_chat.transcript import Transcript

AGENT: Final = "agent"  # whose named budgets who pays can give more of


class Short(Struct, frozen=True):
    """A named budget of the agent that has ended a stream."""

    part: str
    observed: int
    limit: int
    given: int  # by who pays, until then


class StreamPart(Struct, frozen=True):
    """A part of a stream, as it is kept: what was said, and the calls of others made meanwhile."""

    transcript: Transcript
    asked: tuple[AgentAsk, ...] = ()
    called: tuple[str, ...] = ()  # the calls that wait for what their callees ask for
    is_new: bool = False  # it was read just now
    short: Short | None = None
    counted: str = ""  # of named budgets, as the loop has told it

    def onward(self, turn: LoopTurn) -> LoopTurn:
        """The turn for the next stream; BudgetExceeded where its loop may not go on."""
        short, held = self.short, frozenset[str]()
        if short is not None:
            if dict(turn.granted).get(short.part, 0) <= short.given:
                counts = {"observed": short.observed, "limit": short.limit}
                raise BudgetExceeded(short.part, budget=AGENT, part=short.part, **counts)
            held = self.transcript.open
        counted = read_counts(self.counted) if self.counted else turn.counted
        return replace(turn, counted=counted, held=held)
