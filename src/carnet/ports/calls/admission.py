"""The gate, as those behind it see it."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from carnet.core.call import Ask, Call, Claim
from carnet.core.messages.events import Event


class Admission(Protocol):
    """Turns claims into calls, or refuses them."""

    async def admit(self, claim: Claim) -> Call:
        """Show a claim from the wire to every guard; the last step records it."""

    async def admit_child(
        self, parent: Call, name: str, ask: Ask, *, index: int, auth: str
    ) -> Call:
        """Admit a call that an agent makes in process, on behalf of the call it answers."""


class Dispatch(Protocol):
    """How an agent calls another agent, here or elsewhere."""

    def __call__(
        self, parent: Call, name: str, ask: Ask, *, index: int, auth: str
    ) -> AsyncIterator[Event]:
        """Admit the child and give its events as they come."""

    async def whole(
        self, parent: Call, name: str, ask: Ask, *, index: int, auth: str
    ) -> Sequence[Event]:
        """Admit the child and wait for all of its events."""
