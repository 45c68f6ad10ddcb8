"""An agent needs something before it goes on, and what it is answered.

Law 1. An unknown kind is kept as it came and never read as success.
Law 2. The secret `state` is single use and is compared hashed; only its holder can resolve.
Law 3. What is asked together can be told apart, and every store can hold it.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Final, Literal

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

_MOST: Final = (1 << 53) - 1  # the greatest integer that all who read JSON agree on


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


def check_together(interrupts: Sequence[Interrupt]) -> None:
    """Refuse interrupts that could not be told apart, or not be kept.

    Raises:
        ValueError: None of them is kept.
    """
    if len({asked.id for asked in interrupts}) < len(interrupts):
        raise ValueError("two interrupts of one turn have the same id")
    for asked in interrupts:
        for name in Interrupt.__struct_fields__:
            if not _can_be_kept(getattr(asked, name)):
                raise ValueError(f"the {name} of an interrupt cannot be kept")


def _can_be_kept(value: str | int | None) -> bool:
    """Whether it is text without the character NUL, or a number that everybody reads alike."""
    if not isinstance(value, str):
        return value is None or 0 <= value <= _MOST
    try:
        return b"\x00" not in value.encode()
    except UnicodeEncodeError:  # half of a character
        return False


def hash_state(state: str) -> bytes:
    """What is kept of a secret state, to compare it with. It has 128 bits or more of its own."""
    return sha256(state.encode()).digest()


class Resolution(Struct, frozen=True, kw_only=True):
    """The answer to an interrupt."""

    outcome: Literal["accepted", "rejected"]
    resolver: str | None = None
    proof: str | None = None
