"""Payments that a function of the operator's verifies: `[payers."PREFIX"] target = ...` (R29).

    def verify(payment, call): return {"account": "0xab12", "limit": "0.5", "id": "nonce-1"}

It is given the credential as it came, a text, and what is known of the call. It answers with whose
account pays, up to which amount, and by which id the payment is used up; or with None, False or a
text that says why not. Without an id the credential pays again and again, up to its limit in all.

Law 1. It fails closed: an exception, an answer that is in no form and one that is late refuse.
Law 2. A payment with an id is used once, here as with vouchers: in the transaction of the turn. An
       id is that of its account: who pays may have chosen it, and uses up nobody else's.
Law 3. What it answers or raises is for our log, without the credential. The caller is told that it
       was refused, and nothing of why.
"""

import logging
from collections.abc import Callable
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from carnet.core.money.amount import format_amount, parse_amount
from carnet.core.people.identity import Account
from carnet.core.people.proof import SECOND_US
from carnet.errors import InvalidRequest, PaymentRefused
from carnet.ports.calls.turns import Nonce
from carnet.ports.trust.payers import ShownPayment, VerifiedPayment
from carnet.runtime.operator_function import OperatorFunction
from carnet.wire.travel.payment import X402

logger = logging.getLogger("carnet.payments")

MOST_REASON: Final = 500  # characters of what it says, in our log
USED_SECONDS: Final = 90 * 24 * 3600  # for which an id is remembered whose end is not told


class PaymentCall(Struct, frozen=True, kw_only=True):
    """What a verifier is told of the call that brings a payment."""

    agent: str
    caller: str  # who has authenticated
    currency: str  # in which limits are read


class _Answer(Struct, forbid_unknown_fields=True):
    account: Annotated[str, Meta(pattern=r"\A[!-~]{1,128}\Z")]
    limit: Annotated[str, Meta(max_length=32)]
    id: Annotated[str, Meta(pattern=r"\A[!-~]{1,128}\Z")] | None = None


Verify = Callable[[str, PaymentCall], object]


class PluggedVerifier:
    """Asks the function: the port `carnet.ports.trust.payers.PaymentVerifier`."""

    def __init__(self, verify: Verify, *, issuer: str, currency: str, seconds: float) -> None:
        """`issuer` is the name under which its accounts are kept."""
        self._function = OperatorFunction(verify, seconds=seconds)
        self._issuer = issuer
        self._currency = currency

    async def verify(self, shown: ShownPayment, /) -> VerifiedPayment:
        """What the function says that a payment is worth."""
        text, actor = shown.credential.reveal(), shown.caller.actor.name
        call = PaymentCall(agent=shown.agent, caller=actor, currency=self._currency)
        try:
            answer = await self._function.ask(actor, text, call)
        except TimeoutError:
            raise PaymentRefused("its verifier was late", reason="late") from None
        except (Exception, KeyboardInterrupt, SystemExit) as error:  # noqa: BLE001  its own
            # Without its words, which may repeat the credential.
            logger.warning("the verifier of payments raised %s", type(error).__name__)
            raise PaymentRefused("its verifier failed", reason="verifier") from None
        return self._worth(_read(answer, text), shown.now)

    def _worth(self, found: _Answer, now: int) -> VerifiedPayment:
        account, most = Account(self._issuer, found.account), parse_amount(found.limit)
        name, once = f"{self._issuer}#{found.account}", None
        if found.id is not None:
            once = Nonce(f"payer:{name}", found.id, now + USED_SECONDS * SECOND_US)
            name = f"{name} {found.id}"  # neither of them has a space
        return VerifiedPayment(
            account=account,
            quota=f"payer:{name}",
            limit=most,
            most=most,
            once=once,
            name=name,
            may_forward=found.id is None,
        )

    def close(self) -> None:
        """Let its loop go."""
        self._function.close()


def _read(answer: object, credential: str) -> _Answer:
    """An answer that accepts; refused is every other."""
    if answer is None or answer is False:
        raise PaymentRefused("its verifier said no", reason="verifier")
    if isinstance(answer, str):
        words = answer.replace(credential, "***")  # before it is cut, or a part of it would stay
        words = words.replace(credential.removeprefix(X402), "***")[:MOST_REASON]
        raise PaymentRefused(words or "its verifier said no", reason="verifier")
    try:
        found = msgspec.convert(_members(answer), _Answer)
        format_amount(parse_amount(found.limit))
    except (msgspec.ValidationError, InvalidRequest):
        raise PaymentRefused("its verifier gave no account and limit", reason="verifier") from None
    return found


def _members(answer: object) -> Any:  # noqa: ANN401, RUF100  it is judged next
    """An answer as a mapping, also where it is an object with these fields."""
    if isinstance(answer, dict):
        return answer
    return {name: getattr(answer, name, None) for name in _Answer.__struct_fields__}
