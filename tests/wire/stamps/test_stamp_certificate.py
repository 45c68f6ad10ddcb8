"""The certificate of a caller, as a trusted proxy tells it."""

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.people.identity import StatedContext
from carnet.errors import MalformedCallerContext
from carnet.wire.grammar.headers import Headers
from carnet.wire.stamps import ROWS
from carnet.wire.stamps.stamp import MAX_CERTIFICATE_BYTES, NOTHING, Stamped, Stamps

DER = Stamps(ROWS, certificate="client-cert")
OTHER = Stamps(ROWS, certificate="x-client")
HASH = hashlib.sha256(b"der").hexdigest()


def shown(stamps: Stamps, value: str) -> str | None:
    name = stamps.certificate or ""
    return stamps.certificate_of(Headers([(name.encode(), value.encode("latin-1"))]))


@given(st.binary(min_size=1, max_size=200))
def test_a_whole_certificate_is_known_by_its_fingerprint(der: bytes) -> None:
    expected = f"sha256:{hashlib.sha256(der).hexdigest()}"
    assert shown(DER, f":{base64.b64encode(der).decode()}:") == expected


def test_one_that_is_not_there_is_none() -> None:
    assert DER.certificate_of(Headers(())) is None
    assert Stamps(ROWS).certificate_of(Headers([(b"client-cert", b":YWJj:")])) is None
    assert shown(DER, "::") is None  # what proxies write of who shows none


@pytest.mark.parametrize("value", [":no base64:", "x" * (MAX_CERTIFICATE_BYTES + 1), "\x01"])
def test_one_that_is_none_is_refused(value: str) -> None:
    with pytest.raises(MalformedCallerContext):
        shown(DER, value)


@pytest.mark.parametrize(
    "value",
    [HASH, HASH.upper(), ":".join(HASH[at : at + 2] for at in range(0, 64, 2))],
)
def test_a_proxy_may_tell_the_fingerprint_alone(value: str) -> None:
    assert shown(OTHER, value) == f"sha256:{HASH}"


@pytest.mark.parametrize("value", ["CN=site.example,O=Site", "a" * 63, "a" * 65])
def test_or_its_subject_which_is_taken_as_it_stands(value: str) -> None:
    assert shown(OTHER, value) == value


def test_it_stands_beside_a_context_and_nowhere_else() -> None:
    headers = Headers([(b"x-client", b"CN=site")])
    stated = StatedContext(agent="a", host="https://site.example")
    found = OTHER.certified(Stamped((), None, stated), headers)
    assert found.context is not None
    assert found.context.certificate == "CN=site"
    assert OTHER.certified(NOTHING, headers) is NOTHING
    silent = Stamped((), None, stated)
    assert OTHER.certified(silent, Headers(())) is silent
