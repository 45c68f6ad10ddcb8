"""Keys, and sealing what must be readable again: the one door to PyNaCl.

Law. A sealed text opens only under the label it was sealed for: rows cannot be exchanged.
"""

from typing import Final

from nacl.exceptions import CryptoError
from nacl.secret import SecretBox
from nacl.utils import random

KEY_BYTES: Final = SecretBox.KEY_SIZE


class Unsealable(Exception):
    """The bytes were not sealed with this key for this label."""


def draw_key() -> bytes:
    """A new key, from the library's own generator."""
    return random(KEY_BYTES)


class Seal:
    """A key that seals and opens (XSalsa20-Poly1305)."""

    __slots__ = ("_box",)

    def __init__(self, key: bytes) -> None:
        self._box = SecretBox(key)

    def seal(self, text: str, *, label: str) -> bytes:
        """The sealed form of a text."""
        return bytes(self._box.encrypt(_labelled(label, text)))

    def open(self, sealed: bytes, *, label: str) -> str:
        """The text again."""
        try:
            message = self._box.decrypt(sealed)
        except (CryptoError, ValueError):
            raise Unsealable(label) from None
        head = _labelled(label, "")
        if not message.startswith(head):
            raise Unsealable(label)
        return message[len(head) :].decode()


def _labelled(label: str, text: str) -> bytes:
    return label.encode() + b"\x00" + text.encode()
