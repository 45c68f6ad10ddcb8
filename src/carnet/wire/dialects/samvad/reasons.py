"""Why a Carnet says that a delegation does not hold, in the phrases that are our own.

Law. What a peer wrote is kept only where every word of it is one of ours (A65): the number of a
link, the name of a claim, a phrase of this table. Anything else says nothing.
"""

import re
from typing import Final

from carnet.errors import DelegationExceeded, DelegationInvalid, DelegationWidened

CLAIMS: Final = frozenset(
    {"aud", "scope", "exp", "maxDepth", "once", "bud.money", "bud.calls", "bud.tokens"}
)
REASONS: Final = frozenset(
    {
        "it cannot be read",
        "it has expired",
        "it was issued in the future",
        "it does not hold yet",
        "it is meant to hold for longer than 86400 seconds",
        "it is not three parts of unpadded base64url",
        "it is a token of another kind",
        "it lacks a claim or has one of a wrong kind",
        "it was given to somebody else",
        "it is for another agent",
        "its issuer is not known here",
        "its issuer neither holds nor was addressed by the one before it",
        "its signature does not hold",
        "the key of its issuer is no longer valid",
        "the key of its issuer cannot be fetched now",
        "the skill is not in its scope",
        "no hop is left",
        "it has more than 8 links",
    }
)

_LINK: Final = r"Link ([1-8]) of the delegation"
_INVALID: Final = re.compile(rf"{_LINK} does not hold: ([^.]{{1,100}})\.")
_WIDENED: Final = re.compile(rf"{_LINK} widens '([A-Za-z.]{{1,16}})'")
_EXCEEDED: Final = re.compile(r"The delegation does not cover this call: ([^.]{1,100})\.")


def read_detail(code: str, message: object) -> str | None:
    """What the message of a Carnet says beyond its code, or None."""
    text = message if isinstance(message, str) else ""
    if code == DelegationInvalid.code and (found := _INVALID.match(text)):
        return f"link {found[1]}: {found[2]}" if found[2] in REASONS else f"link {found[1]}"
    if code == DelegationWidened.code and (found := _WIDENED.match(text)):
        return f"link {found[1]} widens {found[2]}" if found[2] in CLAIMS else f"link {found[1]}"
    if code == DelegationExceeded.code and (found := _EXCEEDED.match(text)):
        return found[1] if found[1] in REASONS else None
    return None
