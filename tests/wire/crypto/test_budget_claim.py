"""A budget inside a token: one spelling, and nothing that is half an amount."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from carnet.core.people.proof import Spending
from carnet.wire.crypto.budget_claim import (
    SpendingClaim,
    SpendingInvalid,
    read_spending,
    write_spending,
)

BOUND = st.none() | st.integers(0, 2**53 - 1)


@given(st.none() | st.integers(0, 10**12), BOUND, BOUND)
def test_what_is_written_is_read_again(
    money: int | None, calls: int | None, tokens: int | None
) -> None:
    budget = Spending(
        money=money, currency=None if money is None else "credits", calls=calls, tokens=tokens
    )
    claim = msgspec.convert(msgspec.to_builtins(write_spending(budget)), SpendingClaim)
    assert read_spending(claim) == budget


def test_no_claim_is_no_budget() -> None:
    assert read_spending(UNSET) is None
    assert write_spending(None) is UNSET


@pytest.mark.parametrize(
    ("claim", "why"),
    [
        (SpendingClaim(money="1e3", currency="credits"), "names an amount that is none"),
        (SpendingClaim(money="-1", currency="credits"), "names an amount that is none"),
        (SpendingClaim(money="1"), "names an amount of no currency"),
    ],
)
def test_half_an_amount_is_refused(claim: SpendingClaim, why: str) -> None:
    with pytest.raises(SpendingInvalid, match=why):
        read_spending(claim)
