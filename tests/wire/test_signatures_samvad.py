"""The published signatures of SAMVAD, where their file is at hand."""

import pytest

from carnet.wire import digests, ed25519
from carnet.wire.headers import Headers
from carnet.wire.signatures import Request, base, read
from tests.wire.samvad.recorded import VECTORS, load

pytestmark = pytest.mark.skipif(VECTORS is None, reason="CARNET_VECTORS names no folder")


def fields(*lines: tuple[str, str]) -> Headers:
    return Headers([(name.encode(), value.encode("latin-1")) for name, value in lines])


def request(headers: Headers, *, method: str, path: str) -> Request:
    return Request(method=method, authority="a.example", path=path, headers=headers)


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
