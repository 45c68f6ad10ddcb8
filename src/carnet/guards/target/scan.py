"""Does what was sent try to take over a language model?

Law 1. It is asked after the sender is proved and before anything is told about the agent. Payloads
       are scanned, and chats where a stranger has signed them: whoever is scanned at one door is at
       the other. What people say, also those for whom a peer calls, is not, nor what is sent to an
       agent whose operator switched the scan off.
Law 2. What one part holds does not hide another: a payload beside a chat is scanned, and so is the
       chat, with every text of the body as it was sent, whether or not we know what it is for.
Law 3. A dialect that keeps no body of its own makes its messages of the payload, if there is one.
"""

from collections.abc import Awaitable
from typing import Any, Protocol

from msgspec import to_builtins

from carnet.core.call import Ask
from carnet.errors import CarnetError
from carnet.guards.candidate import Candidate
from carnet.ports.work.agent import Router


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
        claim = candidate.claim
        ask = claim.ask
        by_stranger = claim.proof is not None and candidate.peer is None
        is_chat = by_stranger and (ask.body is not None or ask.payload is None)
        if not (is_chat or ask.payload) or not self._is_wanted(claim.agent):
            return None
        return self._check_chat(ask) if is_chat else self._scan.check(ask.payload or {})

    async def _check_chat(self, ask: Ask) -> None:
        """Scan all that was said, each for itself: none uses up what is read of another."""
        for said in _said(ask):
            await self._scan.check(said)

    def _is_wanted(self, agent: str) -> bool:
        try:
            return self._router.find(agent).injection_scan
        except CarnetError:  # that there is no such agent is told afterwards
            return True


def _said(ask: Ask) -> list[dict[str, Any]]:
    """The payload beside a chat, the chat itself, and those of its messages that have parts.

    Parts follow one another for whoever reads the message: what stands in two is one phrase.
    """
    body = ask.body or {"messages": to_builtins(ask.messages)}
    joined = [message.text for message in ask.messages if len(message.parts) > 1]
    return [said for said in (ask.payload, body, joined and {"messages": joined}) if said]
