"""An agent needs something before it goes on, and what it is answered.

Law 1. An unknown kind is kept as it came and never read as success.
Law 2. The secret `state` is single use and is compared hashed; only its holder can resolve.
"""

from hashlib import sha256
from typing import Literal

from msgspec import Struct

KINDS = (
    "approval",
    "payment",
    "consent",
    "sign_in",
    "forbidden",
    "rate_limited",
    "legal",
    "unavailable",
    "input",
)


class Interrupt(Struct, frozen=True, kw_only=True):
    """What is needed, from whom, until when."""

    id: str
    state: str
    kind: str
    message: str
    url: str | None = None
    amount: int | None = None
    currency: str | None = None
    retry_after: int | None = None
    expires_at: str | None = None
    origin: str | None = None

    def __post_init__(self) -> None:
        """Refuse an interrupt that nobody could resolve or understand."""
        if not self.kind or not self.message:
            raise ValueError("an interrupt has a kind and a message")

    @property
    def is_known(self) -> bool:
        """Whether we know what the kind asks for."""
        return self.kind in KINDS


def hash_state(state: str) -> bytes:
    """What is kept of a secret state, to compare it with. It has 128 bits or more of its own."""
    return sha256(state.encode()).digest()


class Resolution(Struct, frozen=True, kw_only=True):
    """The answer to an interrupt."""

    outcome: Literal["accepted", "rejected"]
    resolver: str | None = None
    proof: str | None = None
