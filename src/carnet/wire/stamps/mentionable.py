"""The Mentionable stamp: the agent chain that rides in the metadata of a message.

Law 1. Absent is a direct call. What is there must be whole: `1 <= hop <= max_hops`.
Law 2. `is_final` is computed here; what a peer says about it is not believed.
Law 3. A peer can lower our `max_hops` and never raise it.
Law 4. One request tells one chain, however many spellings it uses for it.
Not here: where in a body the metadata lies. The body dialect hands it over.
"""

from typing import Final

from msgspec import Struct
from msgspec.structs import force_setattr

from carnet.core.chain.carnet import Carnet, Mark
from carnet.errors import ChainMismatch, MalformedCallerContext
from carnet.wire.grammar.headers import Headers
from carnet.wire.grammar.mentionable import (
    AGENT_CHAIN,
    RECIPIENT_CAPABILITIES,
    find,
    objects,
    place,
    whole,
)
from carnet.wire.stamps.stamp import Metadata, Reading, Stamp

DEFAULT_MAX_HOPS: Final = 4  # mentionable:chain:default

_NAME: Final = place(AGENT_CHAIN)
_PATHS: Final = ((AGENT_CHAIN,), (RECIPIENT_CAPABILITIES, AGENT_CHAIN))


class AgentChain(Struct, frozen=True):
    """Where in a capped chain a turn stands. `is_final` follows from the others."""

    hop: int  # 1 is the first chained turn
    max_hops: int
    is_final: bool = False  # recomputed, whatever was given

    def __post_init__(self) -> None:
        """Refuse a chain that cannot be."""
        if not 1 <= self.hop <= self.max_hops:
            raise MalformedCallerContext(_NAME, "has a hop outside 1 to max_hops")
        force_setattr(self, "is_final", self.hop == self.max_hops)  # mentionable:chain:is-final

    @property
    def remaining(self) -> int:
        """How many hops may still follow."""
        return self.max_hops - self.hop


def read_agent_chain(*metadata: object, max_hops: int) -> Mark | None:
    """Read the chain from the metadata of a message, and of its request if that has some too.

    Nested and dotted spellings count alike, also inside the recipient's capabilities.

    Args:
        *metadata: Each an object as JSON gave it; None for none.
        max_hops: The most hops a chain may have here.
    """
    chains = [_read(value) for path in _PATHS for value in find(metadata, *path)]
    if not chains:
        return None
    chain = chains[0]
    if any(other != chain for other in chains):
        raise ChainMismatch("two different agent chains")
    return Mark(
        stamp="mentionable",
        depth=chain.hop,
        last_depth=min(max_hops, chain.max_hops),  # mentionable:chain:clamp
    )


def _read(value: object) -> AgentChain:
    members = objects(value, _NAME)
    if not isinstance(members.get("is_final", False), bool):
        raise MalformedCallerContext(_NAME, "has an is_final that is neither true nor false")
    hop, max_hops = whole(members.get("hop")), whole(members.get("max_hops"))
    if hop is None or max_hops is None:
        raise MalformedCallerContext(_NAME, "does not give hop and max_hops in whole numbers")
    return AgentChain(hop, max_hops)


def next_chain(carnet: Carnet, *, default: int) -> dict[str, object]:
    """Write the chain of a call out of this turn; refuses when no hop is left.

    Args:
        carnet: The document of the turn that calls, not yet that of the callee.
        default: The most hops of a chain that begins here.
    """
    carnet.refuse_if_final(default)  # mentionable:chain:refuse
    chain = AgentChain(carnet.depth + 1, carnet.bound(default))
    return {"hop": chain.hop, "max_hops": chain.max_hops, "is_final": chain.is_final}


def render_agent_chain(chain: AgentChain) -> str:
    """Say to a model where in the chain it stands."""  # mentionable:chain:cue
    if chain.is_final:
        return (
            f"You are responding as the FINAL hop ({chain.hop} of {chain.max_hops}). "
            "Synthesize a conclusion — do not invite another agent."
        )
    hops = "1 hop" if chain.remaining == 1 else f"{chain.remaining} hops"
    return (
        f"You are responding as hop {chain.hop} of a chain capped at {chain.max_hops} hops. "
        f"[{hops} remaining.]"
    )


def _read_stamp(headers: Headers, metadata: Metadata, /, *, last_depth: int) -> Reading | None:
    del headers
    mark = read_agent_chain(*metadata, max_hops=last_depth)
    return None if mark is None else Reading(mark=mark)


# Not written toward peers: no body that leaves has metadata to hold it.
STAMP: Final = Stamp(
    name="mentionable",
    in_metadata=True,
    last_depth=DEFAULT_MAX_HOPS,
    read=_read_stamp,
)
