"""A signed request as a Claim: its digest, its envelope and its signature, each in its form.

Law 1. The body is looked at after its digest was found to be right: a byte that was changed on the
       way is told as that, not as broken JSON.
Law 2. What was asked, for the journal and for comparing repeats, is the skill, the payload and the
       mode; never the nonce, the time or a credential.
"""

from hashlib import sha256
from typing import Final

from carnet.core.call import Ask, Claim
from carnet.core.chain.carnet import Mark
from carnet.core.messages.events import Message
from carnet.core.people.identity import CHAT, Mode
from carnet.core.people.proof import Proof
from carnet.errors import CarnetError
from carnet.wire.crypto import digests, signatures
from carnet.wire.crypto.signatures import Request
from carnet.wire.dialects.samvad.envelope import Envelope, read_envelope
from carnet.wire.dialects.samvad.proof import read_proof
from carnet.wire.grammar import json
from carnet.wire.stamps.stamp import Stamps, read_trace

NAME: Final = "samvad"
CONTENT_DIGEST: Final = "content-digest"


def read_claim(
    request: Request,
    body: bytes,
    *,
    agent: str,
    mode: Mode,
    short_path: str,
    stamps: Stamps,
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
    """
    presented = signatures.read(request.headers)
    digests.check(", ".join(request.headers.get_all(CONTENT_DIGEST)), body)
    envelope = read_envelope(body, mode=mode)
    try:
        proof = read_proof(presented, request, envelope, short_path=short_path, stamps=stamps)
        return _claim(request, envelope, proof, agent)
    except CarnetError as error:
        error.run = envelope.trace_id
        raise


def _claim(request: Request, envelope: Envelope, proof: Proof, agent: str) -> Claim:
    asked = json.canonical(
        {"skill": envelope.skill, "payload": envelope.payload, "mode": envelope.mode}
    )
    return Claim(
        dialect=NAME,
        agent=agent,
        ask=_ask(envelope),
        digest=sha256(asked).digest(),
        request=asked,
        marks=(_mark(envelope),),
        trace=read_trace(request.headers),
        proof=proof,
        is_task=envelope.mode == "async",
        callback=envelope.callback_url,
        delegation=envelope.delegation_token,
    )


def _ask(envelope: Envelope) -> Ask:
    text = envelope.payload.get("text") if envelope.skill == CHAT.id else None
    return Ask(
        messages=(Message("user", (text,)),) if isinstance(text, str) else (),
        stream=envelope.mode == "stream",
        skill=envelope.skill,
        payload=envelope.payload,
    )


def _mark(envelope: Envelope) -> Mark:
    """What the trace says about the chain. The protocol counts no depth."""
    return Mark(
        stamp="samvad",
        run=envelope.trace_id,
        turn=envelope.span_id,
        parent_turn=envelope.parent_span_id,
        counts=False,
    )
