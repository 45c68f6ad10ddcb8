"""Who pays?

Law 1. A forwarded credential is honoured from listed callers alone; from anybody else the call is
       refused and nobody is billed in its place.
Law 2. A forwarded credential of our own issue pays or is refused; it is never replaced.
Law 3. One that is not ours becomes an account of the caller that vouches for it, bounded by what
       that caller may owe.
Law 4. Who signs and brings no token pays for itself: a listed peer up to its credit, a stranger
       nothing at all.
"""

from carnet.core.chain.carnet import Position
from carnet.core.memo import Memo
from carnet.core.people.address import host_of
from carnet.core.people.identity import Account, Caller, Payer, Secret, Token, allows
from carnet.core.people.proof import Proof
from carnet.errors import ForwardingNotAllowed, PayerRefused, PermissionMissing
from carnet.guards.candidate import Candidate
from carnet.ports.trust.trust import Peers, Tokens
from carnet.ports.work.agent import Target

PAY = "pay"
MOST_REMEMBERED = 4096


def is_origin(position: Position) -> bool:
    """Whether the chain begins here: no agent called before us."""
    return position.depth == 0 and position.parent_turn is None


class Paying:
    """Finds the payer of a claim."""

    def __init__(self, *, tokens: Tokens, peers: Peers, domain: str) -> None:
        """`domain` is ours: the issuer of our own tokens' accounts."""
        self._tokens = tokens
        self._peers = peers
        self._domain = domain
        # Of tokens that pay for themselves.
        self._payers: Memo[int, tuple[Token, Payer]] = Memo(MOST_REMEMBERED)

    def __call__(self, candidate: Candidate, /) -> None:
        """Prove the payer, and keep what may be forwarded."""
        claim, target = candidate.claim, candidate.target
        if claim.forwarded is not None:
            payer = self._forwarded(candidate, claim.forwarded)
            candidate.credential = claim.forwarded
        elif claim.proof is not None:
            payer = self._signed(candidate, claim.proof)
            check_pay(candidate.caller, target)
        else:
            payer = self._remembered(candidate.token)
            if candidate.token.forwardable and is_origin(candidate.position):
                candidate.credential = claim.authorization  # tangle:authorization:origin
            check_pay(candidate.caller, target)
        if target.is_remote and target.auth_source == "agent-owned":
            payer, candidate.credential = self.agent_account(target.name), None
        candidate.payer = payer

    def _forwarded(self, candidate: Candidate, forwarded: Secret) -> Payer:
        actor = candidate.caller.actor
        if not actor.may_forward:
            raise ForwardingNotAllowed
        credential = Secret(forwarded.reveal().partition(" ")[2])
        token = self._tokens.find(credential)
        if token is not None:
            # The principal's rights hold as well as the caller's (A35).
            may = _may_pay(token, candidate.target) and allows(token.scopes, candidate.target.needs)
            if not token.is_live(candidate.now) or not may:
                raise PayerRefused
            return self._own(token, by_forwarding=True)
        check_pay(candidate.caller, candidate.target)  # whoever vouches answers for it
        issuer = actor.domain or actor.name
        return Payer(
            account=Account(issuer, self._tokens.fingerprint(credential)),
            quota=actor.name,
            limit=self._credit_of(candidate),
            own_issue=False,
            by_forwarding=True,
        )

    def _credit_of(self, candidate: Candidate) -> int | None:
        """What whoever vouches may owe: its token says, or the peer that signed."""
        if candidate.claim.proof is None:
            return self._credit(candidate.token)
        return candidate.peer.credit if candidate.peer is not None else 0

    def _signed(self, candidate: Candidate, proof: Proof) -> Payer:
        principal, peer = candidate.principal, candidate.peer
        if principal is not None:
            if principal.forwardable and proof.auth is not None and is_origin(candidate.position):
                candidate.credential = Secret(f"Bearer {proof.auth.reveal()}")
            return self._remembered(principal)
        if peer is not None:
            document = proof.document
            return Payer(
                account=Account(peer.domain, peer.domain) if document is None else document.account,
                quota=f"peer:{peer.domain}",
                limit=peer.credit,
                own_issue=False,
            )
        return Payer(
            account=Account(host_of(proof.sender), proof.sender),
            quota=f"sender:{proof.sender}",
            limit=0,
            own_issue=False,
        )

    def _remembered(self, token: Token) -> Payer:
        if token.peer is not None:  # a peer's credit may be another by now
            return self._own(token)
        if token.n in self._payers:
            known, payer = self._payers[token.n]
            if known is token:
                return payer
        return self._payers.keep(token.n, (token, self._own(token)))[1]

    def _own(self, token: Token, *, by_forwarding: bool = False) -> Payer:
        if token.peer is not None:
            account = Account(token.peer, token.peer)
            quota = f"peer:{token.peer}"
        else:
            account = Account(self._domain, token.account)
            quota = f"token:{token.account}"
        return Payer(
            account=account,
            quota=quota,
            limit=self._credit(token),
            own_issue=token.peer is None,
            by_forwarding=by_forwarding,
        )

    def _credit(self, token: Token) -> int | None:
        if token.peer is None:
            return token.spending_limit
        peer = self._peers.find(token.peer)
        credit = peer.credit if peer else 0
        return credit if token.spending_limit is None else min(credit, token.spending_limit)

    def agent_account(self, agent: str) -> Payer:
        """The account of one of our own agents, which pays for what it calls `agent-owned`."""
        return Payer(account=Account(self._domain, f"agent:{agent}"), quota=f"agent:{agent}")


def check_pay(caller: Caller, target: Target) -> None:
    """Refuse a caller that may not spend, where a call may cost something."""
    if target.may_cost and not caller.may(PAY):
        raise PermissionMissing(permission=PAY)


def _may_pay(token: Token, target: Target) -> bool:
    return not target.may_cost or allows(token.scopes, PAY)
