"""May this gateway be made to call back to that address?

Law. It is asked of senders that are proved and may call, and before anything is claimed: an address
that we would not dial registers nothing. It is judged again at each attempt to deliver.
"""

from collections.abc import Awaitable
from typing import Protocol

from carnet.errors import CallbackForbidden
from carnet.guards.candidate import Candidate


class CallbackCheck(Protocol):
    """Checks the addresses of callbacks."""

    async def check(self, url: str, sender: str, /) -> None:
        """Raise CallbackForbidden, or return."""
        ...


class CalledBack:
    """Refuses a callback to where no peer may make us call."""

    def __init__(self, callbacks: CallbackCheck | None) -> None:
        """`callbacks` checks addresses; without it no callback is accepted."""
        self._callbacks = callbacks

    def __call__(self, candidate: Candidate, /) -> Awaitable[None] | None:
        """Judge the callback, where one is named."""
        url = candidate.claim.callback
        if url is None:
            return None
        if self._callbacks is None:
            raise CallbackForbidden(reason="nothing is delivered from here")
        proof = candidate.claim.proof
        sender = candidate.caller.actor.name if proof is None else proof.sender
        return self._callbacks.check(url, sender)
