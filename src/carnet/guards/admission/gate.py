"""THE order of admission, and the gate itself.

Law 1. A claim passes every guard, in this order, or becomes no call.
Law 2. The last step is one transaction; what it refuses leaves no trace.
Law 3. A child made in process passes position, rights, budget and turn as well.
Law 4. A claim that brings a proof is judged by the proof: a token beside it only narrows.
"""

from collections.abc import Awaitable, Callable

import msgspec
from msgspec import Struct

from carnet.core.call import AGENT_OWNED, Admitted, Ask, Call, Claim
from carnet.core.chain.allowance import Allowance
from carnet.core.chain.carnet import Carnet, DepthLimits
from carnet.core.chain.grounds import write_grounds
from carnet.core.chain.turn import turn_key
from carnet.core.people.address import Identities
from carnet.core.sealed_call import Later
from carnet.errors import (
    KeyUnknown,
    NonceReplayed,
    PaymentRequired,
    PeerUnknown,
    RateLimited,
    SignatureInvalid,
    SkillForbidden,
    TokenInvalid,
)
from carnet.guards.admission.children import Children, deadline_of
from carnet.guards.admission.grounds import grounds_of
from carnet.guards.admission.transaction import Entry, Transaction, quote
from carnet.guards.caller.authentication import KnownCaller, Listed
from carnet.guards.caller.delegation import Delegated, InScope, once_of
from carnet.guards.caller.sender import KnownSender
from carnet.guards.caller.trust import Trusted
from carnet.guards.candidate import Candidate, Guard
from carnet.guards.limits.concurrency import Concurrency
from carnet.guards.limits.payer import Paying
from carnet.guards.limits.quota import counted_as, daily_tokens, make_later, unfinished
from carnet.guards.limits.rate import WithinRate, bucket_of
from carnet.guards.limits.runaway import Runaway
from carnet.guards.proof.replay import Unrepeated, nonce_of
from carnet.guards.proof.signature import Addressed, in_time, signed
from carnet.guards.proof.travel import Travelled, Unlooped
from carnet.guards.target.callback import Callbacks, CalledBack
from carnet.guards.target.chain import names_parent, within_chain
from carnet.guards.target.departure import check_credential, onward_carnet
from carnet.guards.target.injection import Scan, Scanned
from carnet.guards.target.skill import WellFormed, known_skill
from carnet.guards.target.target import KnownAgent, permitted
from carnet.ports.trust.keys import KeyRing
from carnet.ports.trust.schemas import Schemas
from carnet.ports.trust.trust import Peers, Tokens
from carnet.ports.work.agent import Router
from carnet.ports.work.tasks import Tasks
from carnet.ports.work.turns import Nonce, Quota, Rate, Turns
from carnet.ports.world.clock import Clock, Ids

MINUTE = 60


class Signed(Struct, frozen=True, kw_only=True, eq=False):
    """What claims that bring a proof are judged with."""

    keys: KeyRing
    identities: Identities  # of our agents
    schemas: Schemas
    scan: Scan
    currency: str  # of our ledger
    sender_calls: int  # a minute, of one sender
    agent_calls: int  # a minute, of all senders to one agent
    tasks: Tasks | None = None  # those that were accepted
    tasks_per_sender: int = 1000  # unfinished ones, at one agent
    callbacks: Callbacks | None = None  # judges where a task may call back to


class Gate:
    """Admits claims and children."""

    def __init__(
        self,
        *,
        router: Router,
        tokens: Tokens,
        peers: Peers,
        turns: Turns,
        clock: Clock,
        ids: Ids,
        domain: str,
        depths: DepthLimits,
        concurrency: Concurrency,
        most_run_calls: int,
        look_again: Callable[[], Awaitable[bool]],
        by_proof: Signed | None = None,
    ) -> None:
        """Everything the guards look things up in.

        `look_again` reads what is known of tokens, peers and keys anew, and tells whether it
        changed. Without `by_proof` no signature is believed.
        """
        self._look_again = look_again
        self._router = router
        self._tokens = tokens
        self._clock = clock
        self._ids = ids
        self._domain = domain
        self._last_depth = depths.default
        self._concurrency = concurrency
        self._most_run_calls = most_run_calls
        tasks = None if by_proof is None else by_proof.tasks
        self._called_back = CalledBack(None if by_proof is None else by_proof.callbacks)
        self._transaction = Transaction(turns, clock, most_run_calls=most_run_calls, tasks=tasks)
        self._runaway = Runaway(most_run_calls)
        self._paying = Paying(tokens=tokens, peers=peers, domain=domain)
        self._by_proof = by_proof
        self._children = self._child_admission(router, by_proof)
        self._unrepeated = Unrepeated()
        self._within_rate = WithinRate()
        self._guards: tuple[Guard, ...] = (
            # Size and shape were judged while reading; malformed stamps never become a claim.
            KnownCaller(tokens, Listed(peers)),  # nothing is told to somebody we do not know
            within_chain,  # before any look-up that a runaway chain could make us repeat
            KnownAgent(router),  # there must be someone to hold rights on
            known_skill,  # and it must be one to talk to
            permitted,  # rights before shape and money: who may not call cannot be billed
            *(() if by_proof is None else (WellFormed(by_proof.schemas),)),
            self._paying,  # the last thing to know before the transaction
        )
        self._proof_guards = () if by_proof is None else self._proving(by_proof, peers)

    def _child_admission(self, router: Router, by: Signed | None) -> Children:
        return Children(
            router=router,
            clock=self._clock,
            transaction=self._transaction,
            paying=self._paying,
            schemas=None if by is None else by.schemas,
            domain=self._domain,
            last_depth=self._last_depth,
            currency="" if by is None else by.currency,
        )

    def _proving(self, by: Signed, peers: Peers) -> tuple[Guard, ...]:
        """The guards of a claim that brings a proof, in the order of the protocol's answers."""
        return (
            in_time,  # so that nonces need to be remembered for minutes only
            self._unrepeated,  # a replay is told as one, whatever else is wrong with it
            self._within_rate,  # and a sender over its rate costs no verification
            KnownSender(by.keys, peers),  # what the signature must hold under
            signed,  # before this line nothing that the request says is believed
            Addressed(by.identities, self._domain),  # signed bytes are good for one recipient
            within_chain,  # depth first, which no setting lifts
            Travelled(self._clock),  # then what the sender has written into its travel document
            Delegated(  # and what was delegated to it, which narrows that once more
                by.keys, peers, self._clock, by.identities, self._domain, self._last_depth
            ),
            Scanned(by.scan, self._router),  # of proved senders, before they are told anything
            KnownAgent(self._router),
            Unlooped(self._domain),  # the way it came must not have passed this agent
            known_skill,
            InScope(self._domain),  # now that it is known what is asked, and of whom
            Trusted(self._tokens, self._router),  # rights before shape, and before money
            WellFormed(by.schemas),
            self._called_back,  # may wait for a look-up, so of those alone that may call
            self._paying,
        )

    async def admit(self, claim: Claim) -> Call:
        """Show a claim to every guard; then claim its turn.

        The call counts as open; whoever answers it calls `concurrency.leave` at its end. A task
        no longer counts when it is accepted.
        """
        is_plain = claim.proof is None and claim.callback is None and claim.forwarded is None
        has_looked = False
        while True:
            try:
                candidate = self._examine(claim) if is_plain else await self._examine_all(claim)
                entry = self._entry(candidate)
                actor = candidate.caller.actor.name
                self._concurrency.enter(actor, stream=claim.ask.stream)
                try:
                    # In a run of our own nobody else can have made a call yet.
                    is_alone = entry.nonce is None and entry.admitted.carnet.run_is_ours
                    claim_turn = self._transaction.claim if is_alone else self._claim_once
                    call = await claim_turn(entry)
                except BaseException:
                    self._concurrency.leave(actor, stream=claim.ask.stream)
                    raise
            except (TokenInvalid, PeerUnknown, PaymentRequired, KeyUnknown, SkillForbidden):
                if has_looked or not await self._look_again():  # perhaps granted a moment ago
                    raise
                has_looked = True
            else:
                if claim.is_task:  # nobody waits for it
                    self._concurrency.leave(actor, stream=claim.ask.stream)
                if candidate.shown is not None:
                    self._tokens.used(candidate.shown, candidate.now)
                return call

    def _examine(self, claim: Claim) -> Candidate:
        """Judge a claim by its token alone, where nothing has to be waited for."""
        candidate = Candidate(claim, self._clock.wall_us())
        for guard in self._guards:
            guard(candidate)
        return candidate

    async def _examine_all(self, claim: Claim) -> Candidate:
        """Judge a claim by its proof, if it brings one, and where it must be called back to."""
        if claim.proof is None:
            candidate = self._examine(claim)
            judged = None if claim.callback is None else self._called_back(candidate)
            if judged is not None:
                await judged
        elif self._by_proof is None:
            raise SignatureInvalid("this gate knows no keys")
        else:
            candidate = Candidate(claim, self._clock.wall_us())
            for guard in self._proof_guards:
                waiting = guard(candidate)
                if waiting is not None:
                    await waiting
        is_foreign = claim.forwarded is not None and not candidate.payer.own_issue
        if is_foreign and await self._look_again():  # perhaps a token of ours, made just now
            self._paying(candidate)
        return candidate

    def _entry(self, candidate: Candidate) -> Entry:
        claim, target, payer = candidate.claim, candidate.target, candidate.payer
        if candidate.credential is not None:
            check_credential(target, candidate.credential)
        carnet = self._document(candidate)
        key = turn_key(
            payer=payer.account,
            actor=candidate.caller.actor.name,
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
            taken, left = self._children.take(allowance, target, most)
            onward = None if onward is None else msgspec.structs.replace(onward, budget=left)
        is_counted = claim.proof is not None and target.tokens_per_day is not None
        tokens = daily_tokens(candidate) if is_counted else None
        later = make_later(candidate, self._ids) if claim.is_task else None
        admitted = Admitted(
            agent=target.name,
            ask=claim.ask,
            carnet=carnet,
            caller=candidate.caller,
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
            now=candidate.now,
            grounds=write_grounds(grounds_of(candidate, admitted, rates, quotas)),
        )

    def _quotas(self, tokens: Quota | None, later: Later | None) -> tuple[Quota, ...]:
        quotas = () if tokens is None else (tokens,)
        if later is None or self._by_proof is None:
            return quotas
        return (*quotas, unfinished(later, self._by_proof.tasks_per_sender))

    def _rates(self, candidate: Candidate) -> tuple[Rate, ...]:
        by = self._by_proof
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

    async def _claim_once(self, entry: Entry) -> Call:
        """Claim the turn; what the store says about a nonce or a rate is remembered."""
        admitted, nonce = entry.admitted, entry.nonce
        run, actor = admitted.carnet.run, admitted.caller.actor.name
        has_room = admitted.carnet.run_is_ours or self._runaway.enter(run, actor)
        is_new = False
        try:
            # Without room the transaction still answers what is known, and refuses what is new.
            call = await self._transaction.claim(entry, self._most_run_calls if has_room else 0)
            is_new = not call.known
        except (NonceReplayed, RateLimited) as refusal:
            if nonce is not None:
                self._remember(refusal, nonce, entry.now)
            raise
        finally:
            if has_room and not is_new and not admitted.carnet.run_is_ours:
                self._runaway.leave(run, actor)
        if nonce is not None:
            self._unrepeated.remember(nonce)
        return call

    def _remember(self, refusal: NonceReplayed | RateLimited, nonce: Nonce, now: int) -> None:
        if isinstance(refusal, NonceReplayed):
            self._unrepeated.remember(nonce)
        elif refusal.detail == bucket_of(nonce.sender):  # not its token's or the agent's
            self._within_rate.remember(nonce.sender, now, refusal.retry_after or 1)

    async def admit_child(
        self, parent: Call, name: str, ask: Ask, *, index: int, auth: str
    ) -> Call:
        """Admit a call that an agent makes on behalf of the call it answers."""
        return await self._children.admit(parent, name, ask, index=index, auth=auth)

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
