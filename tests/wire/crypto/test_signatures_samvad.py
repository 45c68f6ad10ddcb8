"""The signatures of the `samvad` package: those it was recorded with, and any that it makes."""

from base64 import b64encode

import samvad
from hypothesis import given
from hypothesis import strategies as st

from carnet.wire.crypto import digests, ed25519
from carnet.wire.crypto.signatures import Request, base, read
from carnet.wire.grammar.headers import Headers
from tests.interop.recorded.recorded import facts_of

SEED = bytes(range(7, 39))
PUBLIC = ed25519.public_of(SEED)


def holds(headers: dict[str, str], *, method: str, path: str, public: bytes, newline: bool) -> bool:
    sent = Headers([(name.encode(), value.encode("latin-1")) for name, value in headers.items()])
    found = read(sent)
    request = Request(method=method, authority="a.example", path=path, headers=sent)
    return ed25519.holds(public, base(found, request, newline=newline), found.signature)


def test_the_recorded_signatures_hold_with_a_newline_at_the_end_and_not_without() -> None:
    recorded = facts_of("sign")
    assert len(recorded) == 4
    for fact in recorded:
        sent, made = fact["input"], fact["expected"]
        digests.check(made["content_digest"], sent["body"].encode())
        headers = {
            "content-digest": made["content_digest"],
            "signature-input": made["signature-input"],
            "signature": made["signature"],
        }
        public = ed25519.read_public_key(sent["public_b64"])
        request = {"method": sent["method"].upper(), "path": sent["path"], "public": public}
        assert holds(headers, **request, newline=True)
        assert not holds(headers, **request, newline=False)


@given(
    st.binary(max_size=100),
    st.sampled_from(("/agent/message", "/agent/task", "/agent/stream")),
    st.integers(0, 2**33),
)
def test_any_signature_of_the_package_holds_with_a_newline_at_the_end_and_not_without(
    body: bytes, path: str, created: int
) -> None:
    headers = {"content-digest": samvad.content_digest(body)}
    private = b64encode(SEED).decode()
    headers |= samvad.sign_request("POST", path, headers, private, "key-1", created)
    digests.check(headers["content-digest"], body)
    assert holds(headers, method="POST", path=path, public=PUBLIC, newline=True)
    assert not holds(headers, method="POST", path=path, public=PUBLIC, newline=False)
