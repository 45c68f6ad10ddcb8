"""Signatures of RSA with PKCS #1 v1.5 and SHA-256 (RS256): verified, never made.

Most issuers of access tokens sign with it. Nothing here is secret, so that nothing has to take the
same time whatever it is.

Law 1. A key has at least 2048 bits and an exponent of 65537; any other is refused where it enters.
Law 2. The whole padded text is built and compared, so that no part of it is parsed.
Law 3. `holds` answers and never raises, whatever the bytes.
"""

from hashlib import sha256
from typing import Final

from msgspec import Struct

from carnet.errors import KeyInvalid

EXPONENT: Final = 65537
LEAST_BITS: Final = 2048
MOST_BITS: Final = 8192

_SHA256: Final = bytes.fromhex("3031300d060960864801650304020105000420")


class RsaKey(Struct, frozen=True):
    """A public key."""

    modulus: int
    size: int  # of the modulus, in bytes


def public_key(modulus: bytes, exponent: bytes) -> RsaKey:
    """A key that signatures may be verified with; `KeyInvalid` otherwise."""
    number = int.from_bytes(modulus)
    if int.from_bytes(exponent) != EXPONENT:
        raise KeyInvalid("its exponent is not 65537")
    if not LEAST_BITS <= number.bit_length() <= MOST_BITS or not number & 1:
        raise KeyInvalid(f"it has not {LEAST_BITS} to {MOST_BITS} bits")
    return RsaKey(number, (number.bit_length() + 7) // 8)


def holds(key: RsaKey, message: bytes, signature: bytes) -> bool:
    """Whether the signature was made for this message with the key that belongs to `key`."""
    if len(signature) != key.size:
        return False
    given = int.from_bytes(signature)
    if given >= key.modulus:
        return False
    text = _SHA256 + sha256(message).digest()
    padded = b"\x00\x01" + b"\xff" * (key.size - len(text) - 3) + b"\x00" + text
    return pow(given, EXPONENT, key.modulus).to_bytes(key.size) == padded
