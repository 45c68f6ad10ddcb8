"""Vouchers: where and when one is good, and who may show it."""

from typing import Any

import pytest
from msgspec.structs import replace

from carnet.core.people.identity import Account
from carnet.core.voucher import MOST_SECONDS, SKEW_SECONDS, Voucher
from carnet.errors import PaymentRefused

NOW = 1_000_000
VOUCHER = Voucher(
    issuer="acme.example",
    id="0123456789abcdef",
    audience="globex.example",
    account="alice",
    amount=5,
    currency="credits",
    issued=NOW,
    expires=NOW + 60,
)


def refused(voucher: Voucher, at: int = NOW) -> str | None:
    try:
        voucher.check(audience="globex.example", currency="credits", now=at * 1_000_000)
    except PaymentRefused as error:
        return str(error.facts["reason"])
    return None


def test_every_voucher_is_an_account_of_its_issuer() -> None:
    assert VOUCHER.billed == Account("acme.example", "alice#0123456789abcdef")
    assert VOUCHER.name == "acme.example#0123456789abcdef"


@pytest.mark.parametrize(
    ("at", "reason"),
    [
        (NOW, None),
        (NOW + 59, None),
        (NOW + 60, "expired"),
        (NOW - SKEW_SECONDS, None),
        (NOW - SKEW_SECONDS - 1, "early"),
    ],
)
def test_it_holds_from_when_it_was_issued_until_it_expires(at: int, reason: str | None) -> None:
    assert refused(VOUCHER, at) == reason


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"audience": "initech.example"}, "audience"),
        ({"currency": "euro"}, "currency"),
        ({"expires": NOW}, "unreadable"),
        ({"expires": NOW + MOST_SECONDS}, None),
        ({"expires": NOW + MOST_SECONDS + 1}, "unreadable"),
    ],
)
def test_it_is_for_one_gateway_in_its_currency_and_not_for_ever(
    changes: dict[str, Any], reason: str | None
) -> None:
    assert refused(replace(VOUCHER, **changes)) == reason


def test_one_that_is_made_out_to_somebody_is_good_for_nobody_else() -> None:
    VOUCHER.check_holder(set())
    mine = replace(VOUCHER, holder="globex.example")
    mine.check_holder({"token:x", "globex.example"})
    with pytest.raises(PaymentRefused, match="somebody else"):
        mine.check_holder({"token:x"})
