"""The last step of admission: one transaction, which answers in the order of `ports.turns`.

Law. What it refuses leaves no trace: neither nonce nor turn is burned, nothing runs or is billed.
"""

from collections.abc import Sequence

from msgspec import Struct

from carnet.core.allowance import Allowance
from carnet.core.call import Ask, Call
from carnet.core.carnet import Carnet
from carnet.core.delegation import Delegation
from carnet.core.identity import Caller, Payer
from carnet.core.papers import Later, Papers, write_papers
from carnet.core.proof import SECOND_US, Document
from carnet.core.secret import Secret
from carnet.core.turn import Turn, turn_key
from carnet.errors import (
    CarnetError,
    ChainMismatch,
    DefinitionChanged,
    DelegationReplayed,
    IdempotencyMismatch,
    NonceReplayed,
    PaymentRequired,
    RateLimited,
    RunCallsExceeded,
    SpendingLimitReached,
    TaskNotFound,
    TokenBudgetExceeded,
    TooManyTasks,
)
from carnet.ports.agent import Target
from carnet.ports.clock import Clock
from carnet.ports.tasks import TaskClaim, Tasks
from carnet.ports.turns import (
    TASKS,
    Claimed,
    Denied,
    Known,
    Nonce,
    Quota,
    Rate,
    TurnClaim,
    Turns,
)

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
    allowance: Allowance | None = None  # what is left of the budget that it came with
    set_aside: int = 0  # of the allowance, for this call
    rates: tuple[Rate, ...] = ()
    quotas: tuple[Quota, ...] = ()
    quota: str | None = None  # the purse that counts the tokens it uses
    credential: Secret | None = None
    nonce: Nonce | None = None
    document: Document | None = None
    wire_parent: bool = False  # a peer named the parent turn, and at which depth it stands
    delegation: Delegation | None = None  # verified
    once: Nonce | None = None  # of a delegation that is good for one call
    later: Later | None = None


class Transaction:
    """Claims turns."""

    def __init__(
        self, turns: Turns, clock: Clock, *, most_run_calls: int, tasks: Tasks | None = None
    ) -> None:
        """`most_run_calls` is what one run may make here; `tasks` are those accepted before."""
        self._turns = turns
        self._tasks = tasks
        self._clock = clock
        self._most_run_calls = most_run_calls

    async def claim(self, entry: Entry, most_run_calls: int | None = None) -> Call:
        """The admitted call with its record, or the refusal."""
        payer = entry.payer
        reserve = 0
        if payer.limit is not None:
            reserve = quote(entry.target, entry.ask, len(entry.request))
        most = self._most_run_calls if most_run_calls is None else most_run_calls
        verdict = await self._turns.claim(self._turn_claim(entry, reserve, most))
        if isinstance(verdict, Denied):
            if entry.allowance is not None:
                entry.allowance.give_back(entry.set_aside)
            if verdict.reason == "mismatch" and entry.made_in is not None:
                raise DefinitionChanged
            raise refusal(verdict, entry, self._most_run_calls)
        later = entry.later
        return Call(
            agent=entry.target.name,
            ask=entry.ask,
            carnet=entry.carnet,
            caller=entry.caller,
            payer=payer,
            record=verdict.turn,
            known=not isinstance(verdict, Claimed),
            onward=entry.onward,
            allowance=entry.allowance,
            set_aside=entry.set_aside,
            credential=entry.credential,
            reserve=reserve,
            document=entry.document,
            is_child=entry.made_in is not None,
            quota=entry.quota,
            delegation=entry.delegation,
            task=None if later is None else await self._task_id(later, verdict),
            callback=None if later is None else later.callback,
            task_purse=None if later is None else later.purse,
        )

    async def _task_id(self, later: Later, verdict: Claimed | Known) -> str:
        """The id of the task: that of the first acceptance, however often it is sent or run."""
        if isinstance(verdict, Claimed) and verdict.turn.attempt == 1:
            return later.id
        found = None if self._tasks is None else await self._tasks.of_turn(verdict.turn.n)
        if found is None:  # it has ended, and is forgotten before its turn
            raise TaskNotFound
        return found.id

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
            rates=entry.rates,
            quotas=entry.quotas,
            most_run_calls=most_run_calls,
            is_first=carnet.run_is_ours and above is None,
            now=self._clock.wall_us(),
            request=entry.request,
            nonce=entry.nonce,
            wire_parent=entry.wire_parent,
            once=entry.once,
            task=None if entry.later is None else self._task_claim(entry, entry.later, reserve),
        )

    def _task_claim(self, entry: Entry, later: Later, reserve: int) -> TaskClaim:
        credential, deadline = entry.credential, entry.carnet.deadline
        if deadline is not None:  # kept by the clock that all processes share
            deadline += (self._clock.wall_us() - self._clock.steady_us()) / SECOND_US
        kept = Papers(
            ask=entry.ask,
            carnet=entry.carnet,
            caller=entry.caller,
            payer=entry.payer,
            onward=entry.onward,
            document=entry.document,
            budget=None if entry.allowance is None else entry.allowance.left(),
            set_aside=entry.set_aside,
            credential=None if credential is None else credential.reveal(),
            reserve=reserve,
            delegation=entry.delegation,
            callback=later.callback,
            quota=entry.quota,
            task_purse=later.purse,
            deadline=deadline,
        )
        return TaskClaim(
            id=later.id,
            sender=later.sender,
            skill=entry.ask.skill,
            callback=later.callback,
            papers=write_papers(kept),
        )


def quote(target: Target, ask: Ask, request_bytes: int) -> int:
    """The most a call may cost: what is reserved before it runs."""
    tokens_out = ask.max_tokens or LIKELY_TOKENS_OUT
    # A token is at least a byte; what a call costs beyond its reservation is not debited.
    return target.price.of(request_bytes, tokens_out) + target.most_cost


def refusal(denied: Denied, entry: Entry, most_run_calls: int) -> CarnetError:
    """The error that a refused transaction stands for."""
    granted = entry.delegation
    refusals: dict[str, CarnetError] = {
        "replayed": NonceReplayed(),
        "spent": DelegationReplayed(link=1 if granted is None else granted.single_use_link()),
        "mismatch": IdempotencyMismatch(),
        "chain": ChainMismatch("the parent turn is known here at another depth"),
        "rate": RateLimited(denied.bucket or "", retry_after=denied.retry_after or 1),
        "quota": _used_up(denied, entry.quotas),
        "run_calls": RunCallsExceeded(limit=most_run_calls),
        "spending": SpendingLimitReached() if entry.payer.own_issue else PaymentRequired(),
    }
    return refusals[denied.reason]


def _used_up(denied: Denied, quotas: Sequence[Quota]) -> CarnetError:
    """The error that a purse without anything left stands for."""
    purse = denied.bucket or ""
    quota = next((quota for quota in quotas if quota.purse == purse), Quota(purse=purse, limit=0))
    facts = {"limit": quota.limit, "retry_after": denied.retry_after or quota.retry_after}
    return TooManyTasks(**facts) if purse.startswith(TASKS) else TokenBudgetExceeded(**facts)
