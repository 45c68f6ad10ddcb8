"""Where an A2A agent is called: which of the interfaces of its card we choose.

Law 1. What is 1.0 comes before what is 0.3; among equals the order of the card counts. Of 0.3,
       JSON-RPC comes first: how it writes files over HTTP+JSON its own implementers read otherwise.
Law 2. gRPC, and bindings and versions that we do not know, are left out.
"""

from typing import Final, Literal

from msgspec import Struct

from carnet.wire.dialects.a2a.card import A2aCard

Binding = Literal["JSONRPC", "HTTP+JSON"]
Version = Literal["1.0", "0.3"]

JSON_RPC: Final = "JSONRPC"
HTTP_JSON: Final = "HTTP+JSON"
CURRENT: Final = "1.0"
LEGACY: Final = "0.3"

_VERSIONS: Final[dict[str, Version]] = {CURRENT: CURRENT, LEGACY: LEGACY}
_BINDINGS: Final[dict[str, Binding]] = {JSON_RPC: JSON_RPC, HTTP_JSON: HTTP_JSON}


class Interface(Struct, frozen=True, kw_only=True):
    """One way to call an agent."""

    url: str
    binding: Binding = JSON_RPC
    version: Version = CURRENT
    tenant: str | None = None

    @property
    def is_legacy(self) -> bool:
        """Whether 0.3 is spoken there."""
        return self.version == LEGACY


def interfaces_of(card: A2aCard) -> tuple[Interface, ...]:
    """The interfaces that we can call, the best first."""
    found = [
        Interface(
            url=each.url,
            binding=_BINDINGS[each.binding],
            version=_VERSIONS[each.version],
            tenant=each.tenant,
        )
        for each in card.interfaces
        if each.binding in _BINDINGS and each.version in _VERSIONS
    ]
    return tuple(sorted(found, key=_rank))


def _rank(each: Interface) -> int:
    return each.is_legacy + (each.is_legacy and each.binding == HTTP_JSON)
