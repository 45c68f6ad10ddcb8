"""The payment that a request brings, by whichever header."""

import pytest

from carnet.errors import MalformedCallerContext, PaymentRefused
from carnet.wire.grammar.headers import Headers
from carnet.wire.travel.payment import MOST_BYTES, PAYS, of_x402, read_payment


def headers(**fields: str) -> Headers:
    return Headers([(n.replace("_", "-").encode(), v.encode()) for n, v in fields.items()])


def test_a_request_without_one_brings_none() -> None:
    found = headers(accept="*/*")
    assert read_payment(found) is None
    assert PAYS not in found.joined()
    assert read_payment(headers(carnet_payment=" ")) is None


@pytest.mark.parametrize(
    ("header", "credential"),
    [
        ("carnet_payment", "voucher_x"),
        ("x_payment", "x402:voucher_x"),
        ("payment_signature", "x402:voucher_x"),
    ],
)
def test_what_it_begins_with_says_who_verifies_it(header: str, credential: str) -> None:
    given = headers(**{header: "voucher_x"})
    assert PAYS in given.joined()
    found = read_payment(given)
    assert found is not None
    assert (found[0].reveal(), found[1]) == (credential, header.replace("_", "-"))


def test_two_are_refused() -> None:
    with pytest.raises(PaymentRefused):
        read_payment(headers(carnet_payment="a", x_payment="b"))
    with pytest.raises(PaymentRefused):
        read_payment(headers(payment_signature="a", x_payment="a"))


@pytest.mark.parametrize("value", ["a b", "x" * (MOST_BYTES + 1), "a\x01b"])
def test_what_no_credential_looks_like_is_refused_by_the_name_of_its_header(value: str) -> None:
    with pytest.raises(MalformedCallerContext) as refused:
        read_payment(headers(carnet_payment=value))
    assert value not in str(refused.value)


def test_a_payload_that_came_as_json_is_carried_as_the_headers_do() -> None:
    assert of_x402({"b": 1, "a": {}}).reveal() == "x402:eyJhIjp7fSwiYiI6MX0="
