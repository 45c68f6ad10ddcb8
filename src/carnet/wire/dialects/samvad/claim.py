"""A signed request as a Claim: its digest, its envelope and its signature, each in its form.

Its signature may have one of two forms (R8, R9).

    samvad   no tag. At least the protocol's three components, label sig1, alg ed25519, a `created`.
             The time and the nonce are those of the body.
    carnet   tag "carnet". The whole profile, with a nonce of its own; the time is `created`. The
             travel document beside it is read by `wire.travel`.

Law 1. The body is looked at after its digest was found to be right: a byte that was changed on the
       way is told as that, not as broken JSON.
Law 2. What was asked, for the journal and for comparing repeats, is the skill, the payload and the
       mode; never the nonce, the time or a credential.
Law 3. What may have been signed is kept as the literal text that was received: the base of the
       protocol ends with a newline and that of RFC 9421 does not, and its clients sign the path
       after the prefix of an agent. One of these must hold; nothing is rebuilt.
Law 4. In the protocol's form no header that tells the chain or an identity may stand beside the
       envelope, and no query; in ours they are covered.
Law 5. Nothing is verified here: that takes a key.
"""

import re
from hashlib import sha256
from typing import Any, Final

from carnet.core.call import Ask, Claim
from carnet.core.chain.carnet import Mark
from carnet.core.messages.events import Message
from carnet.core.people.identity import CHAT, Mode
from carnet.core.people.proof import SECOND_US, Proof
from carnet.errors import (
    CarnetError,
    HeaderNotSigned,
    InsufficientCoverage,
    InvalidRequest,
    NonceInvalid,
    SignatureExpired,
    SignatureInvalid,
)
from carnet.wire.crypto import digests, signatures
from carnet.wire.crypto.signatures import Presented, Request
from carnet.wire.dialects.samvad.envelope import NONCE, Envelope, read_envelope, skim
from carnet.wire.grammar import json
from carnet.wire.stamps.stamp import (
    MINIMUM,
    PROFILE,
    Stamps,
    check_coverage,
    protected_names,
    read_trace,
)

LABEL: Final = "sig1"
ALGORITHM: Final = "ed25519"
TAG: Final = "carnet"

KEYID: Final = re.compile(r"[ -~]{1,128}", re.ASCII)


def read_proof(
    presented: Presented, request: Request, envelope: Envelope, *, short_path: str, stamps: Stamps
) -> Proof:
    """The proof of a request, from its signature and what its body says.

    Args:
        presented: The one signature of the request.
        request: What it may cover.
        envelope: The body.
        short_path: The path without the prefix of the agent, which the protocol's clients sign.
        stamps: Whose fields must not stand outside the signature.
    """
    if presented.keyid is None or KEYID.fullmatch(presented.keyid) is None:
        raise SignatureInvalid("the keyid is missing or not one")
    created = presented.created
    if created is None or created < 0:
        raise SignatureInvalid("it does not say when it was created")
    if presented.expires is not None and presented.expires <= created:
        raise SignatureExpired
    if presented.tag is None:
        bases = bases_of(presented, request, short_path, stamps)
        nonce, at = envelope.nonce, envelope.at
    else:
        bases = _whole(presented, request, stamps)
        nonce, at = _own_nonce(presented), created * SECOND_US
    return Proof(
        profile="samvad" if presented.tag is None else "carnet",
        sender=envelope.sender,
        keyid=presented.keyid,
        signature=presented.signature,
        bases=bases,
        nonce=nonce,
        at=at,
        expires=presented.expires,
        recipient=envelope.recipient,
        auth_scheme=envelope.auth_scheme,
        auth=envelope.auth,
        is_plain=presented.components == MINIMUM,
    )


def bases_of(
    presented: Presented, request: Request, short_path: str, stamps: Stamps
) -> tuple[bytes, ...]:
    """The texts of the protocol's own form, the likeliest first."""
    if presented.label != LABEL or presented.alg != ALGORITHM:  # samvad:signature:form
        raise SignatureInvalid("the label or the algorithm is not the protocol's")
    if not set(MINIMUM) <= set(presented.components):
        raise InsufficientCoverage
    if request.query is not None or protected_names(
        request.headers, stamps
    ):  # samvad:signature:alone
        raise HeaderNotSigned
    # samvad:signature:path
    paths = (short_path,) if short_path == request.path else (short_path, request.path)
    bases = signatures.bases(presented, request, paths=paths, newline=True)
    return (*bases, *[base[:-1] for base in bases])  # samvad:signature:newline


def _whole(presented: Presented, request: Request, stamps: Stamps) -> tuple[bytes, ...]:
    """The one text of our own profile."""
    if presented.tag != TAG:  # an algorithm that is named is ours: `signatures` reads no other
        raise SignatureInvalid("the tag is not ours")
    has_query = request.query is not None
    check_coverage(
        presented.components, PROFILE, request.headers, has_query=has_query, stamps=stamps
    )
    return (signatures.base(presented, request),)


def _own_nonce(presented: Presented) -> str:
    if presented.nonce is None or NONCE.fullmatch(presented.nonce) is None:
        raise NonceInvalid
    return presented.nonce


NAME: Final = "samvad"
CONTENT_DIGEST: Final = "content-digest"


def foretold(request: Request, body: bytes, *, short_path: str, stamps: Stamps) -> Proof | None:
    """The proof of a request by what its body says of its sender, before the body is parsed.

    None where that cannot be told: then it is no envelope, and `read_claim` says why.
    """
    presented = signatures.read(request.headers)
    digests.check(", ".join(request.headers.get_all(CONTENT_DIGEST)), body)
    envelope = skim(body)
    if envelope is None:
        return None
    return read_proof(presented, request, envelope, short_path=short_path, stamps=stamps)


def read_claim(
    request: Request,
    body: bytes,
    *,
    agent: str,
    mode: Mode,
    short_path: str,
    stamps: Stamps,
    correlation: str | None = None,
    path: bytes = b"",
) -> Claim:
    """Read a request of the protocol.

    A refusal carries the trace id as its run, once the envelope could be read.

    Args:
        request: What the signature may cover.
        body: The whole body as received.
        agent: The agent that the path or the host names; empty for the default one.
        mode: The mode that the endpoint serves.
        short_path: The path without the prefix of the agent: "/agent/message".
        stamps: Whose fields must not stand outside the signature.
        correlation: What the answer calls the request.
        path: That it came by.
    """
    presented = signatures.read(request.headers)
    digests.check(", ".join(request.headers.get_all(CONTENT_DIGEST)), body)
    envelope = read_envelope(body, mode=mode)
    try:
        proof = read_proof(presented, request, envelope, short_path=short_path, stamps=stamps)
        return _claim(request, envelope, proof, agent, correlation, path)
    except CarnetError as error:
        error.run = envelope.trace_id
        raise


def _claim(
    request: Request,
    envelope: Envelope,
    proof: Proof,
    agent: str,
    correlation: str | None,
    path: bytes,
) -> Claim:
    asked = json.canonical(
        {"skill": envelope.skill, "payload": envelope.payload, "mode": envelope.mode}
    )
    mark = Mark(  # what the trace says about the chain; the protocol counts no depth
        stamp="samvad",
        run=envelope.trace_id,
        turn=envelope.span_id,
        parent_turn=envelope.parent_span_id,
        counts=False,
    )
    return Claim(
        dialect=NAME,
        agent=agent,
        ask=_ask(envelope.skill, envelope.payload, envelope.mode),
        digest=sha256(asked).digest(),
        request=asked,
        marks=(mark,),
        trace=read_trace(request.headers),
        proof=proof,
        is_task=envelope.mode == "async",
        callback=envelope.callback_url,
        delegation=envelope.delegation_token,
        correlation=correlation,
        path=path,
    )


def read_asked(request: bytes) -> Ask:
    """What a recorded request asked."""
    asked = json.read_object(request)
    skill, payload, mode = (asked.get(name) for name in ("skill", "payload", "mode"))
    if not isinstance(skill, str) or not isinstance(payload, dict):
        raise InvalidRequest("skill", "is not kept")
    return _ask(skill, payload, mode)


def _ask(skill: str, payload: dict[str, Any], mode: object) -> Ask:
    text = payload.get("text") if skill == CHAT.id else None
    return Ask(
        messages=(Message("user", (text,)),) if isinstance(text, str) else (),
        stream=mode == "stream",
        skill=skill,
        payload=payload,
    )
