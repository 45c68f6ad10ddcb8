"""A credential in memory.

Law 1. Its repr, str and format are `***`; it cannot be encoded, pickled or copied into a record.
Law 2. The value leaves through `reveal()` alone, which is easy to search for.
"""

import hmac
from typing import Never, final


@final
class Secret:
    """Bytes that must appear in no log, journal, error or page."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        """Take the credential as it came, byte for byte (latin-1 text)."""
        self._value = value

    def reveal(self) -> str:
        """Give the credential to the one place that sends or hashes it."""
        return self._value

    def __eq__(self, other: object) -> bool:
        """Compare in constant time."""
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._value.encode(), other._value.encode())

    __hash__ = None  # type: ignore[assignment]  # a secret is not a dictionary key

    def __repr__(self) -> str:
        """Never the value."""
        return "***"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        """Never the value, whatever the format asks for."""
        return "***"

    def __reduce__(self) -> Never:
        """Refuse to be pickled or deep-copied."""
        raise TypeError("a Secret cannot be serialised")
