"""Where an agent writes while it answers one call.

Law 1. There is one Output an execution, whatever is wrapped around the agent.
Law 2. What was used and which calls were made is paid for: only events can be taken back, and only
       those that nobody has seen.
"""

from typing import Protocol

from carnet.core.messages.events import Event, Usage
from carnet.core.messages.outbound_call import OutboundCall


class Sink(Protocol):
    """Takes an answer as it is read."""

    async def write(self, event: Event, /) -> None:
        """Take an event that is no end."""

    def usage(self, usage: Usage, /) -> None:
        """Take what was used; several of them add up."""


class Output(Sink, Protocol):
    """Takes what an agent says, and what the ledger must know.

    `write` waits while those who record and read are behind.
    """

    def called(self, call: OutboundCall, /) -> None:
        """Take note of a call to another organisation that has ended; it is given its ordinal."""

    def mark(self) -> int:
        """How far it is, for `back`."""

    def back(self, mark: int, /) -> bool:
        """Take back the events since then; False, and nothing happens, if somebody has seen any."""
