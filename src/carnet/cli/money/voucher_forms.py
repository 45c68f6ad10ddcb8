"""Vouchers on their way between the command line, the store and their readers.

Law. A page never holds a voucher itself; the one that issues it shows it, once.
"""

import re
from typing import Any, Final, Never

from carnet.cli.times import SECOND, read_span
from carnet.cli.trust.forms import read_amount
from carnet.config import Settings
from carnet.core.money.amount import format_amount
from carnet.core.people.address import check_domain
from carnet.core.people.identity import Actor, Caller, Secret
from carnet.core.voucher import MOST_SECONDS, Voucher
from carnet.errors import AddressInvalid, PaymentRefused, UsageInvalid
from carnet.guards.caller.voucher import Vouchers, nonce_of
from carnet.ports.trust.keys import KeyRing
from carnet.ports.trust.payers import ShownPayment
from carnet.runtime.peers.ended import EndedLists
from carnet.runtime.system import SystemIds
from carnet.stores.ledger.vouchers import IssuedVoucher
from carnet.stores.store import Store
from carnet.wire.grammar.times import when
from carnet.wire.travel.voucher import read_voucher

_ACCOUNT: Final = re.compile(r"[A-Za-z0-9@._~+-]{1,128}", re.ASCII)
_HOLDER: Final = re.compile(r"[!-~]{1,256}", re.ASCII)
_ANYBODY: Final = Caller(actor=Actor(name=""), scopes=frozenset())


def new_voucher(
    settings: Settings, audience: str, amount: str, options: dict[str, Any], now: int
) -> Voucher:
    """The voucher that was asked for, not yet signed."""
    try:
        check_domain(audience)
    except AddressInvalid as error:
        raise UsageInvalid(
            reason=f"'{audience}' is no domain: {error.facts['reason']}.",
            fix="Name the gateway that it is for by its domain, such as globex.example.",
        ) from None
    account, holder = options["account"], options["holder"]
    if not _ACCOUNT.fullmatch(account):
        raise UsageInvalid(
            reason=f"--account {account} is no name of an account.",
            fix="Use letters, digits and @ . _ ~ + - alone.",
        )
    if holder is not None and not _HOLDER.fullmatch(holder):
        raise UsageInvalid(
            reason="--for holds a character that no name has.",
            fix="Give a domain, agent://NAME, or the name of a token.",
        )
    seconds = read_span(options["expires"], option="--expires", never=False) or 0
    if seconds > MOST_SECONDS:
        raise UsageInvalid(
            reason=f"--expires {options['expires']} is longer than {MOST_SECONDS // 86_400} days.",
            fix="Nobody takes one: write 90d, and issue another one then.",
        )
    worth = read_amount(amount, "AMOUNT")
    if not worth:
        raise UsageInvalid(reason="A voucher of 0 pays for nothing.", fix="Give an AMOUNT.")
    return Voucher(
        issuer=settings.gateway.domain,
        id=SystemIds().uuid(),
        audience=audience,
        account=account,
        amount=worth,
        currency=settings.ledger.currency,
        issued=now // SECOND,
        expires=now // SECOND + seconds,
        holder=holder,
    )


def voucher_page(voucher: Voucher) -> dict[str, Any]:
    """What a voucher says."""
    return {
        "id": voucher.id,
        "issuer": voucher.issuer,
        "audience": voucher.audience,
        "amount": format_amount(voucher.amount),
        "currency": voucher.currency,
        "account": voucher.account,
        "holder": voucher.holder,
        "issued": when(voucher.issued * SECOND),
        "expires": when(voucher.expires * SECOND),
    }


def issued_page(issued: IssuedVoucher, now: int) -> dict[str, Any]:
    """One of ours, as it is kept."""
    return {
        "id": issued.id,
        "audience": issued.audience,
        "amount": format_amount(issued.amount),
        "currency": issued.currency,
        "account": issued.account,
        "holder": issued.holder,
        "issued": when(issued.issued),
        "expires": when(issued.expires),
        "revoked": when(issued.ended),
        "state": issued.state(now),
    }


async def judged(
    settings: Settings, store: Store, keys: KeyRing, ended: EndedLists, text: Secret, now: int
) -> dict[str, Any]:
    """Whether our gateway would take a voucher from whom it is made out to, and why not."""
    voucher = read_voucher(text)
    verifier = Vouchers(
        keys,
        store.peers,
        domain=settings.gateway.domain,
        currency=settings.ledger.currency,
        is_ended=store.vouchers.is_ended,
        fresh=ended.check_voucher,
    )
    caller = _ANYBODY
    if voucher.holder is not None:
        caller = Caller(actor=Actor(name=voucher.holder), scopes=frozenset())
    refused = None
    try:
        await verifier.verify(ShownPayment(credential=text, caller=caller, agent="", now=now))
    except PaymentRefused as error:
        refused = error
    if refused is None and await store.vouchers.is_used(nonce_of(voucher)):
        refused = PaymentRefused(reason="used")
    if refused is None:
        return {"holds": True}
    return {"holds": False, "why": refused.facts["why"], "hint": refused.next_step}


def refuse_voucher(id: str) -> Never:
    """Say that we have issued none of that id which holds."""
    raise UsageInvalid(
        reason=f"There is no voucher '{id}' of ours that still holds.",
        fix="'carnet vouchers list' shows which there are; --all also those that have ended.",
    )
