"""A voucher: the signed word of an organisation that it pays for one call at another.

Law 1. It is good at one gateway, for one call and what is called for that, until it expires, and
       for no more than its amount.
Law 2. Whoever holds it may show it, unless it is made out to somebody: then nobody else may.
Law 3. Every voucher is an account of its issuer of its own: what was billed for it is found by it.
"""

from collections.abc import Collection
from typing import Final

from msgspec import Struct

from carnet.core.people.identity import Account
from carnet.core.people.proof import SECOND_US
from carnet.errors import PaymentRefused

MOST_SECONDS: Final = 90 * 24 * 3600  # for which one may be issued
SKEW_SECONDS: Final = 60  # that the clock of an issuer may be ahead of ours


class Voucher(Struct, frozen=True, kw_only=True):
    """What a voucher says."""

    issuer: str  # the domain that pays
    id: str
    audience: str  # the domain of the gateway that it is good at
    account: str  # whose it is at the issuer
    amount: int  # the most that it pays, micro-units
    currency: str
    issued: int  # seconds since the epoch
    expires: int
    holder: str | None = None  # who alone may show it; None: whoever has it
    keyid: str = ""
    signed: bytes = b""  # what its signature covers
    signature: bytes = b""

    @property
    def billed(self) -> Account:
        """The account that is debited."""
        return Account(self.issuer, f"{self.account}#{self.id}")

    @property
    def name(self) -> str:
        """By which records know it; it says nothing that could be shown in its place."""
        return f"{self.issuer}#{self.id}"

    def check(self, *, audience: str, currency: str, now: int) -> None:
        """Refuse one that is not for here, or not for now (microseconds since the epoch)."""
        if self.audience != audience:
            raise PaymentRefused(reason="audience")
        if self.currency != currency:
            raise PaymentRefused(reason="currency")
        if not 0 < self.expires - self.issued <= MOST_SECONDS:
            raise PaymentRefused(reason="unreadable")
        if self.expires * SECOND_US <= now:
            raise PaymentRefused(reason="expired")
        if (self.issued - SKEW_SECONDS) * SECOND_US > now:
            raise PaymentRefused(reason="early")

    def check_holder(self, names: Collection[str]) -> None:
        """Refuse one that is made out to somebody who has none of these names."""
        if self.holder is not None and self.holder not in names:
            raise PaymentRefused(reason="holder")
