"""The last step of admission: one transaction, which answers in the order of `ports.calls.turns`.

Law 1. What it refuses leaves no trace: neither nonce nor turn is burned, nothing runs or is billed.
Law 2. An answer is compared with what was asked for before it is used, as a person's is.
Law 3. For an agent elsewhere that is free nothing is reserved, and it is told that it may cost
       nothing; what it charges all the same is not owed (R53). Whether it is, is asked for where a
       call would be refused, and not before.
"""

import asyncio
from collections.abc import Callable, Iterable

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from carnet.core.call import AGENT_OWNED, Admitted, Ask, Call, Offer, Target, call_of, quote
from carnet.core.chain.allowance import NOTHING, Allowance, Aside
from carnet.core.chain.carnet import Carnet
from carnet.core.chain.grounds import MOST_PATH, By, Grounds, read_grounds, write_grounds
from carnet.core.chain.turn import Turn
from carnet.core.messages.interrupt import Interrupt, Resolution
from carnet.core.people.delegation import narrower
from carnet.core.people.evidence import Evidence
from carnet.core.people.proof import SECOND_US, Spending
from carnet.core.sealed_call import Later, SealedCall, budget_of, write_sealed_call
from carnet.errors import (
    AnswerForbidden,
    DefinitionChanged,
    PermissionMissing,
    TaskNotFound,
)
from carnet.guards.admission.budgets import (
    after_taking,
    set_aside,
    with_taken,
)
from carnet.guards.admission.denial import refusal
from carnet.guards.admission.tasks import refuse_repeat
from carnet.guards.candidate import Candidate
from carnet.guards.limits import PAY
from carnet.ports.calls.tasks import ListedTask, TaskClaim, Tasks
from carnet.ports.calls.turns import (
    Answer,
    Claimed,
    Denied,
    Known,
    Nonce,
    Quota,
    Rate,
    TurnClaim,
    Turns,
    Verdict,
)
from carnet.ports.money.budgets import BudgetTake
from carnet.ports.world.clock import Clock

CheckAnswer = Callable[[Interrupt, Resolution], None]  # refuses a value that was not asked for


class Entry(Struct, frozen=True, kw_only=True):
    """A call that passed every guard and has no turn yet."""

    admitted: Admitted
    target: Target
    key: bytes  # of its turn
    digest: bytes
    request: bytes
    now: int  # when it was judged: microseconds since the epoch
    made_in: Turn | None = None  # the turn a child was made in, also where no header names it
    allowance: Allowance | None = None  # what is left of the budget that it came with
    rates: tuple[Rate, ...] = ()
    quotas: tuple[Quota, ...] = ()
    nonce: Nonce | None = None
    wire_parent: bool = False  # a peer named the parent turn, and at which depth it stands
    once: Nonce | None = None  # of a delegation that is good for one call
    later: Later | None = None
    listed: ListedTask | None = None  # it is answered at once, and is a task
    grounds: bytes = b""  # why it was admitted
    resolution: Answer | None = None  # what its turn waits for
    exactly_once: bool = False  # see `Claim`
    budget: BudgetTake | None = None  # what it takes of budgets
    aside: Aside = NOTHING  # and has set aside of its allowance


class Transaction:
    """Claims turns."""

    def __init__(
        self,
        turns: Turns,
        clock: Clock,
        *,
        most_run_calls: int,
        tasks: Tasks | None = None,
        currency: str = "",
    ) -> None:
        """`most_run_calls` is what one run may make here; `tasks` are those accepted before.

        `currency` is that of our ledger.
        """
        self._currency = currency
        self._turns = turns
        self._tasks = tasks
        self._clock = clock
        self._most_run_calls = most_run_calls

    async def check(self, entry: Entry, answer: Answer, check: CheckAnswer) -> None:
        """Refuse an answer that is none of those which its turn waits for; it waits on."""
        kept = await self._turns.question(self._turn_claim(entry, 0))
        if kept is not None:
            asked, caller = kept.interrupt, entry.admitted.caller
            if asked.is_of_money and answer.outcome == "accepted":
                if kept.owner not in {None, caller.owner}:  # R45
                    raise AnswerForbidden(reason="a payment is agreed to by who pays")
                if caller.standing is None and not caller.may(PAY):
                    raise PermissionMissing(permission=PAY)
            value = None if answer.value is None else msgspec.json.decode(answer.value)
            given = Resolution(outcome=answer.outcome, value=value)
            await asyncio.to_thread(check, asked, given)

    async def claim(self, entry: Entry, most_run_calls: int | None = None) -> Call:
        """The admitted call with its record, or the refusal."""
        most = self._most_run_calls if most_run_calls is None else most_run_calls
        if entry.admitted.reserve and entry.target.offer is not None:
            entry = self._as_known(entry, entry.target.offer)
        verdict = await self._turns.claim(self._turn_claim(entry, most))
        if isinstance(verdict, Denied):
            entry, verdict = await self._claim_free(entry, verdict, most)
        if entry.exactly_once and type(verdict) is Known and entry.resolution is None:
            raise await refuse_repeat(self._tasks, verdict.turn, entry.admitted.ask.context)
        admitted, task, allowance = entry.admitted, entry.later or entry.listed, entry.allowance
        is_new = type(verdict) is Claimed
        if type(verdict) is Claimed and verdict.reserved is not None:
            admitted = self._as_reserved(entry, verdict, verdict.reserved)
        if type(verdict) is Claimed and verdict.budget is not None:
            cost = verdict.turn.cost or 0
            admitted = with_taken(admitted, entry.target, verdict.budget, cost)
            allowance = after_taking(allowance, entry.aside, verdict.budget)
        name = None if task is None else task.id
        if task is not None and not (is_new and verdict.turn.fence == 1):  # it ran, or waited
            name = await self._task_id(verdict.turn)
        return call_of(
            admitted,
            entry.target,
            verdict.turn,
            known=not is_new,
            is_child=entry.made_in is not None,
            allowance=allowance,
            task=name,
            at_once=entry.listed is not None,
        )

    def _as_reserved(self, entry: Entry, verdict: Claimed, reserved: int) -> Admitted:
        """What was admitted with what is reserved for it.

        Of a turn that runs on, what it has cost before is no longer reserved and what was agreed to
        is: a callee is told neither, as what it may cost is meant for the whole call.
        """
        whole = reserved - verdict.agreed
        if entry.resolution is not None:
            whole += verdict.turn.cost or 0
        elif whole == entry.admitted.reserve:  # it runs again, with what was agreed to
            return replace(entry.admitted, reserve=reserved)
        if not entry.target.is_remote:
            return replace(entry.admitted, reserve=reserved)
        return replace(with_less_reserved(entry, whole, self._currency), reserve=reserved)

    def _as_known(self, entry: Entry, offer: Offer) -> Entry:
        """The entry as one for a free agent, if it is known to be one."""
        may_be = entry.later is None or entry.target.takes_budget
        return self._freed(entry) if may_be and offer.is_free() else entry

    async def _claim_free(
        self, entry: Entry, denied: Denied, most_run_calls: int
    ) -> tuple[Entry, Claimed | Known]:
        """Claim once more what is refused for its payer's money, if it is free; or refuse."""
        verdict: Verdict = denied
        if denied.reason in {"spending", "unpaid"} and entry.admitted.reserve:
            payer = entry.admitted.payer.quota
            if await is_free(entry.target, payer, is_task=entry.later is not None):
                entry = self._freed(entry)
                verdict = await self._turns.claim(self._turn_claim(entry, most_run_calls))
        if not isinstance(verdict, Denied):
            return entry, verdict
        let_go(entry)
        if verdict.reason == "mismatch" and entry.made_in is not None:
            raise DefinitionChanged
        raise refusal(verdict, entry.admitted, entry.quotas, self._most_run_calls)

    def _freed(self, entry: Entry) -> Entry:
        """The same for an agent that may charge nothing, and is told so."""
        reserve = entry.admitted.reserve - entry.target.most_cost
        admitted = with_less_reserved(entry, reserve, self._currency)
        grounds = replace(read_grounds(entry.grounds), reserve=reserve)
        return replace(
            entry,
            admitted=admitted,
            target=entry.target.as_free(),
            grounds=write_grounds(grounds),
        )

    async def _task_id(self, turn: Turn) -> str:
        """The id of a task: that of the first acceptance, however often it is sent or run."""
        found = None if self._tasks is None else await self._tasks.of_turn(turn.n)
        if found is None:  # it has ended, and is forgotten before its turn
            raise TaskNotFound
        return found.id

    def _turn_claim(self, entry: Entry, most_run_calls: int) -> TurnClaim:
        admitted, above = entry.admitted, entry.made_in
        return TurnClaim(
            admitted=admitted,
            key=entry.key,
            digest=entry.digest,
            rates=entry.rates,
            quotas=entry.quotas,
            most_run_calls=most_run_calls,
            is_first=admitted.carnet.run_is_ours and above is None,
            now=entry.now,
            request=entry.request,
            nonce=entry.nonce,
            wire_parent=entry.wire_parent,
            once=entry.once,
            task=None if entry.later is None else self._task_claim(entry, entry.later),
            listed=entry.listed,
            made_in=above,
            grounds=entry.grounds,
            may_cost=entry.target.may_cost,
            resolution=None if entry.resolution is None else _by(admitted, entry.resolution),
            # What is sealed to run later cannot be told of it any more.
            shrinks=entry.target.most_cost if entry.target.takes_budget and not entry.later else 0,
            exactly_once=entry.exactly_once,
            budget=entry.budget,
        )

    def _task_claim(self, entry: Entry, later: Later) -> TaskClaim:
        admitted, deadline = entry.admitted, entry.admitted.carnet.deadline
        if deadline is not None:  # kept by the clock that all processes share
            deadline += (self._clock.wall_us() - self._clock.steady_us()) / SECOND_US
        kept = SealedCall(
            admitted=admitted,
            deadline=deadline,
            **budget_of(entry.allowance),
        )
        return TaskClaim(
            id=later.id,
            sender=later.sender,
            skill=admitted.ask.skill,
            callback=later.callback,
            call_bytes=write_sealed_call(kept),
            context=admitted.ask.context,
        )


def let_go(entry: Entry) -> None:
    """Give back what was set aside for an entry that becomes no call; one that waits keeps it.

    A share that was made for it goes back whole, and what it has from its parent stays there.
    """
    if entry.allowance is not None and entry.resolution is None:
        entry.allowance.give_back(entry.aside)
        if entry.budget is not None and entry.budget.opens is not None:
            entry.allowance.close()


def _by(admitted: Admitted, answer: Answer) -> Answer:
    """An answer with who gives it: who has authenticated, unless somebody passes it on."""
    return replace(answer, resolver=answer.resolver or admitted.caller.actor.name)


async def is_free(target: Target, payer: str, *, is_task: bool) -> bool:
    """Whether a call may be made without money, because the agent says that it is free.

    One that may call others is told to spend nothing, or it is not free; what is sealed to run
    later is bounded by what the callee is told alone.
    """
    if target.offer is None or (is_task and not target.takes_budget):
        return False
    free = await target.offer.find(payer)
    return free == "all" or (free == "own" and target.takes_budget)


def with_less_reserved(entry: Entry, reserved: int, currency: str) -> Admitted:
    """What was admitted, with less reserved: the callee is told not to spend more (R53)."""
    admitted = entry.admitted
    own_price = admitted.reserve - entry.target.most_cost
    most = Spending(money=reserved - own_price, currency=currency)
    if admitted.onward is None:  # a child, whose own document leaves
        carnet = admitted.carnet
        narrowed = replace(carnet, budget=narrower(carnet.budget, most))
        return replace(admitted, carnet=narrowed, reserve=reserved)
    onward = replace(admitted.onward, budget=narrower(admitted.onward.budget, most))
    return replace(admitted, onward=onward, reserve=reserved)


def allow(
    candidate: Candidate, allowance: Allowance, onward: Carnet | None, currency: str
) -> tuple[Aside, Ask, Carnet | None]:
    """Set aside what a call may spend: that, what is asked then, and what goes on."""
    target, ask, most = candidate.target, candidate.claim.ask, 0
    owned = target.is_remote and target.auth_source == AGENT_OWNED
    if allowance.limits.money is not None and not owned:
        most = quote(target, ask, len(candidate.claim.request))
    if onward is None:
        return *set_aside(allowance, target, ask, most, currency), None
    # To an agent elsewhere: nothing else is called for it, so all that are left go with it. What
    # came here and what goes on are one call.
    aside, ask = set_aside(allowance, target, ask, most, currency, calls=None)
    return aside, ask, replace(onward, budget=allowance.left(aside))


def deadline_of(deadline: float | None, target: Target, clock: Clock) -> float | None:
    """A deadline, or the end of the time that this target may take if that is earlier.

    Retries and waiting are part of that time.
    """
    if target.seconds is None:
        return deadline
    end = clock.steady_us() / SECOND_US + target.seconds
    return end if deadline is None or end < deadline else deadline


def patience_of(candidate: Candidate, clock: Clock) -> float | None:
    """The deadline of a candidate whose caller says how long it waits, if that is earlier.

    A middlebox may have written it beside a signature: there the travel document tells it.
    """
    deadline, wait = candidate.deadline, candidate.claim.wait
    if wait is None or candidate.claim.proof is not None:
        return deadline
    end = clock.steady_us() / SECOND_US + wait
    return end if deadline is None or end < deadline else deadline


def grounds_of(
    candidate: Candidate, admitted: Admitted, rates: tuple[Rate, ...], quotas: tuple[Quota, ...]
) -> Grounds:
    """What the guards found of a claim."""
    carnet, payer, target = admitted.carnet, admitted.payer, candidate.target
    claim, token, peer, skill = candidate.claim, candidate.shown, candidate.peer, candidate.skill
    proof = claim.proof
    tangle = 0 if claim.forwarded is None else 32  # in bits, and here: a function is a call more
    for mark in claim.marks:
        if mark.stamp == "tangle":
            tangle |= (mark.depth is not None) | (mark.run is not None) << 1
            tangle |= (mark.turn is not None) << 2 | (mark.parent_turn is not None) << 3
            tangle |= (mark.speaker is not None) << 4
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
        path=claim.path[:MOST_PATH],
        tangle=tangle,
        base=candidate.base,
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
