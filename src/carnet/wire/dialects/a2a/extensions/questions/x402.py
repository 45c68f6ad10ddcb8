"""Payments of x402 over A2A, v0.1 and v0.2: `x402.payment.*` in metadata.

    up     x402.payment.status "payment-required", x402.payment.required {x402Version, accepts}
    down   x402.payment.status "payment-submitted" with x402.payment.payload, or "payment-rejected"

What we ask for is an agreement to be debited in our ledger, and it is told as what it is: the
scheme `carnet`, on no chain. A wallet cannot settle it, and what a wallet sends is no answer. It is
a payment: whoever the operator has named for those of x402 verifies it, and it pays for the call
that brings it; so does a voucher, which is `{"voucher": TEXT}` in the payload of our own scheme.

Law 1. A payload is a credential: it is never shown, kept or logged.
Law 2. Only a payload in our own scheme agrees to anything here. No settlement is believed that a
       verifier of the operator's has not accepted.
Law 3. What somebody else asks for in another asset is shown as it came, and is not our currency.
"""

from collections.abc import Sequence
from typing import Any, Final

from carnet.core.messages.interrupt import PAYMENT, Interrupt, Resolution
from carnet.core.money.amount import MICROS, MOST_MICROS
from carnet.core.people.identity import Secret
from carnet.errors import InvalidRequest
from carnet.wire.dialects.a2a.extensions.questions.state import read_state, write_state
from carnet.wire.dialects.a2a.extensions.row import (
    AnswerClaim,
    AnswerClaims,
    ExtensionClaim,
    ExtensionRow,
    Metadata,
    PayloadBroken,
    items,
    members,
    needed,
    one,
    payload,
    printable,
    short,
    shown,
    word,
)
from carnet.wire.dialects.policy import MOST_WORDS
from carnet.wire.travel.payment import MOST_BYTES, of_x402

X402_URI: Final = "https://github.com/google-a2a/a2a-x402/v0.1"
X402_V2_URI: Final = "https://github.com/google-a2a/a2a-x402/v0.2"
# As published since: the same version by the address of its text.
X402_V2_TEXT: Final = "https://github.com/google-agentic-commerce/a2a-x402/blob/main/spec/v0.2"
URIS: Final = (X402_URI, X402_V2_URI, X402_V2_TEXT)

STATUS: Final = "x402.payment.status"
REQUIRED: Final = "x402.payment.required"
PAYLOAD: Final = "x402.payment.payload"
RECEIPTS: Final = "x402.payment.receipts"
ERROR: Final = "x402.payment.error"
KEYS: Final = (STATUS, REQUIRED, PAYLOAD, RECEIPTS, ERROR)

SCHEME: Final = "carnet"
NETWORK: Final = "carnet"

MOST_WAYS: Final = 16

_STATE: Final = "x402"
_STATUSES: Final = frozenset(
    {
        *("payment-required", "payment-submitted", "payment-rejected", "payment-pending"),
        *("payment-verified", "payment-completed", "payment-failed"),
    }
)


# ------------------------------------------------------------------ served: asked and answered


def ask(interrupts: Sequence[Interrupt]) -> dict[str, Any]:
    """The payments that a turn waits for; nothing where it waits for none."""
    payments = [each for each in interrupts if each.kind == PAYMENT and each.amount is not None]
    if not payments:
        return {}
    ways = [_way(asked) for asked in payments[:1]]  # an answer could not say which of several
    return {STATUS: "payment-required", REQUIRED: {"x402Version": 1, "accepts": ways}}


def _way(asked: Interrupt) -> dict[str, Any]:
    return {
        "scheme": SCHEME,
        "network": NETWORK,
        "asset": asked.currency or "credits",
        "payTo": asked.origin or SCHEME,
        "maxAmountRequired": str(asked.amount),  # micro-units, the smallest there are
        "resource": asked.id,
        "description": asked.message,
        "extra": {"decimals": len(str(MICROS)) - 1},
    }


def read(found: Sequence[Metadata], last_depth: int) -> ExtensionClaim | None:
    """What a message says of a payment."""
    del last_depth
    status = _status(payload(found, STATUS))
    if status is None:
        return None
    if status == "payment-rejected":
        return ExtensionClaim(
            answer=AnswerClaim(outcome="rejected", kind=PAYMENT), shown={"status": status}
        )
    if status != "payment-submitted":
        return ExtensionClaim(shown={"status": status})
    given = members(payload(found, PAYLOAD))
    scheme, resource = _submitted(given)
    parts = {"status": status, "scheme": scheme}
    # Whoever verifies payments of another scheme here is given them as they came.
    is_ours = scheme == SCHEME
    paid = _voucher(given) if is_ours else of_x402(short(given, MOST_BYTES))
    if paid is not None:
        return ExtensionClaim(payment=paid, shown=parts)
    return ExtensionClaim(
        answer=AnswerClaim(outcome="accepted", id=resource, kind=PAYMENT), shown=parts
    )


def _status(value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or value not in _STATUSES:
        raise PayloadBroken("has a status that is none of the extension's")
    return value


def _submitted(given: dict[str, Any]) -> tuple[str, str | None]:
    """The scheme of a payment, and what it is for, in the forms of v0.1 and of later ones."""
    chosen = given.get("paymentRequirements") or given.get("accepted") or {}
    paid = given.get("paymentPayload") or given
    scheme = word(members(paid), "scheme") or word(members(chosen), "scheme")
    if scheme is None:
        raise PayloadBroken("has no scheme")
    return scheme, word(members(chosen), "resource")


def _voucher(given: dict[str, Any]) -> Secret | None:
    """The voucher that a payment in our own scheme brings; None where it agrees to be debited."""
    paid = members(given.get("paymentPayload") or given)
    inner = paid.get("payload")
    text = word(inner, "voucher", MOST_BYTES) if isinstance(inner, dict) else None
    return None if text is None else Secret(text)


# ------------------------------------------------------------------ called: read and replied


def answer(metadata: Metadata, currency: str) -> AnswerClaims | None:
    """What whoever we called wants to be paid."""
    status = _status(metadata.get(STATUS))
    if status is None:
        return None
    claimed = {"x402": shown({name: metadata[name] for name in KEYS[:2] if name in metadata})}
    if status != "payment-required":
        receipts = {"receipts": shown(metadata.get(RECEIPTS)), "error": shown(metadata.get(ERROR))}
        parts = {name: value for name, value in receipts.items() if value is not None}
        return AnswerClaims(claimed={"x402": {"status": status} | parts})
    required = members(metadata.get(REQUIRED))
    ways = [members(each) for each in items(required.get("accepts"), MOST_WAYS)]
    if not ways:
        raise PayloadBroken("has no way to pay")
    return AnswerClaims(interrupts=one(_read_way(ways, required, currency)), claimed=claimed)


def _read_way(ways: list[dict[str, Any]], required: dict[str, Any], currency: str) -> Interrupt:
    ours = [way for way in ways if way.get("scheme") == SCHEME and way.get("asset") == currency]
    way = (ours or ways)[0]
    asset, scheme = needed(way, "asset"), needed(way, "scheme")
    text = _smallest(way)
    amount = int(text) if ours and int(text) <= MOST_MICROS else None
    description = way.get("description") or required.get("error")
    words = printable(description, MOST_WORDS).strip() if isinstance(description, str) else ""
    resource = word(way, "resource") or "payment"
    more = {"amount": text, "currency": asset, "scheme": scheme, "network": word(way, "network")}
    return Interrupt(
        kind=PAYMENT,
        id=resource[:128],
        state=write_state(_STATE, [scheme, resource, asset]),
        message=words or "A payment is asked for.",
        amount=amount,
        currency=None if amount is None else currency,
        more=None if amount is not None else {k: v for k, v in more.items() if v is not None},
    )


def _smallest(way: dict[str, Any]) -> str:
    """The amount in the smallest unit of its asset, by its name in x402 1 or in x402 2."""
    text = word(way, "maxAmountRequired", 78) or needed(way, "amount", 78)
    if not text.isdigit():
        raise PayloadBroken("has an amount that is not made of digits")
    return text.lstrip("0") or "0"


def reply(state: str, resolution: Resolution) -> dict[str, Any] | None:
    """The answer to what has this state; None where it was not asked so."""
    asked = read_state(_STATE, state, str)
    if asked is None or len(asked) != 3:  # noqa: PLR2004  scheme, resource, asset
        return None
    scheme, resource, asset = asked
    if not resolution.accepted:
        return {STATUS: "payment-rejected"}
    if scheme != SCHEME:
        return {STATUS: "payment-submitted", PAYLOAD: _given(resolution.value)}
    chosen = {"scheme": SCHEME, "network": NETWORK, "asset": asset, "resource": resource}
    agreed = {"x402Version": 1, "scheme": SCHEME, "network": NETWORK, "payload": {"agreed": True}}
    return {
        STATUS: "payment-submitted",
        PAYLOAD: {"paymentRequirements": chosen, "paymentPayload": agreed},
    }


def _given(value: object) -> dict[str, Any]:
    """What a wallet has signed; it is the value of the answer."""
    if not isinstance(value, dict):
        raise InvalidRequest("value", "must be the signed payment that the agent asks for")
    return value


X402: Final = ExtensionRow(
    secrets=((PAYLOAD,),),
    name="x402",
    uris=URIS,
    keys=KEYS,
    is_declared=True,
    description="Payments of x402 0.1 and 0.2; the scheme carnet agrees to be debited here.",
    reads="an agreement or a voucher in the scheme `carnet`, or a refusal; a payment of another "
    "scheme, for whoever verifies it; what an agent that we called wants",
    writes="the payment that a task waits for; an agreement, or what a wallet signed, to who asked",
    believes="a voucher that holds, and a payment that a verifier of [payers] accepts, once; no "
    "other settlement; an agreement as much as its sender may answer, and once",
    read=read,
    ask=ask,
    answer=answer,
    reply=reply,
)
