"""Ed25519: which keys may enter, which signatures hold. The curve is drawn here a second time."""

from base64 import b64encode
from hashlib import sha512

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from carnet.errors import KeyInvalid
from carnet.wire.crypto.ed25519 import (
    check_public_key,
    holds,
    public_of,
    read_public_key,
    sign,
    signer,
    write_public_key,
)
from tests.support.signing.weak_keys import SMALL_ORDER

SEED = b"\x02" * 32
PUBLIC = public_of(SEED)
MESSAGE = b'"@method": POST'
SIGNATURE = sign(SEED, MESSAGE)

FORGERY = b"\x01" + b"\x00" * 63

# ----------------------------------------------------- the curve, in as few lines as it takes

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
ROOT = pow(2, (P - 1) // 4, P)

Point = tuple[int, int]


def add(a: Point, b: Point) -> Point:
    k = D * a[0] * b[0] * a[1] * b[1] % P
    x = (a[0] * b[1] + b[0] * a[1]) * pow(1 + k, -1, P)
    y = (a[1] * b[1] + a[0] * b[0]) * pow(1 - k, -1, P)
    return x % P, y % P


def times(n: int, point: Point) -> Point:
    total = (0, 1)
    while n:
        if n & 1:
            total = add(total, point)
        point, n = add(point, point), n >> 1
    return total


def encode(point: Point) -> bytes:
    return (point[1] | (point[0] & 1) << 255).to_bytes(32, "little")


def decode(raw: bytes) -> Point:
    number = int.from_bytes(raw, "little")
    y, odd = number % 2**255, number >> 255
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * ROOT % P
    assert x * x % P == square
    return (x if x & 1 == odd else -x % P), y


def verifies_with_cofactor(public: bytes, message: bytes, signature: bytes) -> bool:
    """The equation alone, as a generous implementation checks it."""
    base = decode((4 * pow(5, -1, P) % P).to_bytes(32, "little"))
    hashed = int.from_bytes(sha512(signature[:32] + public + message).digest(), "little") % L
    left = times(8 * int.from_bytes(signature[32:], "little"), base)
    return left == times(8, add(decode(signature[:32]), times(hashed, decode(public))))


EIGHTH = decode(
    bytes.fromhex(SMALL_ORDER[4])
)  # a point of order eight; its multiples are all small


def test_the_curve_drawn_here_is_the_curve() -> None:
    assert times(8, EIGHTH) == (0, 1) != times(4, EIGHTH)
    assert encode(decode(PUBLIC)) == PUBLIC
    assert times(L, decode(PUBLIC)) == (0, 1)
    assert verifies_with_cofactor(PUBLIC, MESSAGE, SIGNATURE)
    assert len({encode(times(n, EIGHTH)).hex() for n in range(8)} & set(SMALL_ORDER)) == 8


# ------------------------------------------------------------------------------------------ keys


@pytest.mark.parametrize("key", SMALL_ORDER)
def test_a_key_of_small_order_is_refused_and_its_forgery_does_not_hold(key: str) -> None:
    raw = bytes.fromhex(key)
    with pytest.raises(KeyInvalid):
        check_public_key(raw)
    with pytest.raises(KeyInvalid):
        read_public_key(b64encode(raw).decode())
    assert not any(holds(raw, b"%d" % n, FORGERY) for n in range(64))


@pytest.mark.parametrize("part", range(1, 8))
def test_a_key_of_mixed_order_is_refused(part: int) -> None:
    for seed in range(4):
        point = decode(public_of(bytes([seed]) * 32))
        check_public_key(encode(point))
        with pytest.raises(KeyInvalid):
            check_public_key(encode(add(point, times(part, EIGHTH))))


@pytest.mark.parametrize("y", [*range(P, 2**255)])
@pytest.mark.parametrize("odd", [0, 1])
def test_a_key_beyond_the_field_is_refused(y: int, odd: int) -> None:
    with pytest.raises(KeyInvalid):
        check_public_key((y | odd << 255).to_bytes(32, "little"))


def test_a_key_that_is_no_point_is_refused() -> None:
    with pytest.raises(KeyInvalid):
        check_public_key((2).to_bytes(32, "little"))


@pytest.mark.parametrize("raw", [b"", PUBLIC[:31], PUBLIC + b"\x00", PUBLIC * 2])
def test_a_key_of_another_length_is_refused(raw: bytes) -> None:
    with pytest.raises(KeyInvalid):
        check_public_key(raw)
    with pytest.raises(KeyInvalid):
        read_public_key(b64encode(raw).decode())
    assert not holds(raw, MESSAGE, SIGNATURE)


def test_a_good_key_is_read_as_it_is_written() -> None:
    assert read_public_key(write_public_key(PUBLIC)) == check_public_key(PUBLIC) == PUBLIC
    assert write_public_key(PUBLIC) == "gTl3Dqh9F19Wo1Rmw0x+zMuNipG07jeiXfYPW4/Js5Q="


@pytest.mark.parametrize(
    "text",
    [
        "gTl3Dqh9F19Wo1Rmw0x+zMuNipG07jeiXfYPW4/Js5Q",
        "gTl3Dqh9F19Wo1Rmw0x-zMuNipG07jeiXfYPW4_Js5Q=",
        "gTl3Dqh9F19Wo1Rmw0x+zMuNipG07jeiXfYPW4/Js5R=",
        "gTl3Dqh9F19Wo1Rmw0x+zMuNipG07jeiXfYPW4/Js5Q=\n",
        " gTl3Dqh9F19Wo1Rmw0x+zMuNipG07jeiXfYPW4/Js5Q",
        "gTl3Dqh9F19Wo1Rmw0x+zMuNipG07jeiXfYPW4/Js5Q==",
        "gTl3Dqh9F19Wo1Rmw0x+zMuNipG07jeiXfYPW4/Js5é=",
        "813977" * 8,
        "",
    ],
)
def test_a_key_has_one_spelling(text: str) -> None:
    with pytest.raises(KeyInvalid):
        read_public_key(text)


@pytest.mark.parametrize("seed", [b"", b"\x02" * 31, b"\x02" * 33])
def test_a_seed_of_another_length_is_a_mistake(seed: bytes) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        public_of(seed)
    with pytest.raises(ValueError, match="32 bytes"):
        sign(seed, MESSAGE)


# ------------------------------------------------------------------------------------ signatures


def test_the_published_signatures_come_out() -> None:  # RFC 8032, section 7.1
    for seed, public, message, signature in (
        (
            "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
            "",
            (
                "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
                "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
            ),
        ),
        (
            "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
            "72",
            (
                "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
                "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
            ),
        ),
    ):
        assert public_of(bytes.fromhex(seed)).hex() == public
        assert sign(bytes.fromhex(seed), bytes.fromhex(message)).hex() == signature
        assert holds(*map(bytes.fromhex, (public, message, signature)))


def test_a_signature_whose_second_half_is_not_below_the_order_does_not_hold() -> None:
    half = int.from_bytes(SIGNATURE[32:], "little")
    for factor in range(1, 16):
        if half + factor * L < 2**256:
            other = SIGNATURE[:32] + (half + factor * L).to_bytes(32, "little")
            assert verifies_with_cofactor(PUBLIC, MESSAGE, other)
            assert not holds(PUBLIC, MESSAGE, other)
    for number in (L, L - 1, L + 1, 2**252, 2**255 - 1, 2**256 - 1):
        assert not holds(PUBLIC, MESSAGE, SIGNATURE[:32] + number.to_bytes(32, "little"))


@pytest.mark.parametrize("part", range(1, 8))
def test_a_signature_whose_first_half_has_a_part_of_small_order_does_not_hold(part: int) -> None:
    first = encode(add(decode(SIGNATURE[:32]), times(part, EIGHTH)))
    assert not holds(PUBLIC, MESSAGE, first + SIGNATURE[32:])


@pytest.mark.parametrize("first", SMALL_ORDER)
def test_a_signature_whose_first_half_is_of_small_order_does_not_hold(first: str) -> None:
    # s = h * a with R of small order satisfies the equation with its cofactor, key in hand.
    raw = bytes.fromhex(first)
    secret = bytearray(sha512(SEED).digest()[:32])
    secret[0] &= 248
    secret[31] = secret[31] & 63 | 64
    hashed = int.from_bytes(sha512(raw + PUBLIC + MESSAGE).digest(), "little") % L
    half = hashed * int.from_bytes(secret, "little") % L
    assert not holds(PUBLIC, MESSAGE, raw + half.to_bytes(32, "little"))


@pytest.mark.parametrize(
    "signature",
    [b"", SIGNATURE[:63], SIGNATURE + b"\x00", SIGNATURE[1:], SIGNATURE * 2, b"\x00" * 64, FORGERY],
)
def test_a_signature_of_another_length_or_of_nothing_does_not_hold(signature: bytes) -> None:
    assert not holds(PUBLIC, MESSAGE, signature)


def test_no_single_bit_may_differ() -> None:
    assert holds(PUBLIC, MESSAGE, SIGNATURE)
    whole = PUBLIC + SIGNATURE + MESSAGE
    for bit in range(len(whole) * 8):
        flipped = (int.from_bytes(whole, "big") ^ 1 << bit).to_bytes(len(whole), "big")
        assert not holds(flipped[:32], flipped[96:], flipped[32:96])


@given(st.binary(min_size=32, max_size=32), st.binary(max_size=100))
def test_another_implementation_agrees(seed: bytes, message: bytes) -> None:
    other = Ed25519PrivateKey.from_private_bytes(seed)
    assert other.public_key().public_bytes_raw() == public_of(seed)
    assert other.sign(message) == sign(seed, message) == signer(seed)(message)
    assert holds(public_of(seed), message, other.sign(message))
    with pytest.raises(InvalidSignature):
        Ed25519PublicKey.from_public_bytes(public_of(seed)).verify(
            sign(seed, message), message + b"."
        )
    assert not holds(public_of(seed), message + b".", sign(seed, message))


@given(st.binary(max_size=40), st.binary(max_size=40), st.binary(max_size=70))
def test_whatever_the_bytes_there_is_an_answer(
    public: bytes, message: bytes, signature: bytes
) -> None:
    assert not holds(public, message, signature)
    try:
        check_public_key(public)
    except KeyInvalid as refusal:
        assert refusal.code == "key_invalid"  # noqa: PT017
