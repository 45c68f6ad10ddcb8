"""THE order of admission, and the gate itself.

Law 1. A claim passes every guard, in this order, or becomes no call.
Law 2. The last step is one transaction; what it refuses leaves no trace.
Law 3. A child made in process passes position, rights, budget and turn as well.
"""

from collections.abc import Awaitable, Callable

from msgspec import Struct

from carnet.core.call import Ask, Call, Claim
from carnet.core.carnet import Carnet, DepthLimits
from carnet.core.identity import Actor, Caller, Payer
from carnet.core.secret import Secret
from carnet.core.turn import Turn, turn_key
from carnet.errors import (
    CarnetError,
    DefinitionChanged,
    IdempotencyMismatch,
    PaymentRequired,
    PeerUnknown,
    RateLimited,
    RunCallsExceeded,
    SpendingLimitReached,
    TokenInvalid,
)
from carnet.guards.authn import KnownCaller
from carnet.guards.candidate import Candidate
from carnet.guards.chain import within_chain
from carnet.guards.child import child_digest, child_request
from carnet.guards.crowd import Crowd
from carnet.guards.leaving import check_credential, papers
from carnet.guards.payer import Paying, check_pay
from carnet.guards.runaway import Runaway
from carnet.guards.target import KnownAgent, permit, permitted
from carnet.ports.agent import Router, Target
from carnet.ports.clock import Clock, Ids
from carnet.ports.trust import Peers, Token, Tokens
from carnet.ports.turns import Claimed, Denied, Rate, TurnClaim, Turns

LIKELY_TOKENS_OUT = 4096  # reserved for an answer whose length nobody bounded


class Entry(Struct, frozen=True, kw_only=True):
    """A call that passed every guard and has no turn yet."""

    target: Target
    ask: Ask
    carnet: Carnet
    caller: Caller
    payer: Payer
    digest: bytes
    request: bytes
    made_in: Turn | None = None  # the turn a child was made in, also where no header names it
    onward: Carnet | None = None
    rate: Rate | None = None
    credential: Secret | None = None


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
        crowd: Crowd,
        most_run_calls: int,
        look_again: Callable[[], Awaitable[bool]],
    ) -> None:
        """Everything the guards look things up in.

        `look_again` reads what is known of tokens and peers anew, and tells whether it changed.
        """
        self._look_again = look_again
        self._router = router
        self._tokens = tokens
        self._turns = turns
        self._clock = clock
        self._ids = ids
        self._last_depth = depths.tangle
        self._crowd = crowd
        self._most_run_calls = most_run_calls
        self._runaway = Runaway(most_run_calls)
        self._paying = Paying(tokens=tokens, peers=peers, domain=domain)
        self._guards = (
            # Size and shape were judged while reading; malformed stamps never become a claim.
            KnownCaller(tokens, Listed(peers)),  # nothing is told to somebody we do not know
            within_chain,  # before any look-up that a runaway chain could make us repeat
            KnownAgent(router),  # there must be someone to hold rights on
            permitted,  # rights before money: who may not call cannot be billed
            self._paying,  # the last thing to know before the transaction
        )

    async def admit(self, claim: Claim) -> Call:
        """Show a claim to every guard; then claim its turn.

        The call is counted in the crowd; whoever answers it calls `crowd.leave` at its end.
        """
        try:
            return await self._admit(claim)
        except (TokenInvalid, PeerUnknown, PaymentRequired):
            if not await self._look_again():  # perhaps added or granted a moment ago
                raise
        return await self._admit(claim)

    async def _admit(self, claim: Claim) -> Call:
        now = self._clock.wall_us()
        candidate = self._examine(claim, now)
        is_foreign = claim.forwarded is not None and not candidate.payer.own_issue
        if is_foreign and await self._look_again():  # perhaps a token of ours, made just now
            candidate = self._examine(claim, now)
        target, actor = candidate.target, candidate.caller.actor.name
        check_credential(target, candidate.credential)
        carnet = self._in_time(self._document(candidate), target)
        entry = Entry(
            target=target,
            ask=claim.ask,
            carnet=carnet,
            onward=papers(carnet, target, last_depth=self._last_depth),
            caller=candidate.caller,
            payer=candidate.payer,
            rate=_rate(candidate.token),
            digest=claim.digest,
            request=claim.request,
            credential=candidate.credential,
        )
        self._crowd.enter(actor, stream=claim.ask.stream)
        try:
            call = await self._claim_within_run(entry)
        except BaseException:
            self._crowd.leave(actor, stream=claim.ask.stream)
            raise
        self._tokens.used(candidate.token, now)
        return call

    async def _claim_within_run(self, entry: Entry) -> Call:
        run, actor = entry.carnet.run, entry.caller.actor.name
        if entry.carnet.run_is_ours:  # nobody else can have made a call in it yet
            return await self._claim(entry)
        has_room = self._runaway.enter(run, actor)
        is_new = False
        try:
            # Without room the transaction still answers what is known, and refuses what is new.
            call = await self._claim(entry, self._most_run_calls if has_room else 0)
            is_new = not call.known
        finally:
            if has_room and not is_new:
                self._runaway.leave(run, actor)
        return call

    def _examine(self, claim: Claim, now: int) -> Candidate:
        candidate = Candidate(claim, now)
        for guard in self._guards:
            guard(candidate)
        return candidate

    async def admit_child(
        self, parent: Call, name: str, ask: Ask, *, index: int, auth: str
    ) -> Call:
        """Admit a call that an agent makes on behalf of the call it answers."""
        target = self._router.find(name)
        carnet = parent.carnet.next_hop(
            index=index, speaker=target.speaker, default=self._last_depth
        )
        permit(parent.caller, target)
        payer, credential = self._child_payer(parent, target, auth)
        check_credential(target, credential)
        carnet = self._in_time(carnet, target)
        caller = Caller(
            actor=Actor(name=f"agent:{parent.agent}", how="in_process"),
            scopes=parent.caller.scopes,
            ceiling=parent.caller.ceiling,
            principal=parent.caller.principal,
            on_behalf_of=parent.caller.on_behalf_of,
        )
        request = child_request(ask)
        return await self._claim(
            Entry(
                target=target,
                ask=ask,
                carnet=carnet,  # what a callee elsewhere receives, as it stands
                caller=caller,
                payer=payer,
                digest=child_digest(target.name, request),
                request=request,
                credential=credential,
                made_in=parent.record,
            )
        )

    def _child_payer(self, parent: Call, target: Target, auth: str) -> tuple[Payer, Secret | None]:
        if auth == "agent-owned":
            return self._paying.agent_account(parent.agent), None
        check_pay(parent.caller, target)
        return parent.payer, parent.credential

    def _in_time(self, carnet: Carnet, target: Target) -> Carnet:
        """The document with the time this target may take, retries and waiting included."""
        if target.seconds is None:
            return carnet
        return carnet.until(self._clock.steady_us() / 1_000_000 + target.seconds)

    def _document(self, candidate: Candidate) -> Carnet:
        position = candidate.position
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
            trace=candidate.claim.trace,
        )

    async def _claim(self, entry: Entry, most_run_calls: int | None = None) -> Call:
        payer = entry.payer
        reserve = 0
        if payer.limit is not None:
            reserve = quote(entry.target, entry.ask, len(entry.request))
        most = self._most_run_calls if most_run_calls is None else most_run_calls
        verdict = await self._turns.claim(self._turn_claim(entry, reserve, most))
        if isinstance(verdict, Denied):
            if verdict.reason == "mismatch" and entry.made_in is not None:
                raise DefinitionChanged
            raise refusal(verdict, payer, self._most_run_calls)
        return Call(
            agent=entry.target.name,
            ask=entry.ask,
            carnet=entry.carnet,
            caller=entry.caller,
            payer=payer,
            record=verdict.turn,
            known=not isinstance(verdict, Claimed),
            onward=entry.onward,
            credential=entry.credential,
            reserve=reserve,
            is_child=entry.made_in is not None,
        )

    def _turn_claim(self, entry: Entry, reserve: int, most_run_calls: int) -> TurnClaim:
        carnet, actor, agent = entry.carnet, entry.caller.actor.name, entry.target.name
        above = entry.made_in
        return TurnClaim(
            key=turn_key(
                payer=entry.payer.account,
                # One turn id may be several callers': a child belongs to one record (A41).
                actor=actor if above is None else f"{actor}#{above.n}",
                agent=agent,
                carnet=carnet,
                digest=entry.digest,
            ),
            digest=entry.digest,
            agent=agent,
            run=carnet.run,
            turn=carnet.turn,
            parent_turn=carnet.parent_turn if above is None else above.turn,
            speaker=carnet.speaker,
            depth=carnet.depth,
            actor=actor,
            payer=entry.payer,
            reserve=reserve,
            rate=entry.rate,
            most_run_calls=most_run_calls,
            is_first=carnet.run_is_ours and above is None,
            now=self._clock.wall_us(),
            request=entry.request,
        )


def quote(target: Target, ask: Ask, request_bytes: int) -> int:
    """The most a call may cost: what is reserved before it runs."""
    tokens_out = ask.max_tokens or LIKELY_TOKENS_OUT
    # A token is at least a byte; what a call costs beyond its reservation is not debited.
    return target.price.of(request_bytes, tokens_out) + target.most_cost


def refusal(denied: Denied, payer: Payer, most_run_calls: int) -> CarnetError:
    """The error that a refused transaction stands for."""
    if denied.reason == "mismatch":
        return IdempotencyMismatch()
    if denied.reason == "rate":
        return RateLimited(retry_after=denied.retry_after or 1)
    if denied.reason == "run_calls":
        return RunCallsExceeded(limit=most_run_calls)
    return SpendingLimitReached() if payer.own_issue else PaymentRequired()


def _rate(token: Token) -> Rate | None:
    if token.rate_calls is None:
        return None
    return Rate(bucket=f"token:{token.n}", calls=token.rate_calls, seconds=token.rate_seconds)


class Listed:
    """Whether a peer is listed as an inter-agent caller."""

    def __init__(self, peers: Peers) -> None:
        """Look peers up here."""
        self._peers = peers

    def __call__(self, domain: str, /) -> bool:
        """Look one up."""
        peer = self._peers.find(domain)
        return peer is not None and peer.may_forward
