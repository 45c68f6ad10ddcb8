"""The gate: what makes a call of a claim.

Law 1. A claim passes every guard of its order (`order`), or becomes no call.
Law 2. The last step is one transaction; what it refuses leaves no trace.
Law 3. A child made in process passes position, rights, budget and turn as well.
Law 4. A call that is refused for its chain is told to whoever may have made it (`on_return`).
Law 5. When an entry is made the guards have judged; all that is still refused is a credential that
       may not go to the target, and what a budget has not.
"""

from collections.abc import Awaitable, Callable

import msgspec

from carnet.core.call import Admitted, Ask, Call, Claim, quote, turn_key
from carnet.core.chain.allowance import NOTHING, Allowance, Aside
from carnet.core.chain.carnet import Carnet
from carnet.core.chain.grounds import write_grounds
from carnet.core.chain.turn_id import OUR_RUNS
from carnet.core.people.address import AGENT
from carnet.core.people.caller_host import CallerHost
from carnet.core.people.identity import Secret
from carnet.core.people.proof import Proof
from carnet.core.sealed_call import Later
from carnet.errors import (
    CallerNotVerified,
    Cancelled,
    DepthExceeded,
    KeyUnknown,
    LoopDetected,
    NonceReplayed,
    PaymentRefused,
    PaymentRequired,
    PeerUnknown,
    RateLimited,
    SkillForbidden,
    TokenInvalid,
)
from carnet.guards.admission.asker import KnownAskers
from carnet.guards.admission.budgets import narrow
from carnet.guards.admission.children import Children, spending
from carnet.guards.admission.order import GateParts, Order, Signed
from carnet.guards.admission.policy import asking
from carnet.guards.admission.tasks import answer_of, make_later, make_listed
from carnet.guards.admission.transaction import (
    Entry,
    Transaction,
    allow,
    deadline_of,
    grounds_of,
    patience_of,
)
from carnet.guards.caller.delegation import once_of
from carnet.guards.candidate import Candidate
from carnet.guards.limits import Concurrency, Paying, Runaway, bucket_of, counted_as
from carnet.guards.proof.replay import nonce_of
from carnet.guards.quotas import daily_tokens, quotas_of
from carnet.guards.target.target import came_back, check_credential, names_parent, onward_carnet
from carnet.ports.calls.admission import CameBack, ClientCallee, ClientLeave
from carnet.ports.calls.turns import Nonce, Quota, Rate, Turns

MINUTE = 60
# What is refused may have been granted a moment ago, by a command.
_PERHAPS_NEW = (
    *(TokenInvalid, CallerNotVerified, PeerUnknown, PaymentRequired),
    *(KeyUnknown, SkillForbidden, PaymentRefused),
)
DEFAULT_HOST_CALLS = 60  # a minute, of a gate that knows no limits


class Intake:
    """Makes entries."""

    def __init__(self, parts: GateParts, by: Signed | None) -> None:
        """`by` has the rates and quotas of signed claims."""
        self._clock = parts.clock
        self._ids = parts.ids
        self._domain = parts.domain
        self._depths = parts.depths
        self._currency = "" if by is None else by.currency
        self._by = by
        self._tasks_per_sender = None if by is None else by.tasks_per_sender
        self._budgets = parts.budgets

    def entry(self, candidate: Candidate) -> Entry:
        """The entry of a candidate, with everything that the transaction is told."""
        claim, target, payer = candidate.claim, candidate.target, candidate.payer
        if candidate.credential is not None or target.needs_credential:
            check_credential(target, candidate.credential)
        if claim.budget is not None:  # it can only lower what may be spent
            narrow(candidate, claim.budget, self._currency, self._clock)
        carnet = self._document(candidate)
        key = turn_key(
            payer=payer.account,
            actor=candidate.caller.actor.name + candidate.speaks,
            agent=target.name,
            carnet=carnet,
            digest=claim.digest,
        )
        onward = None  # for an agent of ours
        if target.is_remote:
            onward = onward_carnet(carnet, target, self._domain, key=key, depths=self._depths)
        allowance, aside, ask = None, NOTHING, claim.ask
        if candidate.budget is not None:
            allowance = Allowance(candidate.budget, until=carnet.deadline)
            aside, ask, onward = allow(candidate, allowance, onward, self._currency)
        most = None if claim.proof is None else target.tokens_per_day
        tokens = None if most is None else daily_tokens(candidate, most)
        later = make_later(candidate, self._ids) if claim.is_task else None
        admitted = Admitted(
            agent=target.name,
            ask=ask,
            carnet=carnet,
            caller=candidate.caller,
            payer=payer,
            dialect=claim.dialect,
            correlation=claim.correlation,
            onward=onward,
            document=None if claim.proof is None else claim.proof.document,
            set_aside=aside.money,
            granted=(aside.calls, aside.tokens),
            credential=candidate.credential,
            reserve=0 if payer.limit is None else quote(target, claim.ask, len(claim.request)),
            delegation=candidate.delegation,
            callback=claim.callback,
            quota=None if tokens is None else tokens.name,
            task_quota=None if later is None else later.quota,
        )
        is_counted = tokens is not None or later is not None or payer.excess is not None
        quotas = quotas_of(tokens, later, payer, self._tasks_per_sender) if is_counted else ()
        entry = self._entry_of(candidate, admitted, key, (allowance, aside), quotas, later)
        if self._budgets is None or not self._budgets.known:
            return entry
        return spending(entry, self._budgets)

    def _entry_of(
        self,
        candidate: Candidate,
        admitted: Admitted,
        key: bytes,
        allowed: tuple[Allowance | None, Aside],
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
            allowance=allowed[0],
            aside=allowed[1],
            rates=rates,
            quotas=quotas,
            nonce=None if claim.proof is None else nonce_of(candidate),
            wire_parent=bool(claim.marks) and names_parent(claim),
            once=candidate.once
            if candidate.delegation is None
            else once_of(candidate.delegation) or candidate.once,
            later=later,
            listed=None
            if later is not None or claim.ask.context is None
            else make_listed(candidate, claim.ask.context, self._ids),
            now=candidate.now,
            grounds=write_grounds(grounds_of(candidate, admitted, rates, quotas)),
            resolution=None
            if claim.resolution is None
            else answer_of(claim.resolution, candidate.shown),
            exactly_once=claim.exactly_once,
        )

    def _rates(self, candidate: Candidate) -> tuple[Rate, ...]:
        by = self._by
        rates: tuple[Rate, ...] = ()
        if by is not None and (candidate.claim.proof or candidate.grant) is not None:
            agent = f"agent:{candidate.target.name}"
            sender = bucket_of(counted_as(candidate))
            rates = (
                Rate(bucket=sender, calls=by.sender_calls, seconds=MINUTE),
                Rate(bucket=agent, calls=by.agent_calls, seconds=MINUTE),
            )
        if candidate.host is not None:
            rates = (*rates, self._rate_of(candidate.host))
        token = candidate.shown
        if token is None or token.rate_calls is None:
            return rates
        bucket = f"token:{token.n}"
        if token.is_certificate and token.peer is not None:  # one rate, however it is known
            bucket = bucket_of(AGENT + token.peer)
        own = Rate(bucket=bucket, calls=token.rate_calls, seconds=token.rate_seconds)
        return (*rates, own)

    def _rate_of(self, host: CallerHost) -> Rate:
        """The rate of a verified host, whichever tokens it comes with."""
        default = DEFAULT_HOST_CALLS if self._by is None else self._by.sender_calls
        calls = default if host.rate_calls is None else host.rate_calls
        return Rate(bucket=f"caller:{host.url}", calls=calls, seconds=host.rate_seconds)

    def _document(self, candidate: Candidate) -> Carnet:
        position, target = candidate.position, candidate.target
        deadline = candidate.deadline
        if not candidate.claim.is_task:  # the time that a task may take begins when it runs
            if candidate.claim.wait is not None:
                deadline = patience_of(candidate, self._clock)
            deadline = deadline_of(deadline, target, self._clock)
        run = position.run or f"{OUR_RUNS}{self._ids.ordered_uuid()}"
        return Carnet(
            run=run,
            turn=position.turn or f"turn_{self._ids.uuid()}",
            depth=position.depth,
            last_depth=position.last_depth,
            bound_by=position.bound_by,
            most_depth=position.most_depth,
            parent_turn=position.parent_turn,
            speaker=position.speaker,
            run_is_ours=position.run is None,
            path=candidate.path,
            on_behalf_of=candidate.on_behalf_of,
            deadline=deadline,
            budget=candidate.budget,
            trace=candidate.claim.trace,
        )


class Gate:
    """Admits claims and children."""

    def __init__(
        self,
        parts: GateParts,
        *,
        turns: Turns,
        concurrency: Concurrency,
        most_run_calls: int,
        look_again: Callable[[], Awaitable[bool]],
        by_proof: Signed | None = None,
    ) -> None:
        """`look_again` reads what is known of tokens, peers and keys anew: whether it changed.

        Without `by_proof` no signature is believed.
        """
        clock, tasks = parts.clock, None if by_proof is None else by_proof.tasks
        self._look_again = look_again
        self.on_return: Callable[[CameBack | None], object] = bool  # told of calls that came back
        self._tokens = parts.tokens
        self._clock = clock
        self._has_ended = parts.has_ended
        self._concurrency = concurrency
        self._most_run_calls = most_run_calls
        self._knows_keys = by_proof is not None
        self._check_answer = None if by_proof is None else by_proof.check_answer
        self._transaction = Transaction(
            turns,
            clock,
            most_run_calls=most_run_calls,
            tasks=tasks,
            currency="" if by_proof is None else by_proof.currency,
        )
        # Each asks the operator's policy first, if there is one.
        self._claim_alone = asking(parts.policy, self._transaction.claim)
        self._claim_joined = asking(parts.policy, self._claim_once)
        self._runaway = Runaway(most_run_calls)
        self._paying = Paying(
            tokens=parts.tokens,
            peers=parts.peers,
            domain=parts.domain,
            payers=parts.payers,
            currency="" if by_proof is None else by_proof.currency,
        )
        self._order = Order(parts, self._paying, by_proof)
        self._intake = Intake(parts, by_proof)
        self.askers = KnownAskers(self._order, parts, look_again, by_proof)
        self._children = Children(parts, self._transaction, self._paying, by_proof)

    async def admit(self, claim: Claim) -> Call:
        """Show a claim to every guard; then claim its turn.

        The call counts as open; whoever answers it calls `concurrency.leave` at its end. A task
        no longer counts when it is accepted.
        """
        is_plain = claim.proof is None and claim.callback is None and claim.forwarded is None
        is_plain = is_plain and claim.carried is None and claim.access is None
        is_plain = is_plain and claim.payment is None
        has_looked = False
        while True:
            try:
                candidate = self._examine(claim) if is_plain else await self._examine_all(claim)
                entry = self._intake.entry(candidate)
                actor = candidate.caller.actor.name
                self._concurrency.enter(actor, stream=claim.ask.stream)
                try:
                    # In a run of our own nobody else can have made a call yet.
                    is_alone = entry.nonce is None and entry.admitted.carnet.run_is_ours
                    call = await (self._claim_alone if is_alone else self._claim_joined)(entry)
                except BaseException:
                    self._concurrency.leave(actor, stream=claim.ask.stream)
                    raise
            except _PERHAPS_NEW:
                if has_looked or not await self._look_again():  # perhaps granted a moment ago
                    raise
                has_looked = True
            else:
                if claim.is_task:  # nobody waits for it
                    self._concurrency.leave(actor, stream=claim.ask.stream)
                if candidate.shown is not None:
                    self._tokens.used(candidate.shown, candidate.now)
                return call

    async def vouch(self, authorization: Secret | None, proof: Proof | None) -> str:
        """Refuse who could not be admitted whatever it asks, unread (A75); else tell its name."""
        return await self.askers.vouch(authorization, proof)

    def _examine(self, claim: Claim) -> Candidate:
        """Judge a claim by its token alone, where nothing has to be waited for."""
        candidate = Candidate(claim, self._clock.wall_us())
        try:
            for guard in self._order.by_token:
                guard(candidate)
        except (LoopDetected, DepthExceeded) as refusal:
            self.on_return(came_back(candidate, refusal))
            raise
        return candidate

    async def _examine_all(self, claim: Claim) -> Candidate:
        """Judge a claim by its proof, if it brings one, and where it must be called back to."""
        is_usual = claim.proof is not None and claim.carried is None and self._knows_keys
        guards = self._order.by_proof if is_usual else self._order.chosen(claim)
        candidate = Candidate(claim, self._clock.wall_us())
        try:
            for guard in guards:
                waiting = guard(candidate)
                if waiting is not None:
                    await waiting
        except (LoopDetected, DepthExceeded) as refusal:
            self.on_return(came_back(candidate, refusal))
            raise
        if candidate.evidence:
            caller, evidence = candidate.caller, candidate.evidence
            candidate.caller = msgspec.structs.replace(caller, evidence=evidence)
        if claim.proof is None and claim.callback is not None:
            judged = self._order.called_back(candidate)
            if judged is not None:
                await judged
        is_foreign = claim.forwarded is not None and not candidate.payer.own_issue
        is_foreign = is_foreign and candidate.payer.payment is None
        if is_foreign and await self._look_again():  # perhaps a token of ours, made just now
            self._paying(candidate)
        return candidate

    async def _claim_once(self, entry: Entry) -> Call:
        """Claim the turn; what the store says about a nonce or a rate is remembered."""
        admitted, nonce = entry.admitted, entry.nonce
        run, actor = admitted.carnet.run, admitted.caller.actor.name
        has_room = admitted.carnet.run_is_ours or self._runaway.enter(run, actor)
        is_new = False
        try:
            if entry.resolution is not None and self._check_answer is not None:
                await self._transaction.check(entry, entry.resolution, self._check_answer)
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
            self._order.unrepeated.remember(nonce)
        return call

    def _remember(self, refusal: NonceReplayed | RateLimited, nonce: Nonce, now: int) -> None:
        if isinstance(refusal, NonceReplayed):
            self._order.unrepeated.remember(nonce)
        elif refusal.detail == bucket_of(nonce.sender):  # not its token's or the agent's
            self._order.within_rate.remember(nonce.sender, now, refusal.retry_after or 1)

    async def admit_child(
        self, parent: Call, name: str, ask: Ask, *, index: int, auth: str
    ) -> Call:
        """Admit a call that an agent makes on behalf of the call it answers."""
        self.check(parent)
        return await self._children.admit(parent, name, ask, index=index, auth=auth)

    def let_out(self, parent: Call, callee: ClientCallee) -> ClientLeave:
        """Let a call pass the gateway that an agent makes; refused where it would come back."""
        self.check(parent)
        return self._children.let_out(parent, callee)

    def check(self, call: Call) -> None:
        """Raise Cancelled if what let the call in has ended meanwhile (R54)."""
        if self._has_ended(call):
            raise Cancelled("what it was admitted by has ended")
