"""What a peer's refusal says in any dialect: who says so, and what a bare status stands for.

Law. A status that nothing explains is a fault. Whether the call was run is not known; which of them
are a reason to send it again is one list (R56).
"""

from collections.abc import Mapping
from typing import Final

from carnet.errors import (
    CarnetError,
    Fact,
    Internal,
    PeerBusy,
    PeerRefused,
    ProviderTimeout,
    ProviderUnavailable,
)

BY_PEER: Final = "peer"  # it reported what became of the call, which was dealt with there
BY_CALLEE: Final = "callee"  # it reported a fault that nobody has dealt with yet
BY_STATUS: Final = "status"  # nothing but the status of an answer says so
UNRECOGNISED: Final = "unrecognised"
ASKED_AGAIN: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
DEFAULT_WAIT_SECONDS: Final = 1  # for a peer that is busy and does not say for how long
STAMP: Final = "stamp"
_GIVEN: Final = "call"  # whose budget it is that came with a call
_PARTS: Final = ("money", "calls", "tokens")
_LIMITS_OF: Final = frozenset(  # what a limit belongs to, in the words that gateways tell
    {"tangle", "caller_context", "mentionable", "a2a_hop", "contextforge_hop"}  # stamps
    | {"travel", "chain", "samvad", "datalayer", "ca2a"}  # read beside a body, or in it
    | {"delegation", "task", "chain_depth"}
)


def find_row(
    table: dict[type[CarnetError], tuple[int, str]], error: CarnetError
) -> tuple[int, str]:
    """The row of an error; a subclass that somebody derived from a leaf is told as that leaf."""
    return next(table[kind] for kind in (*type(error).__mro__, Internal) if kind in table)


def unexplained(status: int, wait: int | None) -> CarnetError:
    """The error of ours that a status alone stands for; `wait` is what Retry-After says."""
    facts: dict[str, Fact] = {"peer_status": status, "peer_code": UNRECOGNISED}
    if status in {408, 504}:
        return ProviderTimeout(by=BY_STATUS, peer_status=status, **waiting(wait))
    if status == 429 or (status == 503 and wait is not None):  # noqa: PLR2004
        return PeerBusy(**facts, **waiting(wait))
    if status == 425 or status >= 500:  # noqa: PLR2004
        return ProviderUnavailable(by=BY_STATUS, peer_status=status, **waiting(wait))
    return PeerRefused(**facts)


def waiting(wait: int | None) -> dict[str, Fact]:
    """The fact of a time to wait, where there is one."""
    return {} if wait is None else {"retry_after": wait}


def part_of(fields: Mapping[str, object]) -> dict[str, Fact]:
    """The part that is used up of the budget which we gave, where a peer tells it as a Carnet."""
    part = fields.get("part")
    return {"peer_part": part} if fields.get("budget") == _GIVEN and part in _PARTS else {}


def limit_of(word: object) -> dict[str, Fact]:
    """What the limit belongs to that has ended a chain, where a peer tells it in a word of ours."""
    return {STAMP: word} if isinstance(word, str) and word in _LIMITS_OF else {}
