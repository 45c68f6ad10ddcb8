"""The payments that calls bring along: who verifies them, and what they pay for (R29).

Law 1. A payment pays for the call that brings it, or the call is refused: nobody pays in its place.
Law 2. Its issuer owes no more than it covers; what is above is owed by whoever called.
Law 3. One that was forwarded is taken of listed callers alone; where nobody verifies it, it is only
       carried (R5).
"""

from collections.abc import Mapping

from carnet.core.call import quote
from carnet.core.money.amount import format_amount
from carnet.core.people.delegation import narrower
from carnet.core.people.identity import Payer, Secret
from carnet.core.people.proof import Spending
from carnet.errors import ForwardingNotAllowed, PaymentRefused
from carnet.guards.candidate import Candidate
from carnet.ports.trust.payers import PaymentVerifier, ShownPayment


class Payers:
    """Who verifies payments, by what these begin with."""

    def __init__(self, verifiers: Mapping[str, PaymentVerifier]) -> None:
        """Of several beginnings that fit, the longest counts."""
        self._verifiers = sorted(verifiers.items(), key=lambda each: -len(each[0]))

    def find(self, credential: Secret) -> PaymentVerifier | None:
        """Who verifies a credential; None where nobody does."""
        text = credential.reveal()
        return next((one for prefix, one in self._verifiers if text.startswith(prefix)), None)


class PaymentJudge:
    """Judges the payments of claims."""

    def __init__(self, verifiers: Payers, currency: str) -> None:
        """`currency` is that of our ledger."""
        self._verifiers = verifiers
        self._currency = currency

    def shown(self, candidate: Candidate) -> ShownPayment | None:
        """The payment that is to be verified; None where a credential is only carried (R5)."""
        payment, forwarded = candidate.claim.payment, candidate.claim.forwarded
        if forwarded is not None:
            if payment is not None:
                raise PaymentRefused(reason="several")
            payment = Secret(forwarded.reveal().partition(" ")[2])
            if self._verifiers.find(payment) is None:
                return None
            if not candidate.caller.actor.may_forward:
                raise ForwardingNotAllowed
        if payment is None:
            return None
        caller, agent = candidate.caller, candidate.target.name
        return ShownPayment(credential=payment, caller=caller, agent=agent, now=candidate.now)

    async def verify(self, candidate: Candidate, shown: ShownPayment, excess: str) -> None:
        """Have a payment verified; it pays, or the call is refused: nobody pays in its place."""
        target, claim = candidate.target, candidate.claim
        verifier = self._verifiers.find(shown.credential)
        if verifier is None:
            raise PaymentRefused(reason="unknown")
        found = await verifier.verify(shown)
        needs = quote(target, claim.ask, len(claim.request))
        if needs - target.most_cost > found.most:  # an agent elsewhere is told to cost less
            needed = format_amount(needs)
            raise PaymentRefused(reason="amount", needed=needed, covers=format_amount(found.most))
        once = None if candidate.delegation is None else candidate.delegation.single_use()
        if found.once is not None and once is not None:
            raise PaymentRefused(reason="once")
        candidate.payer = Payer(
            account=found.account,
            quota=found.quota,
            limit=found.limit,
            own_issue=found.own_issue,
            by_forwarding=True,
            payment=found.name or str(found.account),
            excess=excess,
        )
        candidate.once = found.once
        candidate.credential = claim.forwarded if found.may_forward else None
        covered = Spending(money=found.most, currency=self._currency)
        candidate.budget = narrower(candidate.budget, covered)
