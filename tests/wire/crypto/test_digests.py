"""Content-Digest: which headers pass for a body, and how the others are refused."""

from base64 import b64encode
from hashlib import md5, sha256, sha512

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.errors import CarnetError, DigestInvalid, DigestMismatch
from carnet.wire.crypto.digests import MAX_BYTES, _check_any, check, write

BODY = b'{"hello": "world"}'
RIGHT = "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:"
LONG = f"sha-512=:{b64encode(sha512(BODY).digest()).decode()}:"
WRONG = write(b"another body")
WRONG_LONG = f"sha-512=:{b64encode(sha512(b'another body').digest()).decode()}:"
UNKNOWN = f"md5=:{b64encode(md5(BODY, usedforsecurity=False).digest()).decode()}:"


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (BODY, RIGHT),
        (b'{"hello": "world"}\n', "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:"),
        (b"", "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:"),
    ],
)
def test_the_header_is_the_sha_256_of_the_body(body: bytes, value: str) -> None:
    assert write(body) == value
    assert len(value) == 54


@pytest.mark.parametrize("size", [2047, 2048, 4094, 4095, 32 * 1024, 32 * 1024 + 1])
def test_the_digest_is_the_same_however_it_is_fed(size: int) -> None:
    body = bytes(number % 251 for number in range(size))
    assert write(body) == f"sha-256=:{b64encode(sha256(body).digest()).decode()}:"


@pytest.mark.parametrize(
    "value",
    [RIGHT, LONG, f"{RIGHT}, {LONG}", f"{LONG},{RIGHT}", f"{UNKNOWN}, {RIGHT}", f"  {RIGHT}  "],
)
def test_right_digests_pass(value: str) -> None:
    check(value, BODY)
    _check_any(value, BODY)


@pytest.mark.parametrize(
    ("body", "start", "end"),
    [
        (b'{"hello": "world"}', "WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm", "RwEmTHWXvJwew=="),
        (
            b'{"message": "good dog"}',
            "mEWXIS7MaLRuGgxOBdODa3xqM1XdEvxoYhvlCFJ41QJgJ",
            "ahq4l5aGgfLQ==",
        ),
    ],
)
def test_the_longer_digests_of_the_rfc_are_ours(body: bytes, start: str, end: str) -> None:
    value = b64encode(sha512(body).digest()).decode()
    assert value.startswith(start)
    assert value.endswith(end)
    check(f"sha-512=:{value}:", body)


@pytest.mark.parametrize("value", [WRONG, WRONG_LONG, f"{UNKNOWN}, {WRONG}"])
def test_a_digest_of_another_body_is_a_mismatch(value: str) -> None:
    with pytest.raises(DigestMismatch):
        check(value, BODY)


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        " ",
        UNKNOWN,
        f"{RIGHT}, {WRONG_LONG}",
        f"{WRONG}, {LONG}",
        f"{RIGHT}, {RIGHT}",
        f"{RIGHT}, {WRONG}",
        "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPF=:",  # bits left over
        "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE:",
        "sha-256=X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=",
        'sha-256="X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE="',
        "SHA-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:",
        f"{RIGHT};q=1",
        f"{RIGHT},",
        f"{RIGHT}\n",
        "sha-256=(:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:)",
        "sha-256",
        "sha-256=::",
        "sha-256=:AAAA:",
        f"{RIGHT}, md5=1",
        RIGHT + "," + " " * MAX_BYTES + LONG,
    ],
)
def test_what_is_not_a_digest_is_invalid(value: str | None) -> None:
    with pytest.raises(DigestInvalid):
        check(value, BODY)


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_a_header_passes_for_its_body_alone(body: bytes, other: bytes) -> None:
    check(write(body), body)
    _check_any(write(body), body)
    assert b64encode(sha256(body).digest()).decode() in write(body)
    if other != body:
        with pytest.raises(DigestMismatch):
            check(write(body), other)


@given(st.text("sha-256512=:, ;X48E9qOo\x00é", max_size=70))
def test_whatever_the_header_it_passes_or_is_refused_as_invalid(value: str) -> None:
    try:
        check(value, BODY)
    except CarnetError as refusal:
        assert isinstance(refusal, DigestInvalid | DigestMismatch)  # noqa: PT017
