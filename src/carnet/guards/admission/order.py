"""THE order of admission: which guards a claim passes, one after the other, and why there.

Law 1. A claim passes every guard, in this order, or becomes no call.
Law 2. A claim that brings a proof is judged by the proof: a token beside it only narrows.
"""

from msgspec import Struct

from carnet.core.chain.carnet import DepthLimits
from carnet.core.people.address import Identities
from carnet.guards.admission.transaction import CheckAnswer
from carnet.guards.caller.authentication import KnownCaller, Listed
from carnet.guards.caller.delegation import Delegated, EndedLink, Fresh, InScope, no_link
from carnet.guards.caller.sender import KnownSender
from carnet.guards.caller.trust import Trusted
from carnet.guards.candidate import Guard
from carnet.guards.limits import Paying, WithinRate
from carnet.guards.proof.replay import Unrepeated
from carnet.guards.proof.signature import Addressed, in_time, signed
from carnet.guards.proof.travel import Travelled, Unlooped, travels
from carnet.guards.target.injection import Scan, Scanned
from carnet.guards.target.target import (
    CallbackCheck,
    CalledBack,
    KnownAgent,
    WellFormed,
    known_skill,
    permitted,
    within_chain,
)
from carnet.ports.calls.admission import HasEnded, never
from carnet.ports.calls.agent import Router
from carnet.ports.calls.tasks import Tasks
from carnet.ports.trust.keys import KeyRing
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
    has_ended: HasEnded = never  # whether what let a call in was revoked meanwhile


class Signed(Struct, frozen=True, kw_only=True, eq=False):
    """What claims that bring a proof are judged with."""

    keys: KeyRing
    identities: Identities  # of our agents
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


class Order:
    """The guards of claims with a token and of claims with a proof."""

    def __init__(self, parts: GateParts, paying: Paying, by: Signed | None) -> None:
        """Without `by` no signature is believed."""
        self.paying = paying
        self.called_back = CalledBack(None if by is None else by.callbacks)
        self.unrepeated = Unrepeated()
        self.within_rate = WithinRate()
        self.by_token: tuple[Guard, ...] = (
            # Size and shape were judged while reading; malformed stamps never become a claim.
            KnownCaller(parts.tokens, Listed(parts.peers)),  # a stranger is told nothing
            within_chain,  # before any look-up that a runaway chain could make us repeat
            KnownAgent(parts.router),  # there must be someone to hold rights on
            known_skill,  # and it must be one to talk to
            permitted,  # rights before shape and money: who may not call cannot be billed
            *(() if by is None else (WellFormed(by.schemas),)),
            paying,  # the last thing to know before the transaction
        )
        self.by_proof = () if by is None else self._proving(parts, by)
        # Whose signature it is, before what it says is read: all of them are asked again then.
        self.by_head: tuple[Guard, ...] = ()
        if by is not None:
            self.by_head = (in_time, KnownSender(by.keys, parts.peers), signed, travels)

    def _proving(self, parts: GateParts, by: Signed) -> tuple[Guard, ...]:
        """The guards of a claim that brings a proof, in the order of the protocol's answers."""
        peers, clock, domain = parts.peers, parts.clock, parts.domain
        return (
            in_time,  # so that nonces need to be remembered for minutes only
            self.unrepeated,  # a replay is told as one, whatever else is wrong with it
            self.within_rate,  # and a sender over its rate costs no verification
            KnownSender(by.keys, peers),  # what the signature must hold under
            signed,  # before this line nothing that the request says is believed
            Addressed(by.identities, domain),  # signed bytes are good for one recipient
            within_chain,  # depth first, which no setting lifts
            Travelled(clock),  # then what the sender has written into its travel document
            # And what was delegated to it, which narrows that once more.
            Delegated(by.keys, peers, clock, by.identities, domain, parts.depths.default, by.ended),
            Scanned(by.scan, parts.router),  # of proved senders, before they are told anything
            KnownAgent(parts.router),
            Unlooped(domain),  # the way it came must not have passed this agent
            known_skill,
            InScope(domain, by.fresh),  # now that it is known what is asked, and of whom
            Trusted(parts.tokens, parts.router),  # rights before shape, and before money
            WellFormed(by.schemas),
            self.called_back,  # may wait for a look-up, so of those alone that may call
            self.paying,
        )
