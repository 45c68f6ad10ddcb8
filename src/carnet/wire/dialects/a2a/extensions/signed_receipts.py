"""Receipts of `signed-receipts/v1`, beside ours on a task: JCS, Ed25519, a key by its did:web.

    {schema, issuer, subject_card, task_id, claims, register, issued_at, content_id,
     signature {alg, kid, signer_public_key, sig}}

Law 1. `content_id` is the SHA-256 of the canonical form of all but itself and the signature; the
       signature is over the canonical form of all but itself.
Law 2. The key stands in the receipt. That it is the issuer's is shown by the issuer's DID document,
       and by nothing else: what is read is a claim, however well it is signed.
Law 3. `holds(issue(...))`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from carnet.wire.crypto import ed25519
from carnet.wire.dialects.a2a.extensions.row import (
    AnswerClaims,
    ExtensionRow,
    Metadata,
    TaskFacts,
    members,
    needed,
    short,
    shown,
)
from carnet.wire.grammar import jcs

KEY: Final = "signed-receipts/v1"
RECEIPTS_URI: Final = "https://councilof.ai/a2a/extensions/signed-receipts/v1"
SCHEMA: Final = "a2a.signed-receipt/0.1"
REGISTER: Final = "What the issuer says it did, and when. It certifies nothing."

MOST_LEVELS: Final = 8
MOST_BYTES: Final = 16 * 1024

_HEX_KEY: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
_HEX_SIGNATURE: Final = re.compile(r"[0-9a-f]{128}", re.ASCII)


def issue(
    *,
    domain: str,
    kid: str,
    public: bytes,
    sign: Callable[[bytes], bytes],
    task: str,
    card: str,
    claims: Sequence[Mapping[str, Any]],
    at: str,
) -> dict[str, Any]:
    """The receipt of a task.

    Args:
        domain: Ours.
        kid: The name of the key that signs.
        public: That key.
        sign: Signs with it.
        task: The id of the task.
        card: The address of the card of the agent that answered.
        claims: What is said of the answer.
        at: When, in UTC.
    """
    body: dict[str, Any] = {
        "schema": SCHEMA,
        "issuer": f"did:web:{domain}",
        "subject_card": card,
        "task_id": task,
        "claims": [dict(each) for each in claims],
        "register": REGISTER,
        "issued_at": at,
    }
    body["content_id"] = sha256(_canonical(body)).hexdigest()
    signature = {
        "alg": "Ed25519",
        "kid": f"did:web:{domain}#{kid}",
        "signer_public_key": public.hex(),
        "sig": sign(_canonical(body)).hex(),
    }
    return body | {"signature": signature}


def is_wanted(form: Mapping[str, Any]) -> bool:
    """Whether a request that was written so has activated it."""
    return RECEIPTS_URI in form.get("extensions", ())


def holds(receipt: Mapping[str, Any]) -> bool:
    """Whether a receipt is whole and signed with the key that stands in it."""
    body = {name: value for name, value in receipt.items() if name != "signature"}
    bare = {name: value for name, value in body.items() if name != "content_id"}
    signature = members(receipt.get("signature"))
    key, sig = signature.get("signer_public_key"), signature.get("sig")
    if not (isinstance(key, str) and _HEX_KEY.fullmatch(key)):
        return False
    if not (isinstance(sig, str) and _HEX_SIGNATURE.fullmatch(sig)):
        return False
    try:
        is_whole = body.get("content_id") == sha256(_canonical(bare)).hexdigest()
        signed = _canonical(body)
    except jcs.NotCanonical:
        return False
    return is_whole and ed25519.holds(bytes.fromhex(key), signed, bytes.fromhex(sig))


def _canonical(value: dict[str, Any]) -> bytes:
    return jcs.canonical(value, max_levels=MOST_LEVELS)


def answer(metadata: Metadata, currency: str) -> AnswerClaims | None:
    """The receipt of whoever we called, as a claim."""
    del currency
    value = metadata.get(KEY)
    if value is None:
        return None
    receipt = short(members(value), MOST_BYTES)
    parts = {
        "issuer": needed(receipt, "issuer"),
        "task_id": needed(receipt, "task_id"),
        "kid": needed(members(receipt.get("signature")), "kid", 512),
        "is_whole": holds(receipt),
    }
    return AnswerClaims(claimed={"signed_receipts": shown(parts)})


def task(facts: TaskFacts) -> dict[str, Any]:
    """The receipt of a task, where one was issued."""
    return {} if facts.statement is None else {KEY: dict(facts.statement)}


SIGNED_RECEIPTS: Final = ExtensionRow(
    name="signed_receipts",
    uris=(RECEIPTS_URI,),
    keys=(KEY,),
    reads="the receipt of an agent that we called",
    writes="a receipt in this form, beside ours, with an answer whose caller has asked for it",
    believes="nothing: that it is whole says that one key signed it, not whose key it is",
    task=task,
    answer=answer,
)
