"""The delegation chain of cA2A: `https://agentrust-io.com/extensions/ca2a/v0.1`.

    URI/delegation_chain [{credential_id, issuer, subject, scope, depth, parent_id, signature, ...}]
    URI/requested_capability, URI/record_id, URI/parent_record_hash

Law 1. It is evidence of what others claim. Rights come from our own delegations alone.
Law 2. Whether each link is signed by whom it names is told beside it: the key stands in the chain
       itself, so that shows who speaks, not that anybody may.
Law 3. The deepest link is how deep the chain says it is. It only raises our depth.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

from carnet.wire.crypto import ed25519
from carnet.wire.dialects.a2a.extensions.row import (
    ExtensionClaim,
    ExtensionRow,
    Metadata,
    OutboundFacts,
    foreign_depth,
    foreign_mark,
    items,
    members,
    needed,
    payload,
    short,
    shown,
    word,
)
from carnet.wire.grammar import jcs

CA2A_URI: Final = "https://agentrust-io.com/extensions/ca2a/v0.1"
CHAIN: Final = f"{CA2A_URI}/delegation_chain"
CAPABILITY: Final = f"{CA2A_URI}/requested_capability"
RECORD: Final = f"{CA2A_URI}/record_id"
ABOVE: Final = f"{CA2A_URI}/parent_record_hash"
KEYS: Final = (CHAIN, CAPABILITY, RECORD, ABOVE)

MOST_LINKS: Final = 16
MOST_LINK_BYTES: Final = 4096

_KEY: Final = re.compile(r"(?:ed25519:)?([0-9a-f]{64})", re.ASCII)
_SIGNATURE: Final = re.compile(r"[0-9a-f]{128}", re.ASCII)


def read(found: Sequence[Metadata], last_depth: int) -> ExtensionClaim | None:
    """What a caller shows of the delegations that it acts by."""
    given = {key: value for key in KEYS if (value := payload(found, key)) is not None}
    if not given:
        return None
    given_links = items(given.get(CHAIN, []), MOST_LINKS)
    links = [short(members(link), MOST_LINK_BYTES) for link in given_links]
    depths = [foreign_depth(link, "depth", CHAIN) for link in links]
    parts = [_summary(link) for link in links]
    names = {"requested_capability": CAPABILITY, "record_id": RECORD, "parent_record_hash": ABOVE}
    words = {name: word(given, key) for name, key in names.items() if key in given}
    deepest = max([depth for depth in depths if depth is not None], default=None)
    return ExtensionClaim(
        mark=foreign_mark("ca2a", deepest, last_depth),
        shown={"links": shown(parts), "joined": _is_joined(links)} | words,
    )


def _summary(link: dict[str, Any]) -> dict[str, Any]:
    names = ("credential_id", "issuer", "subject", "scope", "depth", "parent_id")
    parts = {name: link[name] for name in names if name in link}
    return parts | {"signed": _is_signed(link)}


def _is_signed(link: dict[str, Any]) -> bool:
    """Whether a link is signed with the key that it names as its issuer."""
    key, signature = _KEY.fullmatch(needed(link, "issuer")), link.get("signature")
    if key is None or not isinstance(signature, str) or not _SIGNATURE.fullmatch(signature):
        return False
    unsigned = {name: value for name, value in link.items() if name != "signature"}
    try:
        signed = jcs.canonical(unsigned, max_levels=4)
    except jcs.NotCanonical:
        return False
    return ed25519.holds(bytes.fromhex(key[1]), signed, bytes.fromhex(signature))


def _is_joined(links: Sequence[dict[str, Any]]) -> bool:
    """Whether each link is said to come from the one before it."""
    return all(
        below.get("parent_id") == above.get("credential_id") for above, below in pairwise(links)
    )


def send(sending: OutboundFacts) -> dict[str, Any]:
    """By what we find a call again, and the digest of the one that it is made in."""
    if sending.record is None:
        return {}
    return {RECORD: sending.record, ABOVE: sending.above}


CA2A: Final = ExtensionRow(
    name="ca2a",
    uris=(CA2A_URI,),
    keys=KEYS,
    reads="the links of a delegation, their scopes, and whether each is signed by its issuer",
    writes="the id of the record of a call, and the digest of the one above it",
    believes="the depth, which only raises ours; the rest is evidence that is shown",
    read=read,
    send=send,
)
