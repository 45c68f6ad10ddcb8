"""Permissions as they are typed, and the sets that commands give.

One vocabulary everywhere: a scope that the gateway would never ask for is refused when the token
is made, not when its holder is turned away (R28).
"""

from difflib import get_close_matches
from typing import Final

from carnet.core.people.permissions import NAMES, PLAIN, is_permission
from carnet.errors import UsageInvalid

__all__ = ["OPERATOR", "PLAIN", "check_scope"]

OPERATOR: Final = frozenset(NAMES)  # of whoever can read the store anyway


def check_scope(scope: str) -> str:
    """Return a scope that exists, else refuse it with the nearest one."""
    if is_permission(scope):
        return scope
    near = get_close_matches(scope, [*NAMES, "run:*", "admin:*"], n=1)
    raise UsageInvalid(
        reason=f"'{scope}' is no permission." + (f" Did you mean '{near[0]}'?" if near else ""),
        fix=f"Known: call:AGENT, tool:NAME, {', '.join(NAMES)}.",
    )
