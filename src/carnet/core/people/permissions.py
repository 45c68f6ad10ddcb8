"""Permissions by name, the roles that are sets of them, and what two sets leave together.

Law 1. `NAMES` is the whole vocabulary. A name that nothing here asks for is not in it, and cannot
       be granted: what is granted today means tomorrow what it means today (R28).
Law 2. A set never grows by itself. What stands for all (`*`, `run:*`, `admin:*`) is written out
       when it is granted, as the names that there are then; `call:*` and `tool:*` stay, since the
       agents and tools of a gateway are data and not names of ours.
Law 3. Two sets leave what both allow, and nothing else.
"""

import re
from collections.abc import Iterable
from typing import Final

from carnet.core.people.identity import EVERYTHING, allows

EVERY_AGENT: Final = "call:*"
EVERY_TOOL: Final = "tool:*"

# What the program asks for, and what whoever has it may do.
NAMES: Final[dict[str, str]] = {
    EVERY_AGENT: "call every agent of this gateway, and those elsewhere",
    "call:remote": "call agents of other organisations",
    "pay": "make calls that may cost something",
    "run:read": "see one's own runs, tasks and postings",
    "run:cancel": "cancel one's own runs and tasks",
    "memory:read": "see what agents keep for oneself",
    "memory:write": "change and delete it, and have agents do so",
    "triggers": "have hooks and schedules, which call agents for oneself",
    "approve": "see and answer what others' calls ask for, but for payments",
    "metrics": "read the metrics, and the details of readiness",
    "admin:runs": "see and cancel everybody's runs and tasks",
    "admin:reload": "have the configuration read again",
    "admin:people": "add, see and end people",
    "admin:ledger": "post what partners prove of calls that nobody had told the cost of",
    "admin:books": "see everybody's budgets, check the ledger, and compare it with partners'",
    "admin:keys": "see whom this gateway believes, and replace and revoke its own keys",
    "admin:config": "see the settings that are in force",
    "admin:settings": "change them, with admin:config",
    "admin:engine": "ask the agent loop directly, past every ledger",
    EVERY_TOOL: "have every tool of the agent loop used",
}
MEMORY: Final = frozenset({"memory:read", "memory:write"})
PLAIN: Final = MEMORY | {EVERY_AGENT, "call:remote", "pay", "run:read", "run:cancel", "triggers"}

_OF_DATA: Final = frozenset({EVERY_AGENT, EVERY_TOOL})

VIEWER: Final = "viewer"
OPERATOR_ROLE: Final = "operator"
ADMIN: Final = "admin"

# Each holds the one before it.
ROLES: Final[dict[str, frozenset[str]]] = {
    VIEWER: frozenset({"run:read"}),
    OPERATOR_ROLE: PLAIN | {"metrics"},
    ADMIN: frozenset(NAMES),
}

_NAMED: Final = re.compile(r"(?:call|tool):[\x21-\x7e]{1,200}", re.ASCII)


def is_permission(name: str) -> bool:
    """Whether something can be granted: a name that is acted on, or one that stands for several."""
    return name in NAMES or name == EVERYTHING or name in _wide() or bool(_NAMED.fullmatch(name))


def _wide() -> set[str]:
    """The words that stand for all of a noun."""
    nouns = (name.partition(":") for name in NAMES)
    return {f"{noun}:{EVERYTHING}" for noun, colon, _ in nouns if colon}


def written_out(granted: Iterable[str]) -> frozenset[str]:
    """What is granted, each name by itself."""
    found: set[str] = set()
    for name in granted:
        is_wide = name == EVERYTHING or (name.endswith(f":{EVERYTHING}") and name not in _OF_DATA)
        found |= {one for one in NAMES if allows(frozenset({name}), one)} if is_wide else {name}
    return frozenset(found)


def both(one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
    """What two sets allow together."""
    return frozenset(
        {name for name in one if allows(other, name)}
        | {name for name in other if allows(one, name)}
    )


def rights_of(roles: Iterable[str], permissions: Iterable[str]) -> frozenset[str]:
    """What roles and permissions give together; a role that is not known gives nothing."""
    found = frozenset(permissions)
    return found.union(*(ROLES.get(role, frozenset()) for role in roles))
