"""THE order of admission: which guards a claim passes, one after the other, and why there.

Law 1. A claim passes every guard, in this order, or becomes no call.
Law 2. A claim that brings a proof is judged by the proof: a token beside it only narrows.
"""

from msgspec import Struct

from carnet.core.call import Claim
from carnet.core.chain.carnet import DepthLimits
from carnet.core.people.address import Identities
from carnet.errors import SignatureInvalid, TokenInvalid
from carnet.guards.admission.transaction import CheckAnswer
from carnet.guards.caller.access_token import Granted, Grants
from carnet.guards.caller.authentication import KnownCaller, Listed
from carnet.guards.caller.delegation import Delegated, EndedLink, Fresh, InScope, no_link
from carnet.guards.caller.evidence import Evidenced
from carnet.guards.caller.platform_credential import CredentialsPresented
from carnet.guards.caller.sender import KnownSender
from carnet.guards.caller.trust import Trusted
from carnet.guards.candidate import Guard
from carnet.guards.limits import Paying, WithinRate
from carnet.guards.payments import Payers
from carnet.guards.proof.replay import Unrepeated
from carnet.guards.proof.signature import Addressed, in_time, signed
from carnet.guards.proof.travel import Travelled, Unlooped, travels
from carnet.guards.target.access import OnList
from carnet.guards.target.injection import Scan, Scanned
from carnet.guards.target.target import (
    CallbackCheck,
    CalledBack,
    KnownAgent,
    WellFormed,
    WithinChain,
    known_skill,
    permitted,
)
from carnet.ports.calls.admission import HasEnded, never
from carnet.ports.calls.agent import Router
from carnet.ports.calls.tasks import Tasks
from carnet.ports.money.budgets import Budgets
from carnet.ports.trust.callers import NO_CALLERS, CallerHosts
from carnet.ports.trust.keys import KeyRing
from carnet.ports.trust.nonces import SingleUses
from carnet.ports.trust.policy import OperatorPolicy
from carnet.ports.trust.schemas import Schemas
from carnet.ports.trust.trust import Peers, Tokens
from carnet.ports.world.clock import Clock, Ids


class GateParts(Struct, frozen=True, kw_only=True, eq=False):
    """What every claim is judged with."""

    router: Router
    tokens: Tokens
    peers: Peers
    clock: Clock
    ids: Ids
    domain: str  # ours
    depths: DepthLimits
    budgets: Budgets | None = None  # those that operators have set
    has_ended: HasEnded = never  # whether what let a call in was revoked meanwhile
    callers: CallerHosts = NO_CALLERS  # hosts whose caller contexts can be verified
    payers: Payers | None = None  # who verifies the payments that calls bring
    policy: OperatorPolicy | None = None  # that may deny what the guards would let pass


class Signed(Struct, frozen=True, kw_only=True, eq=False):
    """What claims that bring a proof are judged with."""

    keys: KeyRing
    identities: Identities  # of our agents
    url: str = ""  # where others reach this gateway
    schemas: Schemas
    check_answer: CheckAnswer | None = None  # refuses a value that was not asked for
    scan: Scan
    currency: str  # of our ledger
    sender_calls: int  # a minute, of one sender
    agent_calls: int  # a minute, of all senders to one agent
    tasks: Tasks | None = None  # those that were accepted
    tasks_per_sender: int = 1000  # unfinished ones, at one agent
    callbacks: CallbackCheck | None = None  # judges where a task may call back to
    ended: EndedLink = no_link  # which link of a delegation was ended here
    fresh: Fresh | None = None  # refuses a delegation that its issuer has ended elsewhere
    evidenced: Evidenced | None = None  # verifies what others vouch for
    presented: CredentialsPresented | None = None  # and what platforms say of who uses them
    on_list: OnList | None = None  # refuses who is not on the list of an agent
    grants: Grants | None = None  # verifies access tokens of configured issuers
    nonces: SingleUses | None = None  # what is used once beside the claims of turns


class Order:
    """The guards of claims with a token and of claims with a proof."""

    def __init__(self, parts: GateParts, paying: Paying, by: Signed | None) -> None:
        """Without `by` no signature is believed."""
        last_depth = parts.depths.default
        self.paying = paying
        self._within_chain = WithinChain(parts.callers, last_depth)
        self._known_agent = KnownAgent(parts.router, last_depth)
        self.called_back = CalledBack(None if by is None else by.callbacks)
        self.unrepeated = Unrepeated()
        self.within_rate = WithinRate()
        listing = self._listing(parts, by)
        self.by_token: tuple[Guard, ...] = (
            # Size and shape were judged while reading; malformed stamps never become a claim.
            KnownCaller(parts.tokens, Listed(parts.peers)),  # a stranger is told nothing
            # Before any look-up that a runaway chain could make us repeat.
            self._within_chain,
            self._known_agent,  # there must be someone to hold rights on
            known_skill,  # and it must be one to talk to
            permitted,  # rights before shape and money: who may not call cannot be billed
            *listing,  # the agent's own list after the gateway's rights
            *(() if by is None else (WellFormed(by.schemas),)),
            paying,  # the last thing to know before the transaction
        )
        known, *after = self.by_token
        self.by_proof = () if by is None else self._proving(parts, by)
        # The same with what others vouch for, once it is known who brings it.
        guards = () if by is None else (by.evidenced, by.presented)
        vouched: tuple[Guard, ...] = tuple([guard for guard in guards if guard is not None])
        self.by_token_vouched = (known, *vouched, *after)
        self.by_proof_vouched = () if by is None else self._proving(parts, by, vouched)
        granted = () if by is None or by.grants is None else (Granted(by.grants), *vouched)
        self.by_grant: tuple[Guard, ...] = (*granted, *after) if granted else ()
        # Whose signature it is, before what it says is read: all of them are asked again then.
        self.by_head: tuple[Guard, ...] = ()
        # And of who brings a credential with a question about what exists.
        self.by_question: tuple[Guard, ...] = ()
        if by is not None:
            sender = KnownSender(by.keys, parts.peers, parts.router)
            self.by_head = (in_time, sender, signed, travels)
            addressed = Addressed(by.identities, parts.domain, by.url)
            self.by_question = (in_time, self.unrepeated, sender, signed, addressed)

    def chosen(self, claim: Claim) -> tuple[Guard, ...]:
        """The guards of a claim, by what it brings: a proof, an access token, or ours."""
        if claim.proof is not None:
            if not self.by_proof:
                raise SignatureInvalid("this gate knows no keys")
            return self.by_proof if claim.carried is None else self.by_proof_vouched
        if claim.access is not None:
            if not self.by_grant:
                raise TokenInvalid
            return self.by_grant
        return self.by_token if claim.carried is None else self.by_token_vouched

    def _listing(self, parts: GateParts, by: Signed | None) -> tuple[Guard, ...]:
        """The guard of agents that have a list, where one has: else it costs nothing."""
        has_lists = any(own.allow is not None for own in parts.router.local())
        return () if by is None or by.on_list is None or not has_lists else (by.on_list,)

    def _proving(
        self, parts: GateParts, by: Signed, vouched: tuple[Guard, ...] = ()
    ) -> tuple[Guard, ...]:
        """The guards of a claim that brings a proof, in the order of the protocol's answers."""
        peers, clock, domain = parts.peers, parts.clock, parts.domain
        return (
            in_time,  # so that nonces need to be remembered for minutes only
            self.unrepeated,  # a replay is told as one, whatever else is wrong with it
            self.within_rate,  # and a sender over its rate costs no verification
            KnownSender(by.keys, peers, parts.router),  # what the signature must hold under
            signed,  # before this line nothing that the request says is believed
            Addressed(by.identities, domain, by.url),  # signed bytes are good for one recipient
            *vouched,  # nothing is fetched for a stranger's word before it is known who brings it
            self._within_chain,  # depth first, which no setting lifts
            Travelled(clock),  # then what the sender has written into its travel document
            # And what was delegated to it, which narrows that once more.
            Delegated(by.keys, peers, clock, by.identities, domain, parts.depths.default, by.ended),
            Scanned(by.scan, parts.router),  # of proved senders, before they are told anything
            self._known_agent,
            Unlooped(domain),  # the way it came must not have passed this agent
            known_skill,
            InScope(domain, by.fresh),  # now that it is known what is asked, and of whom
            # Rights before shape, and before money.
            Trusted(parts.tokens, parts.router, parts.depths.default),
            *self._listing(parts, by),
            WellFormed(by.schemas),
            self.called_back,  # may wait for a look-up, so of those alone that may call
            self.paying,
        )
