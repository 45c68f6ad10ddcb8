"""What the guards found of a claim, in the words of `core.chain.grounds`."""

from collections.abc import Iterable

from carnet.core.call import Admitted
from carnet.core.chain.grounds import By, Grounds
from carnet.core.people.evidence import Evidence
from carnet.guards.candidate import Candidate
from carnet.ports.calls.turns import Quota, Rate


def grounds_of(
    candidate: Candidate, admitted: Admitted, rates: tuple[Rate, ...], quotas: tuple[Quota, ...]
) -> Grounds:
    """What the guards found of a claim."""
    carnet, payer, target = admitted.carnet, admitted.payer, candidate.target
    token, peer, proof = candidate.shown, candidate.peer, candidate.claim.proof
    skill = candidate.skill
    by: By = "signature"
    if proof is None:
        by = "token" if candidate.grant is None else "a2a-oauth"
    elif proof.profile == "jwt":
        by = "a2a-jwt"
    return Grounds(
        by=by,
        caller=admitted.caller.actor.name,
        token=None if token is None else token.name,
        sender=None if proof is None else proof.sender,
        key=None if proof is None else proof.keyid,
        peer=None if peer is None else peer.domain,
        document=admitted.document is not None,
        delegation=0 if admitted.delegation is None else len(admitted.delegation.chain()),
        depth=carnet.depth,
        last_depth=carnet.last_depth,
        stamp=carnet.bound_by,
        agent=target.name,
        skill=admitted.ask.skill,
        checked=admitted.ask.payload is not None,
        callback=admitted.callback is not None,
        needs=target.needs,
        trust=(None if skill is None else skill.trust) or target.trust,
        payer=str(payer.account),
        forwarded=payer.by_forwarding,
        limit=payer.limit,
        reserve=admitted.reserve,
        rates=tuple([rate.bucket for rate in rates]) if rates else (),
        quotas=tuple([quota.name for quota in quotas]) if quotas else (),
        subject=None if proof is None else proof.subject,
        evidence=_shown(candidate.evidence) if candidate.evidence else (),
        faults=candidate.faults,
        allowed=target.allow is not None,
    )


def _shown(evidence: Iterable[Evidence]) -> tuple[str, ...]:
    """Evidence in a few words: who, for whom, by whose word."""
    return tuple(
        [
            f"{each.subject}{'' if each.principal is None else f' for {each.principal}'}"
            f", by {each.issuer}"
            for each in evidence
        ]
    )
