"""Permissions by name, and the sets that tokens are given.

One vocabulary everywhere: a scope that the gateway would never ask for is refused when the token
is made, not when its holder is turned away.
"""

import re
from difflib import get_close_matches
from typing import Final

from carnet.errors import UsageInvalid

PLAIN: Final = frozenset({"call:*", "call:remote", "pay", "run:read", "run:cancel"})
OPERATOR: Final = PLAIN | {"admin:*", "approve", "metrics"}

_WORDS: Final = ("call:*", "call:remote", "pay", "run:read", "run:cancel", "run:*", "approve")
_MORE_WORDS: Final = ("metrics", "tool:*", "admin:*", "*")
_NAMED: Final = re.compile(r"(?:call|tool|admin):[\x21-\x7e]{1,200}", re.ASCII)


def check_scope(scope: str) -> str:
    """Return a scope that exists, else refuse it with the nearest one."""
    known = (*_WORDS, *_MORE_WORDS)
    if scope in known or _NAMED.fullmatch(scope):
        return scope
    near = get_close_matches(scope, known, n=1)
    raise UsageInvalid(
        reason=f"'{scope}' is no permission." + (f" Did you mean '{near[0]}'?" if near else ""),
        fix="Known: call:AGENT, call:*, call:remote, pay, run:read, run:cancel, approve, metrics, "
        "tool:NAME, admin:NOUN.",
    )
