"""Requests that are signed as Envoys does: who signed, for which host, over all that counts."""

from typing import Any

import pytest
from msgspec.structs import replace

from carnet.errors import (
    CarnetError,
    DigestMismatch,
    HeaderNotSigned,
    InsufficientCoverage,
    KeyInvalid,
    NonceInvalid,
    SignatureInvalid,
    TimestampInvalid,
)
from carnet.wire.crypto import digests, ed25519, signatures
from carnet.wire.crypto.signatures import Request
from carnet.wire.dialects.a2a.extensions.envoys import (
    is_presented,
    read_key,
    read_proof,
    sender_of,
    write,
    write_key,
)
from carnet.wire.grammar.headers import Headers
from carnet.wire.stamps import STAMPS

SEED = bytes(range(32))
PUBLIC = ed25519.public_of(SEED)
BODY = b'{"jsonrpc":"2.0"}'
KEYID = "https://agents.globex.example/keys/critic"
ME = "agent://acme.example"
NOW = 1_800_000_000
NAMES = ("@method", "@path", "content-digest", "@authority")


def sign(message: bytes) -> bytes:
    return ed25519.sign(SEED, message)


def bare(query: str | None = None, **fields: str) -> Request:
    raw = [(b"content-digest", digests.write(BODY).encode())]
    raw += [(name.replace("_", "-").encode(), value.encode()) for name, value in fields.items()]
    return Request(
        method="POST", authority="acme.example", path="/a2a", query=query, headers=Headers(raw)
    )


def with_fields(request: Request, fields: dict[str, str]) -> Request:
    raw = [
        *request.headers.raw,
        *((name.encode(), value.encode()) for name, value in fields.items()),
    ]
    return replace(request, headers=Headers(raw))


def signed(request: Request, **more: Any) -> Request:
    given: dict[str, Any] = {"keyid": KEYID, "created": NOW, "nonce": "nonce-0001"} | more
    return with_fields(request, write(request, sign=sign, stamps=STAMPS, **given))


def by_hand(request: Request, **more: Any) -> Request:
    given: dict[str, Any] = {"components": NAMES, "keyid": KEYID, "created": NOW}
    fields = signatures.write(request, sign=sign, **(given | {"nonce": "nonce-0001"} | more))
    return with_fields(request, fields)


def test_what_is_signed_is_the_proof_of_the_host_of_its_key() -> None:
    request = signed(bare())
    proof = read_proof(request, BODY, STAMPS, recipient=ME)
    assert (proof.sender, proof.keyid) == ("agent://agents.globex.example", KEYID)
    assert (proof.nonce, proof.at, proof.recipient) == ("nonce-0001", NOW * 1_000_000, ME)
    assert ed25519.holds(PUBLIC, proof.bases[0], proof.signature)
    assert is_presented(request.headers)
    assert not is_presented(bare().headers)
    assert read_proof(request, None, STAMPS, recipient=ME) == proof


def test_the_host_the_query_and_the_chain_are_covered() -> None:
    request = signed(bare("a=1", x_a2a_hop="2", x_tangle_runid="r"))
    covered = request.headers.get("signature-input") or ""
    for name in (*NAMES, "@query", "x-a2a-hop", "x-tangle-runid"):
        assert f'"{name}"' in covered
    read_proof(request, BODY, STAMPS, recipient=ME)


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (by_hand(bare(), components=NAMES[:3]), InsufficientCoverage),
        (by_hand(bare(), components=("@method", "@path", "@authority")), InsufficientCoverage),
        (by_hand(bare(x_a2a_hop="2")), HeaderNotSigned),
        (by_hand(bare("a=1")), HeaderNotSigned),
        (by_hand(bare(), nonce=None), NonceInvalid),
        (by_hand(bare(), nonce="short"), NonceInvalid),
        (by_hand(bare(), tag="carnet"), SignatureInvalid),
        (by_hand(bare(), keyid="k-1"), SignatureInvalid),
        (by_hand(bare(), keyid="http://globex.example/k"), SignatureInvalid),
        (by_hand(bare(), keyid="https://GLOBEX.example/k"), SignatureInvalid),
        (by_hand(bare(), keyid="https://user@globex.example/k"), SignatureInvalid),
        (by_hand(bare(), keyid="https://a..example/k"), SignatureInvalid),
    ],
)
def test_what_is_not_in_the_form_is_refused(request_: Request, error: type[CarnetError]) -> None:
    with pytest.raises(error):
        read_proof(request_, BODY, STAMPS, recipient=ME)


def test_a_signature_without_a_time_is_refused() -> None:
    request = signed(bare())
    undated = (request.headers.get("signature-input") or "").replace(f";created={NOW}", "")
    fields = {"signature": request.headers.get("signature") or "", "signature-input": undated}
    with pytest.raises(TimestampInvalid):
        read_proof(with_fields(bare(), fields), BODY, STAMPS, recipient=ME)


def test_another_body_is_refused() -> None:
    with pytest.raises(DigestMismatch):
        read_proof(signed(bare()), b"{}", STAMPS, recipient=ME)


def test_a_request_without_a_digest_is_not_signed() -> None:
    request = Request(method="POST", authority="a.example", path="/", headers=Headers([]))
    with pytest.raises(InsufficientCoverage):
        write(request, keyid=KEYID, created=NOW, nonce="nonce-0001", sign=sign, stamps=STAMPS)


def test_the_page_of_a_key_is_read_in_both_forms() -> None:
    assert read_key(write_key("critic@globex.example", PUBLIC)) == PUBLIC
    assert read_key({"address": "a", "public_key": PUBLIC.hex()}) == PUBLIC
    method = {"id": f"{KEYID}#1", "publicKeyHex": PUBLIC.hex()}
    assert read_key({"id": "did:web:a", "verificationMethod": [method]}) == PUBLIC
    both = {"verificationMethod": [method, method | {"id": "other", "publicKeyHex": "00" * 32}]}
    assert read_key(both, f"{KEYID}#1") == PUBLIC


@pytest.mark.parametrize(
    "page",
    [
        *(None, [], {}, {"public_key": 7}, {"public_key": "AAAA"}, {"public_key": "00" * 32}),
        {"verificationMethod": "x"},
        {"verificationMethod": []},
        {"verificationMethod": [{}, {}]},
        {"verificationMethod": [{"publicKeyHex": "zz"}]},
    ],
)
def test_a_page_without_one_usable_key_is_refused(page: object) -> None:
    with pytest.raises(KeyInvalid):
        read_key(page)


def test_a_sender_is_the_host_whatever_the_path() -> None:
    assert sender_of("https://globex.example") == "agent://globex.example"
    assert sender_of("https://globex.example/.well-known/did.json#k") == "agent://globex.example"
