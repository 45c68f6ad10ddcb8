"""Payments in the words of x402: an agreement to be debited, and no settlement."""

from typing import Any

import pytest

from carnet.core.messages.interrupt import Interrupt, Resolution
from carnet.errors import InvalidRequest
from carnet.wire.dialects.a2a.extensions.questions.state import write_state
from carnet.wire.dialects.a2a.extensions.questions.x402 import (
    PAYLOAD,
    REQUIRED,
    STATUS,
    answer,
    ask,
    read,
    reply,
)

PAY = Interrupt(kind="payment", id="int_1", message="Pay.", amount=500_000, currency="credits")
ACCEPTED, REJECTED = Resolution(outcome="accepted"), Resolution(outcome="rejected")


def only(metadata: dict[str, Any], currency: str = "credits") -> Interrupt:
    reading = answer(metadata, currency)
    assert reading is not None
    (asked,) = reading.interrupts
    return asked


def test_a_payment_is_asked_for_in_the_scheme_that_it_is() -> None:
    written = ask([PAY])
    assert written[STATUS] == "payment-required"
    (way,) = written[REQUIRED]["accepts"]
    assert (way["scheme"], way["maxAmountRequired"], way["asset"]) == (
        "carnet",
        "500000",
        "credits",
    )
    assert way["extra"] == {"decimals": 6}
    assert only(written).amount == 500_000
    assert only(written, "EUR").other_amount == {"amount": "500000", "currency": "credits"}


def test_what_is_no_payment_is_not_asked_for_so() -> None:
    approval = Interrupt(kind="approval", message="?", amount=1)
    unpriced = Interrupt(kind="payment", message="?")
    assert ask([approval, unpriced]) == {}


def test_an_agreement_is_read_as_it_was_replied() -> None:
    state = only(ask([PAY])).state
    written = reply(state, ACCEPTED)
    assert written is not None
    claimed = read([written], 3)
    assert claimed is not None
    assert claimed.answer is not None
    assert (claimed.answer.id, claimed.answer.outcome) == ("int_1", "accepted")
    assert reply(state, REJECTED) == {STATUS: "payment-rejected"}


def test_what_a_wallet_signed_is_sent_to_who_asks_for_it() -> None:
    state = write_state("x402", ["exact", "res", "0x8335"])
    payment = {"scheme": "exact", "payload": {"signature": "0x1"}}
    written = reply(state, Resolution(outcome="accepted", value=payment))
    assert written == {STATUS: "payment-submitted", PAYLOAD: payment}
    with pytest.raises(InvalidRequest, match="value"):
        reply(state, ACCEPTED)


def test_what_was_not_asked_so_is_not_answered_so() -> None:
    for state in ("", "s3cret", write_state("x402", ["exact"])):
        assert reply(state, ACCEPTED) is None


@pytest.mark.parametrize(
    ("payload", "credential"),
    [
        ({"scheme": "carnet", "payload": {"voucher": "voucher_x"}}, "voucher_x"),
        (
            {"paymentPayload": {"scheme": "carnet", "payload": {"voucher": "voucher_x"}}},
            "voucher_x",
        ),
        ({"scheme": "exact"}, "x402:eyJzY2hlbWUiOiJleGFjdCJ9"),
    ],
)
def test_a_payment_that_is_no_agreement_is_carried_as_it_came(
    payload: dict[str, Any], credential: str
) -> None:
    claimed = read([{STATUS: "payment-submitted", PAYLOAD: payload}], 3)
    assert claimed is not None
    assert claimed.payment is not None
    assert claimed.payment.reveal() == credential
    assert claimed.answer is None
    assert credential not in repr(claimed)


def test_an_agreement_brings_no_payment() -> None:
    for inner in ({"agreed": True}, None, "text"):
        given = {"scheme": "carnet", "payload": inner}
        claimed = read([{STATUS: "payment-submitted", PAYLOAD: given}], 3)
        assert claimed is not None
        assert claimed.payment is None
        assert claimed.answer is not None
