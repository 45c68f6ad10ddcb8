"""Keys, and sealing what must be readable again: the one module that seals with PyNaCl.

Law 1. What is sealed opens only under the label it was sealed for: rows cannot be exchanged.
Law 2. A secret that is derived tells nothing of the key, nor of one derived for another use.
Law 3. What is long is sealed beside the event loop: ten megabytes take 60 ms.
"""

import asyncio
import hmac
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable
from typing import Final, TypeVar

from nacl.exceptions import CryptoError
from nacl.secret import SecretBox
from nacl.utils import random

T = TypeVar("T")

KEY_BYTES: Final = SecretBox.KEY_SIZE
LONG: Final = 1024 * 1024  # bytes: about 6 ms


class Unsealable(Exception):
    """The bytes were not sealed with this key for this label."""


async def beside(size: int, seal: Callable[[], T]) -> T:
    """What sealing or opening so many bytes gives; in a thread if there are many."""
    return await asyncio.to_thread(seal) if size > LONG else seal()


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
        return self.seal_bytes(text.encode(), label=label)

    def open(self, sealed: bytes, *, label: str) -> str:
        """The text again."""
        return self.open_bytes(sealed, label=label).decode()

    def seal_bytes(self, data: bytes, *, label: str) -> bytes:
        """The sealed form of anything."""
        return bytes(self._box.encrypt(_head(label) + data))

    def open_bytes(self, sealed: bytes, *, label: str) -> bytes:
        """What was sealed again."""
        try:
            message = self._box.decrypt(sealed)
        except (CryptoError, ValueError):
            raise Unsealable(label) from None
        head = _head(label)
        if not message.startswith(head):
            raise Unsealable(label)
        return bytes(message[len(head) :])


class WordSeal:
    """Seals words that travel as text, and come back."""

    __slots__ = ("_seal",)

    def __init__(self, key: bytes) -> None:
        self._seal = Seal(key)

    def seal(self, word: str, *, label: str) -> str:
        """The sealed form of a word, of plain signs."""
        return urlsafe_b64encode(self._seal.seal(word, label=label)).decode()

    def open(self, sealed: str, *, label: str) -> str:
        """The word again. ValueError for what was not sealed here, or for another label."""
        try:
            return self._seal.open(b64decode(sealed, altchars=b"-_", validate=True), label=label)
        except Unsealable:
            raise ValueError(label) from None


def _head(label: str) -> bytes:
    return label.encode() + b"\x00"


def derive(key: bytes, use: str, name: str) -> bytes:
    """A secret of 32 bytes for one use and one name; the same for ever while the key is."""
    return hmac.digest(key, _head(f"carnet {use}") + name.encode(), "sha256")
