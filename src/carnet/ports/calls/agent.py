"""Who finds agents, and who records what they say.

What an agent is, and where a name leads, stands in `core.call`.
"""

from collections.abc import AsyncGenerator, Collection, Sequence
from typing import Protocol

from carnet.core.call import AGENT_OWNED, FORWARD_USER, Agent, Call, Target
from carnet.core.messages.events import Event
from carnet.core.messages.output import Output, Sink

__all__ = [
    "AGENT_OWNED",
    "FORWARD_USER",
    "Agent",
    "Journal",
    "Output",
    "Router",
    "Sink",
    "Target",
]


class Journal(Protocol):
    """Runs agents, records what they say, and can say it again.

    `batches` gives the same events in the groups they were committed in: what a reader sees was
    durable before. The last batch holds one Usage and the terminal event.
    """

    def batches(
        self, call: Call, /, heartbeat: float | None = None
    ) -> AsyncGenerator[Sequence[Event], None]:
        """Committed groups of events, for the gateway; an empty one after a silence."""

    async def whole(self, call: Call, /) -> Sequence[Event]:
        """The same events when all of them are there."""

    async def size(self, call: Call, /) -> int:
        """How many bytes were recorded of a turn that is known."""

    async def cancel(self, turns: Collection[int]) -> int:
        """Cancel those of these turns that are running here; how many were told."""


class Router(Protocol):
    """Finds the target of a name or address."""

    def find(self, name: str) -> Target:
        """The target, or AgentNotFound, PeerUnknown or AddressInvalid."""

    def own(self, name: str) -> Target:
        """The agent served here that a name leads to, or AgentNotFound; no peer is looked up."""

    def local(self) -> Sequence[Target]:
        """The agents served here, in the order of the configuration."""
