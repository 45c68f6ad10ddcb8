"""What bounds a call: who pays for it, how many are open, how often and how many in all.

Rates: has a sender used up its rate? The store counts, in the transaction of the claim, calls whose
signature held. What stands here is a memory of what it said: until then the sender's requests need
not be verified to be refused.

Runs: how many calls has one caller made within one run? The store bounds the calls of a run for
each payer. A peer that vouches for payers could name a new one for every call; this bound holds
whoever pays.

Law 1. A forwarded credential is honoured from listed callers alone; from anybody else the call is
       refused and nobody is billed in its place.
Law 2. A forwarded credential of our own issue pays or is refused; it is never replaced.
Law 3. One that is not ours becomes an account of the caller that vouches for it, bounded by what
       that caller may owe.
Law 4. Who signs and brings no token pays for itself: a listed peer up to its credit, a stranger
       nothing at all. Who calls for somebody that has agreed to pay has it debited to that account,
       which it answers for (R41). The subjects of an access token share what its issuer may owe.
Law 5. Open calls are counted in this process, per caller and in all; whoever enters leaves,
       whatever happens.
Law 6. A peer can give itself as many names as it likes: they share one quota and one rate.
Law 7. It may only refuse, and never longer than the store said. What an agent is asked for by all,
       or a token has used up, is no sender's fault and is not remembered here.
Law 8. Forged requests are counted nowhere: they can use up nobody's rate.
Law 9. It is bounded: the sender that was refused first is forgotten first.
Law 10. Counted in this process, for the runs that were seen last; the store's own count is the one
       that survives and that processes share.
Law 11. A repeat of a known turn is no new call.
"""

from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import Final

from carnet.core.chain.carnet import Position
from carnet.core.memo import Memo
from carnet.core.people.address import AGENT, host_of
from carnet.core.people.grant import consented, payer_of
from carnet.core.people.identity import Account, Caller, Payer, Secret, Token
from carnet.core.people.proof import SECOND_US, Proof
from carnet.errors import (
    ForwardingNotAllowed,
    Overloaded,
    PayerRefused,
    PermissionMissing,
    RateLimited,
    TooManyCalls,
    TooManyStreams,
)
from carnet.guards.candidate import Candidate
from carnet.guards.payments import Payers, PaymentJudge
from carnet.guards.readers import Readers
from carnet.ports.calls.agent import Target
from carnet.ports.trust.trust import Peers, Tokens

PAY: Final = "pay"
MOST_REMEMBERED: Final = 4096


def is_origin(position: Position) -> bool:
    """Whether the chain begins here: no agent called before us."""
    return position.depth == 0 and position.parent_turn is None


class Paying:
    """Finds the payer of a claim."""

    def __init__(
        self,
        *,
        tokens: Tokens,
        peers: Peers,
        domain: str,
        payers: Payers | None = None,
        currency: str = "",
    ) -> None:
        """`domain` is ours: the issuer of our own tokens' accounts; `currency` our ledger's.

        `payers` verify the payments that calls bring along.
        """
        self._tokens = tokens
        self._peers = peers
        self._domain = domain
        self._payments = PaymentJudge(payers or Payers({}), currency)
        # Of tokens that pay for themselves.
        self._payers: Memo[int, tuple[Token, Payer]] = Memo(MOST_REMEMBERED)

    def __call__(self, candidate: Candidate, /) -> Awaitable[None] | None:
        """Prove the payer, and keep what may be forwarded."""
        claim, target = candidate.claim, candidate.target
        if claim.forwarded is not None or claim.payment is not None:
            return self._brought(candidate)
        if claim.proof is not None:
            payer = self._signed(candidate, claim.proof)
            # A document names who pays; and a turn that goes on is billed to whom it was (R41).
            if candidate.evidence and claim.proof.document is None and claim.resolution is None:
                payer = consented(payer, candidate.evidence, claim.proof.sender)
            check_pay(candidate.caller, target)
        elif candidate.grant is not None:
            payer = payer_of(candidate.grant)
            check_pay(candidate.caller, target)
        else:
            payer = self._remembered(candidate.token)
            peer = candidate.token.peer
            if candidate.evidence and peer is not None and claim.resolution is None:
                payer = consented(payer, candidate.evidence, AGENT + peer)
            if candidate.token.forwardable and is_origin(candidate.position):
                candidate.credential = claim.authorization  # tangle:authorization:origin
            check_pay(candidate.caller, target)
        if target.is_remote and target.auth_source == "agent-owned":
            payer, candidate.credential = self.agent_account(target.name), None
        candidate.payer = payer
        return None

    def _brought(self, candidate: Candidate) -> Awaitable[None] | None:
        """Prove the payer of a claim that brings a payment, or somebody's credential."""
        target, shown = candidate.target, self._payments.shown(candidate)
        is_owned = target.is_remote and target.auth_source == "agent-owned"
        if shown is not None and not is_owned:  # else it is not needed
            check_pay(candidate.caller, target)
            return self._payments.verify(candidate, shown, self._quota_of(candidate))
        forwarded = candidate.claim.forwarded
        if shown is None and forwarded is not None:
            candidate.payer = self._forwarded(candidate, forwarded)
            candidate.credential = forwarded
        if is_owned:
            candidate.payer, candidate.credential = self.agent_account(target.name), None
        return None

    def _quota_of(self, candidate: Candidate) -> str:
        """That of whoever calls."""
        if candidate.claim.proof is not None:
            return self._signed(candidate, candidate.claim.proof).quota
        if candidate.grant is not None:
            return payer_of(candidate.grant).quota
        return self._remembered(candidate.token).quota

    def _forwarded(self, candidate: Candidate, forwarded: Secret) -> Payer:
        actor = candidate.caller.actor
        if not actor.may_forward:
            raise ForwardingNotAllowed
        credential = Secret(forwarded.reveal().partition(" ")[2])
        token = self._tokens.find(credential)
        if token is not None:
            # The principal's rights hold as well as the caller's (A35).
            may = _may_pay(token, candidate.target) and token.may(candidate.target.needs)
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
            account = Account(self._domain, token.payer or token.account)
            quota = f"token:{token.account}"
        return Payer(
            account=account,
            quota=quota,
            limit=self._credit(token),
            own_issue=token.peer is None,
            by_forwarding=by_forwarding,
            person=token.person,
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
    return not target.may_cost or token.may(PAY)


class OpenCalls:
    """How many calls and streams are open, of each caller and in all."""

    __slots__ = ("by_caller", "count", "readers", "streams")

    def __init__(self) -> None:
        """There are none."""
        self.by_caller: dict[str, int] = {}
        self.streams: dict[str, int] = {}
        self.readers = Readers()  # of what was recorded
        self.count = 0


class Concurrency:
    """The open calls of each caller, and how many of them are streamed."""

    def __init__(
        self,
        *,
        per_caller: int,
        in_all: int,
        streams: int | None = None,
        former: "Concurrency | None" = None,
    ) -> None:
        """All bounds hold; `streams` is for each caller, by default as many as calls.

        Those that have entered by a `former` one are counted together with ours.
        """
        self._per_caller = per_caller
        self._in_all = in_all
        self._most_streams = per_caller if streams is None else streams
        calls = OpenCalls() if former is None else former.calls
        self.calls: OpenCalls = calls
        self._open, self._streams, self.readers = calls.by_caller, calls.streams, calls.readers

    @property
    def total(self) -> int:
        """How many are open."""
        return self.calls.count

    def enter(self, actor: str, *, stream: bool = False) -> None:
        """Count one more, or refuse."""
        here = self._open.get(actor, 0)
        if here >= self._per_caller:
            raise TooManyCalls(limit=self._per_caller, retry_after=1)
        if self.calls.count >= self._in_all:
            raise Overloaded(retry_after=1)
        if stream:
            self._enter_stream(actor)
        self._open[actor] = here + 1
        self.calls.count += 1

    def leave(self, actor: str, *, stream: bool = False) -> None:
        """Count one less, of the kind that entered."""
        left = self._open[actor] - 1
        if left:
            self._open[actor] = left
        else:
            del self._open[actor]
        if stream:
            self._leave_stream(actor)
        self.calls.count -= 1

    @contextmanager
    def watching(self, actor: str) -> Iterator[None]:
        """Count a stream that is no call: somebody follows the events of a run."""
        self._enter_stream(actor)
        try:
            yield
        finally:
            self._leave_stream(actor)

    def _enter_stream(self, actor: str) -> None:
        streams = self._streams.get(actor, 0)
        if streams >= self._most_streams:
            raise TooManyStreams(limit=self._most_streams, retry_after=1)
        self._streams[actor] = streams + 1

    def _leave_stream(self, actor: str) -> None:
        left = self._streams.pop(actor) - 1
        if left:
            self._streams[actor] = left


def counted_as(candidate: Candidate) -> str:
    """The sender whose rate and quotas a claim uses that is signed, or brings an access token."""
    if candidate.grant is not None:  # each user of an issuer has its own
        return candidate.caller.actor.name
    peer = candidate.peer
    return candidate.proof.sender if peer is None else AGENT + peer.domain


MOST_RATES: Final = 4096


def bucket_of(sender: str) -> str:
    """Where the calls of a sender are counted."""
    return f"sender:{sender}"


class WithinRate:
    """Refuses a sender that was told to wait, while it must."""

    def __init__(self, most: int = MOST_RATES) -> None:
        """Remember at most so many senders."""
        self._until: Memo[str, int] = Memo(most)

    def __call__(self, candidate: Candidate, /) -> None:
        """Judge by what is remembered."""
        sender = candidate.proof.sender
        if sender not in self._until:
            return
        left = self._until[sender] - candidate.now
        if left > 0:
            raise RateLimited(retry_after=-(-left // SECOND_US))
        del self._until[sender]

    def remember(self, sender: str, now: int, seconds: int) -> None:
        """The store told the sender to wait so long."""
        self._until.keep(sender, now + seconds * SECOND_US)

    def __len__(self) -> int:
        """How many senders are remembered."""
        return len(self._until)


MOST_RUNS: Final = 8192

Key = tuple[str, str]


class Runaway:
    """The calls of each caller in each run."""

    def __init__(self, most_calls: int) -> None:
        """`most_calls` is what one caller may make in one run."""
        self._most_calls = most_calls
        self._counts: Memo[Key, int] = Memo(MOST_RUNS)

    def enter(self, run: str, actor: str) -> bool:
        """Count one more; False if there is no room for a new one."""
        key = (run, actor)
        count = self._counts.get(key, 0)
        if count >= self._most_calls:
            return False
        self._counts.keep(key, count + 1)
        return True

    def leave(self, run: str, actor: str) -> None:
        """Count one less: it was refused after all, or was known."""
        key = (run, actor)
        count = self._counts.get(key, 0)
        if count > 1:
            self._counts[key] = count - 1
        else:
            self._counts.pop(key, None)
