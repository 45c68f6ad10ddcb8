"""Does the payload try to take over a language model?

Law. It is asked after the sender is proved and before anything is told about the agent. Payloads
are scanned, and chats where a stranger has signed them: whoever is scanned at one door is at the
other. What people say, also those for whom a peer calls, is not, nor what is sent to an agent whose
operator switched the scan off.
"""

from collections.abc import Awaitable
from typing import Any, Protocol

from carnet.core.message import Data, Message
from carnet.errors import CarnetError
from carnet.guards.candidate import Candidate
from carnet.ports.agent import Router


class Scan(Protocol):
    """Looks through a payload."""

    async def check(self, payload: dict[str, Any], /) -> None:
        """Raise InjectionDetected, or return."""
        ...


class Scanned:
    """Has the payload of a claim looked through."""

    def __init__(self, scan: Scan, router: Router) -> None:
        """`scan` knows what to look for; `router` finds out whether an agent wants it."""
        self._scan = scan
        self._router = router

    def __call__(self, candidate: Candidate, /) -> Awaitable[None] | None:
        """Scan what there is to scan."""
        payload = candidate.claim.ask.payload or _of_stranger(candidate)
        if not payload or not self._is_wanted(candidate.claim.agent):
            return None
        return self._scan.check(payload)

    def _is_wanted(self, agent: str) -> bool:
        try:
            return self._router.find(agent).injection_scan
        except CarnetError:  # that there is no such agent is told afterwards
            return True


def _of_stranger(candidate: Candidate) -> dict[str, Any] | None:
    """What a stranger says in a chat that it has signed."""
    ask = candidate.claim.ask
    if ask.payload is not None or candidate.claim.proof is None or candidate.peer is not None:
        return None
    return {"messages": [_scanned(message) for message in ask.messages]}


def _scanned(message: Message) -> list[Any]:
    """What a model may read of a message as words."""
    return [message.text, *[part.value for part in message.parts if isinstance(part, Data)]]
