"""How long a caller waits for its answer: `Prefer: wait=SECONDS` (RFC 7240).

It is for callers that bring no travel document, which tells a deadline by itself.

Law 1. It can only shorten the time of a call, and is no part of what is asked: a repeat may wait
       for longer or not as long.
Law 2. Other preferences are none of our business. A `wait` that is not a number of seconds is
       refused, and so is a second one: whoever relies on it must not wait for ever.
"""

import re
from typing import Final

from msgspec.structs import replace

from carnet.core.call import Claim
from carnet.errors import MalformedCallerContext
from carnet.wire.grammar.headers import MAX_COUNT, Headers

PREFER: Final = "prefer"
PREFER_START: Final = b"\n" + PREFER.encode()

_MOST_PREFERENCES: Final = 32
_DIGITS: Final = 10  # as many as MAX_COUNT has
_WAIT: Final = re.compile(r"wait[ \t]*=[ \t]*(?:([0-9]+)|\"([0-9]+)\")", re.ASCII | re.IGNORECASE)
_NAME: Final = re.compile(r"[ \t]*wait[ \t]*(?:[=;]|\Z)", re.ASCII | re.IGNORECASE)


def read_wait(headers: Headers) -> int | None:
    """The seconds that the caller waits at most; None where it does not say."""
    preferences = ",".join(headers.get_all(PREFER)).split(",")
    if len(preferences) > _MOST_PREFERENCES:
        raise MalformedCallerContext(PREFER, "holds too many preferences")
    found = [preference for preference in preferences if _NAME.match(preference)]
    if not found:
        return None
    match = _WAIT.fullmatch(found[0].partition(";")[0].strip(" \t"))
    if len(found) > 1 or match is None:
        raise MalformedCallerContext(PREFER, "is not one number of seconds to wait")
    digits = match[1] or match[2]
    return MAX_COUNT if len(digits) > _DIGITS else min(int(digits), MAX_COUNT)


def with_wait(claim: Claim, headers: Headers) -> Claim:
    """The claim with the time that its caller has for it."""
    return replace(claim, wait=read_wait(headers))
