"""Bytes in the alphabet of Bitcoin, as keys and proofs of credentials are written (multibase `z`).

Law 1. `read(write(x)) == x`, and a text has one value: no other alphabet, no sign beside it.
Law 2. What is longer than a key or a signature needs is refused before it is looked at.
"""

from typing import Final

from carnet.wire.crypto.ed25519 import check_public_key

BASE58: Final = "z"
MOST_CHARACTERS: Final = 128

_ALPHABET: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_DIGITS: Final = {sign: value for value, sign in enumerate(_ALPHABET)}
_ED25519: Final = b"\xed\x01"  # what a key of that kind begins with


def read(text: str) -> bytes:
    """The bytes; ValueError for what is no text of this form."""
    if not text.startswith(BASE58) or len(text) > MOST_CHARACTERS:
        raise ValueError("not in base58btc")
    number, digits = 0, text[1:]
    for sign in digits:
        if sign not in _DIGITS:
            raise ValueError("not in base58btc")
        number = number * 58 + _DIGITS[sign]
    zeros = len(digits) - len(digits.lstrip(_ALPHABET[0]))
    return bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8)


def write(raw: bytes) -> str:
    """The text."""
    number, signs = int.from_bytes(raw), ""
    while number:
        number, digit = divmod(number, 58)
        signs = _ALPHABET[digit] + signs
    zeros = len(raw) - len(raw.lstrip(b"\0"))
    return BASE58 + _ALPHABET[0] * zeros + signs


def read_key(text: str) -> bytes:
    """A public key of Ed25519 as a `Multikey` has it; KeyInvalid for a weak one, or ValueError."""
    raw = read(text)
    if not raw.startswith(_ED25519):
        raise ValueError("not a key of Ed25519")
    return check_public_key(raw.removeprefix(_ED25519))


def write_key(public: bytes) -> str:
    """The same."""
    return write(_ED25519 + public)
