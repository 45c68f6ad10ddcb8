"""From a candidate that passed every guard to the entry that claims its turn.

It names the turn, the document that the call carries, what is set aside for it, the rates and
quotas that it counts in, and the grounds, for whoever asks later why it was admitted.

Law. When an entry is made the guards have judged; all that is still refused is a credential that
     may not go to the target.
"""

import msgspec

from carnet.core.call import AGENT_OWNED, Admitted, turn_key
from carnet.core.chain.allowance import Allowance
from carnet.core.chain.carnet import Carnet
from carnet.core.chain.grounds import write_grounds
from carnet.core.people.delegation import narrower
from carnet.core.sealed_call import Later
from carnet.guards.admission.findings import grounds_of
from carnet.guards.admission.order import GateParts, Signed
from carnet.guards.admission.tasks import make_later, make_listed
from carnet.guards.admission.transaction import (
    Entry,
    answer_of,
    deadline_of,
    quote,
    set_aside,
)
from carnet.guards.caller.delegation import once_of
from carnet.guards.candidate import Candidate
from carnet.guards.limits import bucket_of, counted_as, daily_tokens, unfinished
from carnet.guards.proof.replay import nonce_of
from carnet.guards.target.target import check_credential, names_parent, onward_carnet
from carnet.ports.calls.turns import Quota, Rate

MINUTE = 60


class Intake:
    """Makes entries."""

    def __init__(self, parts: GateParts, by: Signed | None) -> None:
        """`by` has the rates and quotas of signed claims."""
        self._clock = parts.clock
        self._ids = parts.ids
        self._domain = parts.domain
        self._last_depth = parts.depths.default
        self._currency = "" if by is None else by.currency
        self._by = by

    def entry(self, candidate: Candidate) -> Entry:
        """The entry of a candidate, with everything that the transaction is told."""
        claim, target, payer = candidate.claim, candidate.target, candidate.payer
        if candidate.credential is not None:
            check_credential(target, candidate.credential)
        if claim.budget is not None:  # it can only lower what may be spent
            candidate.budget = narrower(candidate.budget, claim.budget)
        carnet = self._document(candidate)
        actor, proof = candidate.caller.actor.name, claim.proof
        if proof is not None and proof.subject is not None:
            actor = f"{actor}#{proof.subject}"  # who speaks for one peer shares no turns (M50)
        key = turn_key(
            payer=payer.account,
            actor=actor,
            agent=target.name,
            carnet=carnet,
            digest=claim.digest,
        )
        onward = None  # for an agent of ours
        if target.is_remote:
            onward = onward_carnet(
                carnet, target, self._domain, key=key, last_depth=self._last_depth
            )
        allowance, taken = None, 0
        if candidate.budget is not None:
            allowance = Allowance(candidate.budget)
            owned = target.is_remote and target.auth_source == AGENT_OWNED
            most = 0 if owned else quote(target, claim.ask, len(claim.request))
            taken, left = set_aside(allowance, target, most, self._currency)
            onward = None if onward is None else msgspec.structs.replace(onward, budget=left)
        most_tokens = None if claim.proof is None else target.tokens_per_day
        tokens = None if most_tokens is None else daily_tokens(candidate, most_tokens)
        later = make_later(candidate, self._ids) if claim.is_task else None
        admitted = Admitted(
            agent=target.name,
            ask=claim.ask,
            carnet=carnet,
            caller=candidate.caller
            if not candidate.evidence
            else msgspec.structs.replace(candidate.caller, evidence=candidate.evidence),
            payer=payer,
            dialect=claim.dialect,
            correlation=claim.correlation,
            onward=onward,
            document=None if claim.proof is None else claim.proof.document,
            set_aside=taken,
            credential=candidate.credential,
            reserve=0 if payer.limit is None else quote(target, claim.ask, len(claim.request)),
            delegation=candidate.delegation,
            callback=claim.callback,
            quota=None if tokens is None else tokens.name,
            task_quota=None if later is None else later.quota,
        )
        quotas = () if tokens is None and later is None else self._quotas(tokens, later)
        return self._entry_of(candidate, admitted, key, allowance, quotas, later)

    def _entry_of(
        self,
        candidate: Candidate,
        admitted: Admitted,
        key: bytes,
        allowance: Allowance | None,
        quotas: tuple[Quota, ...],
        later: Later | None,
    ) -> Entry:
        claim, rates = candidate.claim, self._rates(candidate)
        return Entry(
            admitted=admitted,
            target=candidate.target,
            key=key,
            digest=claim.digest,
            request=claim.request,
            allowance=allowance,
            rates=rates,
            quotas=quotas,
            nonce=None if claim.proof is None else nonce_of(candidate),
            wire_parent=bool(claim.marks) and names_parent(claim),
            once=None if candidate.delegation is None else once_of(candidate.delegation),
            later=later,
            listed=None
            if later is not None or claim.ask.context is None
            else make_listed(candidate, claim.ask.context, self._ids),
            now=candidate.now,
            grounds=write_grounds(grounds_of(candidate, admitted, rates, quotas)),
            resolution=None
            if claim.resolution is None
            else answer_of(claim.resolution, candidate.shown),
        )

    def _quotas(self, tokens: Quota | None, later: Later | None) -> tuple[Quota, ...]:
        quotas = () if tokens is None else (tokens,)
        if later is None or self._by is None:
            return quotas
        return (*quotas, unfinished(later, self._by.tasks_per_sender))

    def _rates(self, candidate: Candidate) -> tuple[Rate, ...]:
        by = self._by
        rates: tuple[Rate, ...] = ()
        if by is not None and candidate.claim.proof is not None:
            agent = f"agent:{candidate.target.name}"
            sender = bucket_of(counted_as(candidate))
            rates = (
                Rate(bucket=sender, calls=by.sender_calls, seconds=MINUTE),
                Rate(bucket=agent, calls=by.agent_calls, seconds=MINUTE),
            )
        token = candidate.shown
        if token is None or token.rate_calls is None:
            return rates
        bucket = f"token:{token.n}"
        own = Rate(bucket=bucket, calls=token.rate_calls, seconds=token.rate_seconds)
        return (*rates, own)

    def _document(self, candidate: Candidate) -> Carnet:
        position, target = candidate.position, candidate.target
        deadline = candidate.deadline
        if not candidate.claim.is_task:  # the time that a task may take begins when it runs
            deadline = deadline_of(deadline, target, self._clock)
        run = position.run or f"conv_{self._ids.ordered_uuid()}"
        return Carnet(
            run=run,
            turn=position.turn or f"turn_{self._ids.uuid()}",
            depth=position.depth,
            last_depth=position.last_depth,
            bound_by=position.bound_by,
            parent_turn=position.parent_turn,
            speaker=position.speaker,
            run_is_ours=position.run is None,
            path=candidate.path,
            on_behalf_of=candidate.on_behalf_of,
            deadline=deadline,
            budget=candidate.budget,
            trace=candidate.claim.trace,
        )
