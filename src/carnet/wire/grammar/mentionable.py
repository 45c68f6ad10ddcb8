"""Where a member of the Mentionable namespace lies in metadata, however it is spelled (R23).

    {"mentionable": {"agent_chain": ...}}      nested, as we write it
    {"mentionable.agent_chain": ...}           dotted, at any step

The metadata of the message and that of its request count alike.

Law 1. One member has one value: two spellings that differ are refused, and so is a namespace, or an
       object on the way, that is none. Absent is not malformed.
Law 2. What a member means is its reader's business; a member that nobody reads is left alone (R19).
Law 3. Reading takes time that grows with the number of spellings, not with what lies beside them.
"""

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

from carnet.errors import MalformedCallerContext

NAMESPACE: Final = "mentionable"

AGENT_CHAIN: Final = "agent_chain"
RECIPIENT_CAPABILITIES: Final = "recipient_capabilities"
IDENTITY_EVIDENCE: Final = "identity_evidence"
VERIFIABLE_CREDENTIALS: Final = "verifiable_credentials"
POLICY_RESOLUTION: Final = "policy_resolution"


def read_member(metadata: tuple[object, ...], *path: str) -> object:
    """The one value that lies at a path below the namespace; None where there is none.

    Args:
        metadata: Each an object as JSON gave it: of the message, of the request; None for none.
        *path: From the namespace down, for example `"identity_evidence"`.
    """
    found = list(find(metadata, *path))
    if any(one != other for one, other in pairwise(found)):
        raise MalformedCallerContext(place(*path), "is told twice and differently")
    return found[0] if found else None


def find(metadata: tuple[object, ...], *path: str) -> Iterator[object]:
    """Every value that lies at a path below the namespace; `null` is one as well."""
    steps = (NAMESPACE, *path)
    for given in metadata:
        if given is not None:
            yield from _find(given, steps, place(*path))


def _find(value: object, path: tuple[str, ...], name: str) -> Iterator[object]:
    if not path:
        yield value
        return
    members = objects(value, name)
    for steps in range(1, len(path) + 1):
        key = ".".join(path[:steps])
        if key in members:
            yield from _find(members[key], path[steps:], name)


def objects(value: object, name: str) -> Mapping[str, Any]:
    """The value as an object; `name` is its place, for the refusal."""
    if not isinstance(value, dict):
        raise MalformedCallerContext(name, "is not an object, or lies in something that is none")
    return value


def whole(value: object) -> int | None:
    """The value as a whole number; None where it is none.

    Metadata is a `google.protobuf.Struct`, whose numbers are doubles: 2.0 is how some write 2.
    """
    if type(value) is float and math.isfinite(value) and value.is_integer():
        return int(value)
    return value if type(value) is int else None  # bool is an int to isinstance


def place(*path: str) -> str:
    """How a refusal names a member."""
    return ".".join(("metadata", NAMESPACE, *path))


def spellings(*path: str) -> tuple[tuple[str, ...], ...]:
    """The keys, from the top of the metadata down, under which a member can lie."""
    return tuple(_spellings((NAMESPACE, *path)))


def _spellings(path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if not path:
        yield ()
        return
    for steps in range(1, len(path) + 1):
        for rest in _spellings(path[steps:]):
            yield (".".join(path[:steps]), *rest)
