"""Who acts, as the loop is told: two headers that Auth writes and nobody else.

Law 1. The loop reads them. It has no way to write them: what it calls is called by the gateway, for
       the same one.
Law 2. Without both there is nobody, and nobody asks a loop.
Law 3. `read_actor(write_actor(x)) == x`.
"""

from typing import Any, Final

from msgspec import Struct, ValidationError, convert

from carnet.core.people.identity import Ceiling
from carnet.errors import InvalidJson, MalformedCallerContext, TokenInvalid, TokenMissing
from carnet.wire.grammar import json
from carnet.wire.grammar.headers import Headers

ACTOR_ID: Final = "x-actor-id"
PERMISSIONS: Final = "x-actor-permissions"
MOST_ID_BYTES: Final = 256
MOST_PERMISSIONS_BYTES: Final = 8192


class EngineActor(Struct, frozen=True):
    """Who acts, and the most that this one may use."""

    id: str
    ceiling: Ceiling

    def may(self, permission: str) -> bool:
        """Whether a tool that asks for it may be used."""
        return self.ceiling.allows(permission)


class _Permissions(Struct, forbid_unknown_fields=True):
    allow: list[str]
    deny: list[str] = []


def read_actor(headers: Headers) -> EngineActor:
    """Who acts; TokenMissing where nobody said, TokenInvalid for what Auth would not write."""
    try:
        id = headers.visible(ACTOR_ID, max_bytes=MOST_ID_BYTES)
        written = headers.visible(PERMISSIONS, max_bytes=MOST_PERMISSIONS_BYTES)
        if id is None or written is None:
            raise TokenMissing
        given = convert(json.read(written.encode()), _Permissions)
    except (MalformedCallerContext, InvalidJson, ValidationError):
        raise TokenInvalid("the headers of the actor are not in their form") from None
    return EngineActor(id, Ceiling(allow=frozenset(given.allow), deny=frozenset(given.deny)))


def write_actor(actor: EngineActor) -> dict[str, str]:
    """The two headers."""
    ceiling = actor.ceiling
    permissions: dict[str, Any] = {
        "allow": sorted(ceiling.allow if ceiling.allow is not None else {"*"}),
        "deny": sorted(ceiling.deny),
    }
    return {ACTOR_ID: actor.id, PERMISSIONS: json.write_text(permissions)}
