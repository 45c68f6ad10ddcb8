"""Other agents, as a loop calls them: out of its turn, and with no more than the turn has.

Law 1. The loop names whom it asks and what. Depth, payer, rights, deadline and record are those of
       its turn, and nothing that a loop says changes them.
Law 2. Who was called may wait for somebody. Then so does the turn: `CalleeWaits` tells the loop
       that there is no answer yet, and not what for. The question goes up past it.
Law 3. The same call of a turn that runs again is the same call: it is made once.
"""

from collections.abc import Collection, Sequence
from typing import Protocol

from msgspec import Struct

from carnet.core.messages.events import Message


class CalleeWaits(Exception):
    """Who was called waits for somebody's answer, and so does this turn."""


class AgentAsk(Struct, frozen=True, kw_only=True):
    """One call of another agent."""

    to: str  # its address, or the name of one here
    messages: tuple[Message, ...]
    call: str  # the id of the tool call that it is made for
    place: int | None = None  # of that among all of its turn; None where nobody counts them


class AgentCalls(Protocol):
    """Calls other agents for one turn."""

    @property
    def waits(self) -> Collection[str]:
        """The ids of the tool calls whose callees wait."""

    @property
    def made(self) -> Sequence[AgentAsk]:
        """The calls that were answered, in their order."""

    async def ask_agent(self, ask: AgentAsk, /) -> str:
        """The text of its answer. Raises CalleeWaits, or a CarnetError if it fails."""


class OpenTurns(Protocol):
    """The turns whose loops are asked elsewhere at this moment, by the ids of their bearers."""

    def find(self, id: str, turn: str, agent: str, /) -> AgentCalls | None:
        """What calls for such a turn; None where it has ended, or never was.

        Raises TurnElsewhere for that of another process of the gateway.
        """
