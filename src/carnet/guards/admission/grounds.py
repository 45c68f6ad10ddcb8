"""What the guards found of a claim, for whoever asks later why it was admitted.

It is no guard: it refuses nothing.
"""

from carnet.core.call import Admitted
from carnet.core.chain.grounds import Grounds
from carnet.guards.candidate import Candidate
from carnet.ports.work.turns import Quota, Rate


def grounds_of(
    candidate: Candidate,
    admitted: Admitted,
    rates: tuple[Rate, ...],
    quotas: tuple[Quota, ...],
) -> Grounds:
    """What the guards found of a claim."""
    carnet, payer, target = admitted.carnet, admitted.payer, candidate.target
    token, peer, proof = candidate.shown, candidate.peer, candidate.claim.proof
    skill = candidate.skill
    return Grounds(
        by="token" if proof is None else "signature",
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
    )
