"""Refused for the payment that came with it."""

from typing import Final

from carnet.errors.base import Refused

_AGAIN: Final = "Ask its issuer for another one."

# Why a payment is refused, and what helps: words of ours, whatever a verifier says.
_REASONS: Final = {
    "unreadable": ("it cannot be read", "Send it whole, as its issuer wrote it."),
    "forged": ("its signature does not hold", "Send it unchanged, as its issuer wrote it."),
    "issuer": (
        "its issuer is not known here",
        "The operator admits an issuer: carnet peers add DOMAIN --url URL --credit AMOUNT",
    ),
    "audience": ("it is for another gateway", "Ask its issuer for one that names this gateway."),
    "holder": ("it is made out to somebody else", "Ask its issuer for one that you may show."),
    "expired": ("it has expired", _AGAIN),
    "early": ("it is not valid yet", "Wait, or have its issuer set its clock."),
    "used": ("it was used before", _AGAIN),
    "revoked": ("its issuer has revoked it", _AGAIN),
    "unsure": (
        "whether it was revoked cannot be learned now",
        "Try again later: the gateway of its issuer does not answer.",
    ),
    "amount": ("it does not cover what the call may cost", "Ask its issuer for a larger one."),
    "currency": ("it is in another currency", "Ask its issuer for one in the currency of here."),
    "unknown": (
        "nobody here verifies payments of that kind",
        'The operator names a verifier, [payers."PREFIX"]; without the payment you pay yourself.',
    ),
    "verifier": ("its verifier does not accept it", _AGAIN),
    "late": ("its verifier does not answer", "Try again later."),
    "absent": (
        "no credential of its payer came with it, which the agent is asked with",
        "Call with a token created --forwardable, or have a listed caller forward a credential.",
    ),
    "several": ("two payers are named", "Send one payment, and no forwarded credential beside it."),
    "once": (
        "a delegation for one call stands beside it",
        "Ask for a delegation that is not good for one call alone.",
    ),
}


class PaymentRefused(
    Refused, code="payment_refused", status=402, public=("reason", "needed", "covers")
):
    """The voucher or other payment that came with a call cannot pay for it here.

    Nothing was run, and neither its issuer nor the caller was billed. It was not used up.
    """

    template = "The payment that came with this call is not accepted: {why}."
    hint = _AGAIN

    def __init__(
        self, detail: str = "", /, *, reason: str, needed: str = "", covers: str = ""
    ) -> None:
        """`reason` is one of ours; the amounts are told where it is too small."""
        amounts = {"needed": needed, "covers": covers} if needed else {}
        super().__init__(detail, reason=reason, why=_REASONS[reason][0], **amounts)

    @property
    def safe_text(self) -> str:
        """The sentence, with its numbers where they matter."""
        facts = self.facts
        if facts.get("needed") is None:
            return super().safe_text
        return f"{super().safe_text} It may cost {facts['needed']}; {facts['covers']} is covered."

    @property
    def next_step(self) -> str:
        """What helps against this reason."""
        reason = str(self.facts.get("reason"))
        return _REASONS[reason][1] if reason in _REASONS else super().next_step
