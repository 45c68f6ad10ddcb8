"""Is this signed caller trusted as far as the skill asks for?

    public          whoever's signature holds
    authenticated   who brings a token of ours beside the signature, or is a peer Carnet
    trusted-peers   whom the skill lists; without a list, the organisations listed as peers

An agent with `require_auth` asks all of them for a token, peers as well.

Law 1. A token beside a signature is verified like any other; a wrong one is never overlooked. Its
       holder becomes the principal: the one who pays, and whom the agent is told about.
Law 2. Rights are an intersection: what the sender is trusted with, and what its principal may do
       (A35). The gateway's own rights are never used, neither here nor in what an agent calls on
       behalf of this caller.
"""

from msgspec.structs import replace

from carnet.core.people.address import host_of
from carnet.core.people.identity import (
    Actor,
    Caller,
    Ceiling,
    Skill,
    Standing,
    Token,
    Trust,
    allows,
)
from carnet.core.people.permissions import both
from carnet.errors import SkillForbidden, TokenInvalid
from carnet.guards.candidate import Candidate
from carnet.guards.context import LAST_DEPTH, spend_depth
from carnet.ports.calls.agent import Router, Target
from carnet.ports.trust.trust import Tokens

PAY = "pay"
REMOTE = "call:remote"
BEARER = "bearer"
_NAMED = frozenset({"carnet", "jwt"})  # by which a peer says for itself who calls


def check_rights(caller: Caller, standing: Standing, target: Target, skill: Skill | None) -> None:
    """Refuse a caller that is not trusted with this, or that acts for one who may not do it."""
    if target.needs == REMOTE:
        trust: Trust = "trusted-peers"
        is_trusted = caller.may(REMOTE)
    else:
        trust = (skill.trust if skill is not None else None) or target.trust
        is_trusted = standing.meets(trust, None if skill is None else skill.allowed_peers)
    acts_for_nobody = caller.principal is None
    if target.require_auth and acts_for_nobody:
        raise SkillForbidden("every caller must bring a token", trust="authenticated")
    denied = caller.ceiling.deny
    is_denied = allows(denied, target.needs) if denied else False
    may = acts_for_nobody or allows(caller.scopes, target.needs)
    if not (is_trusted and may) or is_denied:
        raise SkillForbidden(trust=trust)


class Trusted:
    """Finds out who a signed caller is to us, and what it may do."""

    def __init__(self, tokens: Tokens, router: Router, default: int = LAST_DEPTH) -> None:
        """`tokens` verify principals; `router` knows which agents ask for which trust.

        `default` is the last depth of a chain that no stamp bounds.
        """
        self._tokens = tokens
        self._router = router
        self._default = default
        self._rights: dict[tuple[bool, bool], frozenset[str]] = {}

    def __call__(self, candidate: Candidate, /) -> None:
        """Prove the caller, and that it may call this."""
        proof, peer, target = candidate.proof, candidate.peer, candidate.target
        principal = self._principal(candidate)
        candidate.principal = candidate.shown = principal
        standing = Standing(
            sender=proof.sender,
            listed=peer is not None,
            authenticated=principal is not None or (peer is not None and proof.profile in _NAMED),
            peer=None if peer is None else peer.domain,
            subject=proof.subject,
        )
        actor = Actor(
            name=f"sender:{proof.sender}" if peer is None else f"peer:{peer.domain}",
            how="a2a-jwt" if proof.profile == "jwt" else "signature",
            domain=host_of(proof.sender),
            may_forward=peer is not None and peer.may_forward,
        )
        if proof.subject is not None:
            candidate.speaks = f"#{proof.subject}"
        caller = _caller(actor, standing, self._rights_of(standing), principal)
        check_rights(caller, standing, target, candidate.skill)
        context = candidate.context
        candidate.caller = caller if context is None else replace(caller, context=context)
        if principal is not None:
            self._hold_to(candidate, principal)

    def _hold_to(self, candidate: Candidate, principal: Token) -> None:
        """Hold a call to the bounds of the token beside its signature."""
        if principal.agent is not None and principal.agent != candidate.target.name:
            raise SkillForbidden(trust="authenticated")
        if principal.chain_depth is not None:
            spend_depth(candidate, principal.chain_depth, "token", self._default)

    def _principal(self, candidate: Candidate) -> Token | None:
        proof = candidate.proof
        if proof.auth is None or (proof.auth_scheme or BEARER).lower() != BEARER:
            return None
        token = self._tokens.find(proof.auth)
        if token is None or not token.is_live(candidate.now):
            raise TokenInvalid
        return token

    def _rights_of(self, standing: Standing) -> frozenset[str]:
        """What callers of this standing may do, whichever agent is asked first."""
        key = (standing.listed, standing.authenticated)
        if key not in self._rights:
            needs = {own.needs for own in self._router.local() if standing.meets(own.trust)}
            rights = frozenset({PAY} | (needs - {REMOTE}))
            if standing.listed:
                rights |= {REMOTE}
            self._rights[key] = rights
        return self._rights[key]


def _caller(
    actor: Actor, standing: Standing, rights: frozenset[str], principal: Token | None
) -> Caller:
    if principal is None:
        return Caller(actor=actor, scopes=rights, standing=standing)
    most = principal.ceiling.allow
    holder = f"peer:{principal.peer}" if principal.peer else f"token:{principal.account}"
    return Caller(
        actor=actor,
        scopes=principal.scopes if most is None else both(principal.scopes, most),
        ceiling=Ceiling(allow=rights, deny=principal.ceiling.deny),
        principal=holder,
        standing=standing,
        token=principal.number,
        person=principal.person,
        agent=principal.agent,
        client=principal.client,
        workspace=principal.workspace,
        budgets=principal.budgets,
    )
