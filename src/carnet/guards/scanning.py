"""Does the payload try to take over a language model?

Law. It is asked after the sender is proved and before anything is told about the agent; and of
payloads alone, which strangers send. What people say to an agent in a chat is not scanned, nor what
is sent to an agent whose operator switched the scan off.
"""

from collections.abc import Awaitable
from typing import Any, Protocol

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
        payload = candidate.claim.ask.payload
        if not payload or not self._is_wanted(candidate.claim.agent):
            return None
        return self._scan.check(payload)

    def _is_wanted(self, agent: str) -> bool:
        try:
            return self._router.find(agent).injection_scan
        except CarnetError:  # that there is no such agent is told afterwards
            return True
