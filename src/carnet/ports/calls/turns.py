"""The four hot operations on turns: claim, append, finish, renew.

Law 1. A claim is one transaction that answers in this order: nonce, known turn, delegation that is
       good for one call, place in the chain, run bound, rates, quotas, reservation, budgets, then
       the turn and its journal entry. A refusal leaves no trace: it burns neither nonce nor turn.
Law 2. `append` and `finish` carry the fence of the claim; a late writer is told `Fenced`.
Law 3. What is awaited here is durable.
Law 4. A turn that ends as waiting goes on to hold what it reserved, less what was debited, until it
       is answered or its time is over. The answer is used once: a claim that brings it runs the
       turn on, under the next fence. The journal never holds the secret of an interrupt.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Literal, Protocol

from msgspec import Struct

from carnet.core.call import Admitted
from carnet.core.chain.turn import Turn, TurnState
from carnet.core.messages.interrupt import Interrupt, InterruptRecord
from carnet.core.messages.outbound_call import OutboundCall, lost_attempt
from carnet.core.people.identity import Payer
from carnet.ports.calls.tasks import Callback, ListedTask, TaskClaim
from carnet.ports.money.budgets import BudgetShort, BudgetTake, BudgetUndo, Taken
from carnet.ports.world.outbox import Delivery

TOKENS: Final = "tokens/"  # what the names of each kind of quota begin with
TASKS: Final = "tasks/"
UNPAID: Final = "unpaid:"  # what is credited where nobody has paid, and the quota behind it
DISPUTED: Final = "disputed:"  # and where a peer says more than it may charge, and the peer


class Rate(Struct, frozen=True, kw_only=True):
    """At most `calls` in `seconds`, counted per bucket, all replicas together."""

    bucket: str
    calls: int
    seconds: int


class Nonce(Struct, frozen=True):
    """The nonce of a signed request: accepted once for each sender while it lives."""

    sender: str
    nonce: str
    expires: int  # microseconds since the epoch: refused until then, whoever asks (R11)


class Quota(Struct, frozen=True, kw_only=True):
    """At most `limit` of something, counted under a name; `take` is used until the finish.

    With nothing to take, a quota that is used up refuses: what is used is known at the end.
    """

    name: str
    limit: int
    take: int = 0
    retry_after: int = 1


class Answer(Struct, frozen=True, kw_only=True):
    """What a claim brings to a turn that waits: the answer to one of its interrupts."""

    state_hash: bytes  # of `core.messages.interrupt.hash_state`
    outcome: Literal["accepted", "rejected"]
    resolver: str | None = None
    value: bytes | None = None  # what was answered beside; the store seals it
    interrupt: str | None = None  # its id, if it is known: the state is the asker's to choose
    grant: str | None = None  # how much it gives to a budget, as it was written; None: as asked


class TurnClaim(Struct, frozen=True, kw_only=True):
    """Everything the claim transaction needs."""

    admitted: Admitted
    key: bytes
    digest: bytes
    most_run_calls: int
    now: int  # microseconds since the epoch
    request: bytes  # what was asked, for the journal
    rates: tuple[Rate, ...] = ()  # all of them must pass; where one refuses, none is charged
    is_first: bool = False  # the run was named a moment ago: nothing of it can be known
    nonce: Nonce | None = None  # of a signed request: answered before anything else
    wire_parent: bool = False  # a peer named the parent turn: its depth is compared (A40)
    once: Nonce | None = None  # a delegation that is good for one call, beside the request's own
    quotas: tuple[Quota, ...] = ()  # all of them must pass
    task: TaskClaim | None = None  # it waits, and runs later
    listed: ListedTask | None = None  # it runs at once, and is a task
    resolution: Answer | None = None  # the turn waits, and this is what it waits for
    grounds: bytes = b""  # why it was admitted, of `core.chain.grounds`
    made_in: Turn | None = None  # the turn a child was made in, also where no header names it
    may_cost: bool = False  # then a payer that has not paid before is refused
    shrinks: int = 0  # so much less may be reserved where the payer has not more left (R53)
    exactly_once: bool = False  # a turn that is known is told as known, and never run again
    budget: BudgetTake | None = None  # what it may spend of budgets: held, or it is refused
    held: str | None = None  # of those: the store writes it down


class Claimed(Struct, frozen=True, tag=True):
    """The turn is ours to run."""

    turn: Turn
    reserved: int | None = None  # where it is not what was asked for
    agreed: int = 0  # of that, what was agreed to be paid for what the turn asked for
    budget: Taken | None = None  # what it was given of budgets
    undo: BudgetUndo | None = None  # what an answer has changed in budgets


class Known(Struct, frozen=True, tag=True):
    """The turn exists: replay it if it has ended, attach if it is running.

    One that waits is told as waiting, with what it waits for (`Turns.interrupts`).
    """

    turn: Turn


class Denied(Struct, frozen=True, tag=True):
    """The transaction refused; nothing was written."""

    reason: Literal[
        "replayed",
        "spent",
        "mismatch",
        "chain",
        "moved",
        "rate",
        "quota",
        "spending",
        "budget",
        "unpaid",  # what an earlier call cost above the payer's limit
        "run_calls",
        "resolution",  # no turn waits for that answer, or no longer
    ]
    retry_after: int | None = None
    bucket: str | None = None  # the rate (full for longest) or the quota that refused
    amount: int = 0  # of money: what is left of the payer's limit, or is unpaid
    needed: int = 0  # what an answer would have had to reserve; 0 where it was none
    short: BudgetShort | None = None  # the budget that refused


Verdict = Claimed | Known | Denied


class Debit(Struct, frozen=True):
    """One ledger entry of a finish: the payer is debited, `credit` is credited."""

    credit: str  # "agent:echo" or "peer:globex.example"
    amount: int
    # Unpaid: our own price above what the payer's limit had left. Disputed: what a peer says above
    # what it may charge; nobody owes it. Neither is spent.
    kind: Literal["owed", "unpaid", "disputed"] = "owed"


def within(debits: Sequence[Debit], most: int, quota: str) -> list[Debit]:
    """The same as far as `most` goes, the first ones first; the rest is unpaid (R57)."""
    bounded: list[Debit] = []
    left, over = max(most, 0), 0
    for debit in debits:
        if debit.kind != "owed":
            bounded.append(debit)
            continue
        amount = min(debit.amount, left)
        left -= amount
        over += debit.amount - amount
        bounded.append(Debit(debit.credit, amount))
    if over:
        bounded.append(Debit(UNPAID + quota, over, "unpaid"))
    return bounded


def whole_cost(debited: int, children: int, before: int) -> int:
    """What a turn has cost in all its attempts, of which `before` was known.

    A turn that runs again, or on, makes the same calls, which tell again what they have cost in
    all. So do we: `children` has what was debited for the turn itself until it waited.
    """
    return debited + max(children, before)


class Use(Struct, frozen=True):
    """What a finish adds to a quota; less than nothing gives back what was taken."""

    quota: str
    amount: int


Tell = Callable[[Sequence[Callback]], tuple[Delivery, ...]]  # an end to each of the addresses


class TurnFinish(Struct, frozen=True, kw_only=True):
    """How a turn ended.

    One transaction: events, terminal state, calls out, ledger, released reservation, what was used
    of quotas, and the webhook deliveries that tell of it.
    """

    turn: Turn
    state: TurnState
    payer: Payer
    events: bytes  # the events not yet appended, in the journal's form; b"" if none
    first: int  # sequence number of the first of them within the turn
    last: int
    debits: Sequence[Debit]
    children_cost: int  # what children in process already debited
    reserve: int
    now: int
    exceeds: bool = False  # more is debited than was reserved, or not all of it can be
    disputed: int = 0  # in all, by a peer that this turn was a call to
    tokens_in: int | None = None
    tokens_out: int | None = None
    code: str | None = None
    retryable: bool = False
    uses: tuple[Use, ...] = ()
    deliveries: tuple[Delivery, ...] = ()
    tell: Tell | None = None  # of a task: more of them, to the addresses that it has then
    has_callback: bool = False  # it was asked for with such an address, and probably has it still
    is_task: bool = False  # what was kept to run it is removed
    is_listed: bool = False  # it was answered at once: nothing is kept for its first attempt
    has_asked: bool = False  # for what it has called, perhaps while it ran: that is closed
    outbound: tuple[OutboundCall, ...] = ()  # the calls out of it, by their place
    facts: str | None = None  # of a failure, as JSON
    interrupts: tuple[Interrupt, ...] = ()  # what a turn waits for that ends as waiting
    waits_until: int = 0  # and for how long; 0: as long as the store lets it
    call_bytes: bytes = b""  # of `core.sealed_call`, to run it then; the store seals them
    holding: tuple[Use, ...] = ()  # of quotas, what it goes on to take while it waits
    released: int = 0  # of what it holds: agreed to, not paid, and now asked for again
    charges_all: bool = False  # payments that others ask for are debited by this turn too
    used: tuple[int, int] | None = None  # of budgets: calls and tokens; None: nobody knows
    tells_all: bool = False  # a callee that is called again tells what it has used in all
    owners: tuple[str | None, ...] = ()  # who is to answer each here; None: whoever called us is


def end_unknown(
    turn: Turn, payer: Payer, *, now: int, reserve: int = 0, has_begun: bool = True
) -> TurnFinish:
    """The end of a turn that nobody knows the end of: no events, no price, and it may run again."""
    return TurnFinish(
        turn=turn,
        state="unknown",
        payer=payer,
        events=b"",
        first=0,
        last=0,
        debits=(),
        children_cost=0,
        reserve=reserve,
        now=now,
        code="outcome_unknown",
        retryable=True,
        outbound=(lost_attempt(turn),) if has_begun else (),
    )


class Fenced(Exception):
    """Another worker owns the turn now; this one's write was dropped."""


class Turns(Protocol):
    """The turns of one store."""

    async def claim(self, claim: TurnClaim) -> Verdict:
        """Claim a turn, or learn why not."""

    async def append(self, turn: Turn, first: int, last: int, events: bytes) -> None:
        """Make a batch of events durable. Raises Fenced."""

    def finish(self, finish: TurnFinish) -> Awaitable[Turn]:
        """End a turn; gives the record with its frozen costs. Raises Fenced."""

    async def events(self, turn: Turn, since: int = 0, *, is_piece: bool = False) -> list[bytes]:
        """The event batches of this attempt from event number `since` on, oldest first.

        With `is_piece` no more than a piece of them, which is one batch at least.
        """

    async def size(self, turn: Turn) -> int:
        """How many bytes of events this attempt has."""

    async def interrupts(self, turn: Turn) -> Sequence[InterruptRecord]:
        """What a turn waits for, or waited for, in the order in which it asked."""

    async def question(self, claim: TurnClaim) -> InterruptRecord | None:
        """What the turn of a claim waits for that brings an answer; None if it is none of those."""

    async def calls_out(self, turn: Turn) -> Sequence[str]:
        """The ids under which earlier attempts of a turn have called others."""

    async def reload(self, turn: Turn) -> Turn:
        """The record as it is now."""
