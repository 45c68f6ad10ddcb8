"""The published signatures of SAMVAD and the facts about its SDK, where their files are at hand."""

import json
import os
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from carnet.errors import CarnetError, DigestInvalid, SignatureInvalid, SignatureMissing
from carnet.wire import digests, ed25519
from carnet.wire.headers import Headers
from carnet.wire.signatures import Request, base, read, write
from tests.wire.messages import SAMVAD

VECTORS = os.environ.get("CARNET_VECTORS")
BODY = b"{}"

pytestmark = pytest.mark.skipif(VECTORS is None, reason="CARNET_VECTORS names no folder")


def fields(*lines: tuple[str, str]) -> Headers:
    return Headers([(name.encode(), value.encode("latin-1")) for name, value in lines])


def request(headers: Headers, *, method: str, path: str) -> Request:
    return Request(method=method, authority="a.example", path=path, headers=headers)


def load(name: str) -> Any:
    return json.loads((Path(VECTORS or "") / name).read_text())


def facts(area: str) -> list[dict[str, Any]]:
    return [fact for fact in load("samvad_facts.json") if fact["area"] == area]


# Requests that were altered after they were signed and that the Python SDK takes all the same,
# because it writes its own parameters anew instead of reading those it was sent. R8: we verify the
# received text, as the other SDK does.
ALTERED = {
    "alg param changed to rsa",
    "component list changed",
    "extra param expires",
    "param order created first",
    "space after semicolon",
}


def test_the_published_signatures_of_samvad_hold() -> None:
    published = load("samvad_signatures.json")
    public = ed25519.read_public_key(published["publicKeyB64"])
    assert len(published["cases"]) == 3
    for case in published["cases"]:
        sent = fields(*case["expectedResult"].items())
        body = case["bodyJson"].encode()
        digests.check(sent.get("content-digest"), body)
        assert digests.write(body) == sent.get("content-digest")
        found = read(sent)
        made = request(sent, method=case["method"], path=case["path"])
        assert ed25519.holds(public, base(found, made, newline=True), found.signature)
        assert not ed25519.holds(public, base(found, made), found.signature)


def test_digests_are_those_of_the_sdk() -> None:
    assert len(facts("content_digest")) == 4
    for fact in facts("content_digest"):
        assert digests.write(fact["input"].encode()) == fact["expected"]


def test_signatures_are_those_of_the_sdk_byte_for_byte() -> None:
    assert len(facts("sign")) == 4
    for fact in facts("sign"):
        told, expected = fact["input"], fact["expected"]
        seed = b64decode(told["seed_b64"])
        assert ed25519.write_public_key(ed25519.public_of(seed)) == told["public_b64"]
        digest = digests.write(told["body"].encode())
        assert digest == expected["content_digest"]
        signed: list[bytes] = []

        def remember(message: bytes, seed: bytes = seed, signed: list[bytes] = signed) -> bytes:
            signed.append(message)
            return ed25519.sign(seed, message)

        written = write(
            request(fields(("content-digest", digest)), method=told["method"], path=told["path"]),
            components=SAMVAD,
            keyid=told["kid"],
            created=told["created"],
            sign=remember,
            newline=True,
        )
        assert written == {name: expected[name] for name in ("signature-input", "signature")}
        assert signed == [expected["signature_base"].encode()]


def test_we_verify_what_the_sdk_verifies_but_for_what_was_altered() -> None:
    assert len(facts("verify")) == 22
    seen = set()
    for fact in facts("verify"):
        told = fact["input"]
        lines = [(name.lower(), value) for name, value in told["headers"].items()]
        if told["change"] in ALTERED:
            seen.add(told["change"])
            assert fact["expected"]
            assert not sdk_holds(told, lines)
        else:
            assert sdk_holds(told, lines) is fact["expected"], told["change"]
    assert seen == ALTERED


def sdk_holds(told: dict[str, Any], lines: list[tuple[str, str]]) -> bool:
    """What the dialect judges of a signature: one of that label, of those components."""
    sent = fields(*lines)
    try:
        digests.check(sent.get("content-digest"), BODY)
        found = read(sent)
        made = base(found, request(sent, method=told["method"], path=told["path"]), newline=True)
    except CarnetError as refusal:
        assert isinstance(refusal, SignatureInvalid | SignatureMissing | DigestInvalid)  # noqa: PT017
        return False
    public = ed25519.read_public_key(told["public_b64"])
    return found.label == "sig1" and ed25519.holds(public, made, found.signature)
