"""A budget inside a token: the claim `bud` of travel documents and of delegations.

Law 1. `read_spending(write_spending(budget)) == budget` for every budget whose money, if there is
       any, has a currency.
Law 2. Whatever the claim says, it is read or raises `SpendingInvalid`, in words of ours.
"""

from typing import Annotated, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType

from carnet.core.money.amount import format_amount, parse_amount
from carnet.core.people.proof import Spending
from carnet.errors import InvalidRequest
from carnet.wire.grammar.json import MAX_INTEGER

T = TypeVar("T")

_Number = Annotated[int, Meta(ge=0, le=MAX_INTEGER)]
_Word = Annotated[str, Meta(min_length=1, max_length=256)]


class SpendingInvalid(ValueError):
    """The claim is no budget; the message says why, in words of ours."""


class SpendingClaim(Struct, omit_defaults=True):
    """The claim as it stands in a token."""

    money: _Word | UnsetType = UNSET
    currency: _Word | UnsetType = UNSET
    calls: _Number | UnsetType = UNSET
    tokens: _Number | UnsetType = UNSET


def read_spending(claim: SpendingClaim | UnsetType) -> Spending | None:
    """The budget that a claim names; None if there is no such claim."""
    if claim is UNSET:
        return None
    try:
        money = None if claim.money is UNSET else parse_amount(claim.money)
    except InvalidRequest:
        raise SpendingInvalid("names an amount that is none") from None
    if money is not None and claim.currency is UNSET:
        raise SpendingInvalid("names an amount of no currency")
    return Spending(
        money=money,
        currency=claim.currency or None,
        calls=None if claim.calls is UNSET else claim.calls,
        tokens=None if claim.tokens is UNSET else claim.tokens,
    )


def write_spending(budget: Spending | None) -> SpendingClaim | UnsetType:
    """The claim that names a budget."""
    if budget is None:
        return UNSET
    return SpendingClaim(
        money=UNSET if budget.money is None else format_amount(budget.money),
        currency=given(budget.currency),
        calls=given(budget.calls),
        tokens=given(budget.tokens),
    )


def given(value: T | None) -> T | UnsetType:
    """A claim that is left out where there is nothing to say."""
    return UNSET if value is None else value
