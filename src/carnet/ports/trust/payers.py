"""Who verifies the payments that calls bring along (R29)."""

from typing import Protocol

from msgspec import Struct

from carnet.core.people.identity import Account, Caller, Secret
from carnet.ports.calls.turns import Nonce


class ShownPayment(Struct, frozen=True, kw_only=True):
    """A payment, and what is known of the call that brings it."""

    credential: Secret
    caller: Caller  # who shows it
    agent: str  # that is called
    now: int  # microseconds since the epoch


class VerifiedPayment(Struct, frozen=True, kw_only=True):
    """What a payment is worth: whose account is debited, and for how much."""

    account: Account
    quota: str  # that counts what the account owes, perhaps with others
    limit: int | None  # of that quota, micro-units
    most: int  # that this payment covers
    once: Nonce | None = None  # what is used up with it; None: it pays more than once
    name: str | None = None  # by which records know it
    own_issue: bool = False  # it is our own word
    may_forward: bool = False  # it may pay others too, where they are listed


class PaymentVerifier(Protocol):
    """Knows one kind of payments."""

    async def verify(self, shown: ShownPayment, /) -> VerifiedPayment:
        """What it is worth; raises PaymentRefused."""
