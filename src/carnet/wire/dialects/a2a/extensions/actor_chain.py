"""The actor chain that is proposed for A2A (issue 2028): for whom, through whom a call is made.

    actorChain [{actor, scopes, proof_ref}, ...] on messages, and again on the task

Law 1. A made-up chain narrows as well as a true one: it gives nobody a right, here or at a callee.
Law 2. What came is shown. What is told on a task or sent on is our own: those whom we know.
Law 3. `proof_ref` is the digest of the document that the last hop signed, so that whoever has the
       document can compare.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

from carnet.wire.dialects.a2a.extensions.row import (
    ExtensionClaim,
    ExtensionRow,
    Metadata,
    OutboundFacts,
    PayloadBroken,
    TaskFacts,
    items,
    members,
    payload,
    shown,
    word,
)

KEY: Final = "actorChain"
MOST_HOPS: Final = 32
MOST_SCOPES: Final = 64


def read(found: Sequence[Metadata], last_depth: int) -> ExtensionClaim | None:
    """The chain that a caller tells, oldest first; also as an object that holds it as `hops`."""
    del last_depth
    value = payload(found, KEY)
    if value is None:
        return None
    hops = value.get("hops") if isinstance(value, dict) else value
    each = [members(hop) for hop in items(hops, MOST_HOPS)]
    for hop in each:
        scopes = items(hop.get("scopes") or [], MOST_SCOPES)
        if not all(isinstance(scope, str) for scope in scopes):
            raise PayloadBroken("has a scope that is not a text")
        word(hop, "proof_ref", 512)
    return ExtensionClaim(shown={"hops": shown(each), "narrows": _narrows(each)})


def _narrows(hops: Sequence[dict[str, Any]]) -> bool:
    """Whether no hop claims more than the one before it: a check of the story, not a proof."""
    scopes = [set(hop["scopes"]) for hop in hops if isinstance(hop.get("scopes"), list)]
    return all(below <= above for above, below in pairwise(scopes))


def _chain(
    on_behalf_of: Sequence[str], path: Sequence[str], scopes: Sequence[str], proof: str | None
) -> dict[str, Any]:
    hops: list[dict[str, Any]] = [{"actor": name} for name in (*reversed(on_behalf_of), *path)]
    if not hops:
        return {}
    if scopes:
        hops[-1]["scopes"] = list(scopes)
    if proof:
        hops[-1]["proof_ref"] = proof
    return {KEY: hops[-MOST_HOPS:]}


def send(sending: OutboundFacts) -> dict[str, Any]:
    """Whom a call is made for, and through whom."""
    carnet = sending.carnet
    return _chain(carnet.on_behalf_of, carnet.path, sending.scopes, sending.proof)


def task(facts: TaskFacts) -> dict[str, Any]:
    """Whom a task was run for, and through whom."""
    if not (facts.on_behalf_of or facts.path):  # of nearly every task
        return {}
    return _chain(facts.on_behalf_of, facts.path, (), facts.proof)


ACTOR_CHAIN: Final = ExtensionRow(
    name="actor_chain",
    keys=(KEY,),
    reads="the hops that a caller tells, with their scopes and references to proofs",
    writes="whom a call is for and through whom it came, with the digest of the signed document",
    believes="nothing: it gives no right and names no caller",
    read=read,
    task=task,
    send=send,
)
