"""How a failure is told to the person at the terminal, and the exit code it becomes.

Law 1. 0 ok, 1 refused by a peer or a policy, 2 bad usage or configuration, 3 unreachable or timed
       out, 4 verification failed, 5 our fault.
Law 2. An error in JSON has the same fields as the HTTP error.
"""

from typing import Any

from carnet.errors import (
    BY_CODE,
    CarnetError,
    CircuitOpen,
    ConfigInvalid,
    Malformed,
    Ours,
    PeerResponseInvalid,
    PeerUnreachable,
    ProviderTimeout,
    ProviderUnavailable,
    Unreachable,
    UsageInvalid,
)

OK, REFUSED, USAGE, UNREACHABLE, UNVERIFIED, OURS = range(6)
INTERRUPTED = 130  # what a shell expects after Ctrl-C

_SERVER_FAULT = 500
GATEWAY_TROUBLE = {502, 503, 504}

# The first that fits; whatever else is refused was refused by a peer or a policy.
EXITS: tuple[tuple[tuple[type[CarnetError], ...], int], ...] = (
    ((ConfigInvalid, UsageInvalid, Malformed), USAGE),
    (
        (Unreachable, ProviderUnavailable, ProviderTimeout, PeerUnreachable, CircuitOpen),
        UNREACHABLE,
    ),
    ((PeerResponseInvalid,), UNVERIFIED),
    ((Ours,), OURS),
    ((CarnetError,), REFUSED),
)

MEANINGS: dict[int, str] = {
    OK: "It was done.",
    REFUSED: "Refused, by a peer or by a policy here.",
    USAGE: "The command, its input or the configuration cannot be used.",
    UNREACHABLE: "Nobody answered, or not in time.",
    UNVERIFIED: "What was looked at is not what it must be: a ledger, a token, a signed answer.",
    OURS: "Carnet itself failed; CARNET_DEBUG=1 shows where.",
    INTERRUPTED: "Ctrl-C.",
}


class GatewayError(Exception):
    """A call ended with an error; `facts` is its error object, mostly in the gateway's words."""

    def __init__(self, facts: dict[str, Any], status: int) -> None:
        super().__init__(facts.get("message", ""))
        self.facts = facts
        self.status = status

    @property
    def exit_code(self) -> int:
        """By its code if we know the word, else by its status."""
        kind = BY_CODE.get(str(self.facts.get("code")))
        if kind is not None:
            return exit_code(kind)
        if self.status in GATEWAY_TROUBLE:
            return UNREACHABLE
        return OURS if self.status >= _SERVER_FAULT else REFUSED


def exit_code(kind: type[CarnetError]) -> int:
    """The exit code of a kind of error."""
    return next(code for kinds, code in EXITS if issubclass(kind, kinds))


def error_object(error: CarnetError) -> dict[str, Any]:
    """The one shape of an error; here without headers, so that a time to wait stands in it."""
    waiting = {} if error.retry_after is None else {"retry_after": error.retry_after}
    return {
        "code": error.code,
        "message": error.safe_text,
        **error.public_facts(),
        **waiting,
        "hint": error.next_step,
        "docs": f"/-/errors/{error.code}",
    }
