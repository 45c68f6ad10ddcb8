"""The Mentionable stamp: the agent chain that rides in the metadata of a message.

Beside it: what whoever reads the answer can do, which rides in the same metadata.

Law 1. Absent is a direct call. What is there must be whole: `1 <= hop <= max_hops`.
Law 2. `is_final` is computed here; what a peer says about it is not believed.
Law 3. A peer can lower our `max_hops` and never raise it.
Law 4. One request tells one chain, however many spellings it uses for it.
Not here: where in a body the metadata lies. The body dialect hands it over.
"""

import re
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import force_setattr

from carnet.core.chain.capabilities import NONE, Capabilities
from carnet.core.chain.carnet import Carnet, Mark
from carnet.errors import ChainMismatch, MalformedCallerContext
from carnet.wire.grammar import json
from carnet.wire.grammar.headers import Headers
from carnet.wire.grammar.mentionable import (
    AGENT_CHAIN,
    NAMESPACE,
    RECIPIENT_CAPABILITIES,
    find,
    objects,
    place,
    read_member,
    whole,
)
from carnet.wire.stamps.stamp import Leaving, Metadata, Reading, Stamp, Written

DEFAULT_MAX_HOPS: Final = 4  # mentionable:chain:default

MENTION_RELAY: Final = "mention_relay"
MOST_CAPABILITIES_BYTES: Final = 4096  # of what is told on to whoever is called

_NAME: Final = place(AGENT_CHAIN)
_RELAY: Final = place(RECIPIENT_CAPABILITIES, MENTION_RELAY)
_KIND: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
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
    stated = [_read(value) for path in _PATHS for value in find(metadata, *path)]
    if not stated:
        return None
    chain = stated[0][0]
    if any(other != chain for other, _ in stated):
        raise ChainMismatch("two different agent chains")
    claimed = [is_final for _, is_final in stated if is_final not in {None, chain.is_final}]
    return Mark(
        stamp="mentionable",
        depth=chain.hop,
        last_depth=min(max_hops, chain.max_hops),  # mentionable:chain:clamp
        # mentionable:chain:is-final-logged
        doubt=f"is_final {claimed[0]} at hop {chain.hop} of {chain.max_hops}" if claimed else None,
    )


def _read(value: object) -> tuple[AgentChain, bool | None]:
    """A chain, and what it says itself about being final."""
    members = objects(value, _NAME)
    if not isinstance(members.get("is_final", False), bool):
        raise MalformedCallerContext(_NAME, "has an is_final that is neither true nor false")
    hop, max_hops = whole(members.get("hop")), whole(members.get("max_hops"))
    if hop is None or max_hops is None:
        raise MalformedCallerContext(_NAME, "does not give hop and max_hops in whole numbers")
    return AgentChain(hop, max_hops), members.get("is_final")


def read_capabilities(*metadata: object) -> Capabilities | None:
    """Read what whoever reads the answer can do; None where nothing is told.

    The relay is an object with its kind, or the kind alone: both are written.
    """
    if not any(metadata):
        return None
    value = read_member(metadata, RECIPIENT_CAPABILITIES)
    relays = list(find(metadata, RECIPIENT_CAPABILITIES, MENTION_RELAY))
    if value is None and not relays:
        return None
    stated = dict(objects({} if value is None else value, place(RECIPIENT_CAPABILITIES)))
    if len(json.write(stated)) > MOST_CAPABILITIES_BYTES:
        reason = f"has more than {MOST_CAPABILITIES_BYTES} bytes"
        raise MalformedCallerContext(place(RECIPIENT_CAPABILITIES), reason)
    kinds = [_relay(each) for each in relays]
    if any(other != kinds[0] for other in kinds):
        raise MalformedCallerContext(_RELAY, "is told twice and differently")
    kind, beside = kinds[0] if kinds else (NONE, {})
    others = {name: stated[name] for name in stated if name not in {AGENT_CHAIN, MENTION_RELAY}}
    return Capabilities(mention_relay=kind, relay_members=beside, others=others)


def _relay(value: object) -> tuple[str, dict[str, Any]]:
    """The kind of a relay, and what else is said of it."""
    members = {"kind": value} if isinstance(value, str) else objects(value, _RELAY)
    kind = members.get("kind")
    if not isinstance(kind, str) or not _KIND.fullmatch(kind):
        raise MalformedCallerContext(_RELAY, "has no kind of 1 to 64 letters, digits, '_' or '-'")
    return kind, {name: members[name] for name in members if name != "kind"}


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


def cue_of(carnet: Carnet, default: int) -> str | None:
    """What a model is told of its place in a chain; nothing where no agent has called it.

    `default` is the last depth of a chain that no stamp bounds.
    """
    hop = carnet.depth
    if not hop:
        return None
    return render_agent_chain(AgentChain(hop, max(hop, carnet.bound(default))))


def _read_stamp(headers: Headers, metadata: Metadata, /, *, last_depth: int) -> Reading | None:
    del headers
    if not any(metadata):
        return None
    mark = read_agent_chain(*metadata, max_hops=last_depth)
    return None if mark is None else Reading(mark=mark)


def _write_stamp(carnet: Carnet, leaving: Leaving, /) -> Written:
    """The chain of the callee, whose document the carnet is, and what the reader can do."""
    hop = carnet.depth
    if hop == 0:
        return Written()
    chain = AgentChain(hop, max(hop, carnet.bound(DEFAULT_MAX_HOPS)))
    written = {"hop": chain.hop, "max_hops": chain.max_hops, "is_final": chain.is_final}
    members: dict[str, Any] = {AGENT_CHAIN: written}  # mentionable:chain:written
    stated = leaving.capabilities
    if stated is not None:  # mentionable:relay:override
        relay = {"kind": stated.mention_relay, **stated.relay_members}
        members[RECIPIENT_CAPABILITIES] = {
            **stated.others,
            MENTION_RELAY: relay,
            AGENT_CHAIN: written,
        }
    return Written(metadata={NAMESPACE: members})


STAMP: Final = Stamp(
    name="mentionable",
    in_metadata=True,
    last_depth=DEFAULT_MAX_HOPS,
    read=_read_stamp,
    write=_write_stamp,
    toward="a2a",  # the one body that has metadata to hold it
)
