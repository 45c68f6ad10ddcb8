"""The payment that a request brings: who pays for it, in the place of its caller.

    carnet-payment: CREDENTIAL                      a voucher, or what else is verified here
    x-payment: BASE64, payment-signature: BASE64    x402, version 1 and 2
    x402.payment.payload, in the metadata of A2A    the same without the base64

Law 1. A payment is one credential, and opaque: what it begins with says who verifies it. What comes
       in a form of x402 is carried as it came, behind `x402:`.
Law 2. A payment is a secret. What is wrong with its form is told by the name of its header.
Law 3. Two payments are refused: nobody may choose which of them is meant.
"""

from base64 import b64encode
from typing import Any, Final

from carnet.core.people.identity import Secret
from carnet.errors import MalformedCallerContext, PaymentRefused
from carnet.wire.grammar import json
from carnet.wire.grammar.headers import Headers

PAYMENT: Final = "carnet-payment"
X402_HEADERS: Final = ("x-payment", "payment-signature")
X402: Final = "x402:"
MOST_BYTES: Final = 8 * 1024
PAYS: Final = b"payment"  # in the names of all three, and of few other headers


def read_payment(headers: Headers) -> tuple[Secret, str] | None:
    """The payment, and the header that it came in."""
    found = [
        (Secret(form + value), name)
        for form, name in (("", PAYMENT), (X402, X402_HEADERS[0]), (X402, X402_HEADERS[1]))
        if (value := headers.visible(name, max_bytes=MOST_BYTES)) is not None
    ]
    if len(found) > 1:
        raise PaymentRefused(reason="several")
    if found and " " in found[0][0].reveal():
        raise MalformedCallerContext(found[0][1], "holds a space")
    return found[0] if found else None


def of_x402(payload: dict[str, Any]) -> Secret:
    """A payload of x402 that came as JSON, as the headers would have brought it."""
    return Secret(X402 + b64encode(json.canonical(payload)).decode())
