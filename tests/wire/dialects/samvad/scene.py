"""Requests of the protocol as they arrive, signed with a key that everybody here knows."""

import json
from typing import Any

from msgspec.structs import replace

from carnet.core.call import Claim
from carnet.core.chain.turn import Turn
from carnet.core.people.identity import Account, Mode
from carnet.wire.crypto import digests, ed25519, signatures
from carnet.wire.crypto.signatures import Request
from carnet.wire.dialects import samvad
from carnet.wire.grammar.headers import Headers
from carnet.wire.stamps import STAMPS
from carnet.wire.stamps.stamp import MINIMUM

SEED = b"\x02" * 32
PUBLIC = ed25519.public_of(SEED)
SHORT = "/agent/message"
NAMED = "/agents/critic/agent/message"
CREATED = 1_776_146_908

TURN = Turn(
    n=7,
    agent="echo",
    run="trace-1",
    turn="span-1",
    payer=Account("here", "alice"),
    created=1_776_146_908_000_000,
)


def fields(**changed: Any) -> dict[str, Any]:
    """The fields of an envelope that is right; one that is given as `...` is left out."""
    whole = {
        "from": "agent://sender.com",
        "to": "agent://receiver.com",
        "skill": "review-code",
        "mode": "sync",
        "nonce": "a1b2c3d4e5f6",
        "timestamp": "2026-04-11T10:00:00Z",
        "traceId": "trace-1",
        "spanId": "span-1",
        **{name.rstrip("_"): value for name, value in changed.items()},
    }
    return {name: value for name, value in whole.items() if value is not ...}


def encoded(value: object) -> bytes:
    return json.dumps(value).encode()


def lines(headers: dict[str, str]) -> Headers:
    return Headers([(name.encode(), value.encode()) for name, value in headers.items()])


def unsigned(body: bytes, path: str = SHORT, query: str | None = None, **more: str) -> Request:
    headers = {"content-type": "application/json", "content-digest": digests.write(body)}
    named = {name.replace("_", "-"): value for name, value in more.items()}
    return Request(
        method="POST",
        authority="receiver.com",
        path=path,
        query=query,
        headers=lines(headers | named),
    )


def signed(
    request: Request, *, path: str | None = None, components: Any = MINIMUM, **given: Any
) -> Request:
    """The request with a signature; `path` is signed in the place of its own."""
    seen = request if path is None else replace(request, path=path)
    given = {"keyid": "key-2", "created": CREATED, "newline": True, **given}
    added = signatures.write(
        seen, components=components, sign=lambda base: ed25519.sign(SEED, base), **given
    )
    return replace(
        request,
        headers=Headers([*request.headers.raw, *lines(added).raw]),
    )


def read(
    request: Request,
    body: bytes,
    *,
    mode: Mode = "sync",
    short_path: str = SHORT,
) -> Claim:
    return samvad.read_claim(
        request, body, agent="critic", mode=mode, short_path=short_path, stamps=STAMPS
    )


def holds(claim: Claim) -> bool:
    """Whether the signature holds for one of the texts that it may cover."""
    proof = claim.proof
    assert proof
    return any(ed25519.holds(PUBLIC, base, proof.signature) for base in proof.bases)
