"""Ed25519 keys and signatures: the one module that uses PyNaCl's curve.

Law 1. A public key has one spelling and lies in the main group. The 14 encodings of small order,
       which verify signatures that nobody made, those beyond the field, and points with a part of
       small order are refused where a key enters: `check_public_key`.
Law 2. `holds` answers and never raises, whatever the bytes.
Law 3. A signature has one form: 64 bytes whose second half is below the order of the group.
"""

from base64 import b64encode
from collections.abc import Callable
from typing import Final

from nacl.bindings import (
    crypto_core_ed25519_is_valid_point,
    crypto_sign,
    crypto_sign_open,
    crypto_sign_seed_keypair,
)
from nacl.exceptions import BadSignatureError

from carnet.errors import KeyInvalid
from carnet.wire.grammar.structured import StructuredInvalid, read_base64

KEY_BYTES: Final = 32
SEED_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64

_TEXT_CHARACTERS: Final = 44  # 32 bytes in base64


def check_public_key(raw: bytes) -> bytes:
    """The key itself, if signatures may be verified with it; `KeyInvalid` otherwise."""
    if len(raw) != KEY_BYTES:
        raise KeyInvalid("it is not 32 bytes long")
    if not crypto_core_ed25519_is_valid_point(raw):
        raise KeyInvalid("it is not a point of the main group in its canonical form")
    return raw


def read_public_key(text: str) -> bytes:
    """The key that a card or an operator wrote in standard padded base64."""
    if len(text) != _TEXT_CHARACTERS:
        raise KeyInvalid("it is not 32 bytes in padded base64")
    try:
        raw = read_base64(text)
    except StructuredInvalid:
        raise KeyInvalid("it is not canonical base64") from None
    return check_public_key(raw)


def write_public_key(raw: bytes) -> str:
    """The key in standard padded base64."""
    return b64encode(raw).decode()


def public_of(seed: bytes) -> bytes:
    """The public key that belongs to a seed."""
    return _expand(seed)[0]


def signer(seed: bytes) -> Callable[[bytes], bytes]:
    """A function that signs; the seed is expanded once, which is half of the work."""
    secret = _expand(seed)[1]

    def sign_with_key(message: bytes) -> bytes:
        return crypto_sign(message, secret)[:SIGNATURE_BYTES]

    return sign_with_key


def sign(seed: bytes, message: bytes) -> bytes:
    """The 64 bytes that only the holder of the seed can make for this message."""
    return signer(seed)(message)


def holds(public: bytes, message: bytes, signature: bytes) -> bool:
    """Whether the signature was made for this message with the key that belongs to `public`."""
    # The library reads 32 and 64 bytes wherever it is pointed: the lengths are ours to see to.
    if len(public) != KEY_BYTES or len(signature) != SIGNATURE_BYTES:
        return False
    try:
        crypto_sign_open(signature + message, public)
    except BadSignatureError:
        return False
    return True


def _expand(seed: bytes) -> tuple[bytes, bytes]:
    if len(seed) != SEED_BYTES:
        raise ValueError("a seed is 32 bytes long")
    return crypto_sign_seed_keypair(seed)
