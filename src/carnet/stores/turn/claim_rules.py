"""Deciding claims: the rules, without a database.

A driver reads what the claims need into `ClaimRules`, asks for a verdict on each, and writes the
rows that came of it. What was read must stay true until the commit: the driver holds the locks.

Law 1. The order is: nonce, known turn, delegation good for one call, place in the chain, run bound,
       rates, quotas, reservation, budgets. A refusal leaves no trace. A nonce is used up by every
       verdict that is no refusal, a delegation by a call that runs: its repeat is the same call.
Law 2. First come, first served: a batch is decided in the order it was queued.
Law 3. A batch holds no key and no nonce twice; the writer sees to that.
Law 4. A task waits: its turn has no worker until somebody takes it. One that waits, or whose worker
       is gone, is attached to and never claimed again, because it will be run.
What becomes of an answer, and by which laws, stands in `answers`.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from carnet.core.chain.turn import Turn, on_repeat
from carnet.core.chain.turn_id import OUR_RUNS
from carnet.core.messages.outbound_call import lost_attempt
from carnet.ports.calls.turns import Claimed, Denied, Known, Nonce, Rate, TurnClaim, Verdict
from carnet.ports.money.budgets import Taken
from carnet.stores.database import Row
from carnet.stores.turn.answers import QUEUED, AnswerRules
from carnet.stores.turn.budgets.book import BudgetBook
from carnet.stores.turn.budgets.rules import SpendingRules
from carnet.stores.turn.interrupts import places
from carnet.stores.turn.moves import begins
from carnet.stores.turn.outbound_calls import outbound_row
from carnet.stores.turn.row import (
    ACCEPTED,
    APART,
    DISCARD,
    again_row,
    again_turn,
    begun,
    parent_of,
    place,
    read_turn,
    sealed_row,
)
from carnet.stores.turn.sealed_calls import WaitingRows

_SECOND: Final = 1_000_000
_OUR: Final = len(OUR_RUNS)  # a call less than to ask whether a name starts so
_RUNNING = begins("running")
_DIGEST, _RETRYABLE = place("digest"), place("retryable")
_WIPED: Final = place("wiped")
_RESERVE, _QUOTA, _HOLDS = place("reserve"), place("purse"), place("holds")
_BUDGET, _STATE = place("budget"), place("state")


class Run(Struct):
    """A run as one payer sees it: what was read, and how many calls it has now."""

    key: Row
    n: int
    was: int  # calls; 0: the row does not exist yet
    calls: int
    started: int = 0
    is_ours: bool = True  # its name: such names come one after another


def next_arrival(rate: Rate, tat: int, now: int) -> tuple[int, int | None]:
    """GCRA: the bucket's new mark, or the seconds to wait.

    `calls` may come at once; then one more each `seconds / calls`. A mark further ahead than a full
    bucket comes from a clock that was set back, and is read as a full bucket.
    """
    gap = -(-rate.seconds * _SECOND // rate.calls)
    full = now + rate.calls * gap
    if not now <= tat <= full:
        tat = now if tat < now else full
    wait = tat - (rate.calls - 1) * gap - now
    if wait > 0:
        return tat, -(-wait // _SECOND)
    return tat + gap, None


def in_turn(once: Nonce, key: bytes) -> Nonce:
    """What says that a delegation was used by this turn: it may run again with it."""
    return Nonce(once.sender, f"{once.nonce}@{key.hex()}", once.expires)


def nonces_of(claim: TurnClaim) -> list[Nonce]:
    """All that a claim may use up."""
    found = [] if claim.nonce is None else [claim.nonce]
    if claim.once is not None:
        found += (claim.once, in_turn(claim.once, claim.key))
    return found


def names_of(claim: TurnClaim) -> list[str]:
    """The sender and the nonce of each, one after another."""
    if claim.once is None and claim.nonce is not None:
        return [claim.nonce.sender, claim.nonce.nonce]
    return [name for use in nonces_of(claim) for name in (use.sender, use.nonce)]


class ClaimRules(SpendingRules, AnswerRules):
    """One batch: what was read for it, and the rows to write."""

    def __init__(self, worker: str) -> None:
        self._worker = worker
        # What the driver reads.
        self.turn_numbers: Sequence[int] = ()  # for each claim one
        self.run_numbers: Sequence[int] = ()  # for the runs that are not there
        self.runs: dict[Row, Run] = {}
        self.known: dict[bytes, Row] = {}  # by the key; as TURN_COLUMNS has them
        self.alive: set[str | None] = {worker}  # the workers whose turns are not taken over
        self.tats: dict[str, int] = {}
        self.held: dict[str, int] = {}  # spent and reserved of each quota
        self.unpaid: dict[str, int] = {}  # what is owed above the limit of each, if anything is
        self.nonces: dict[Row, int] = {}  # until when those are refused that were used before
        self.tasks_lost: set[int] = set()  # turns of tasks that wait for another worker
        self.fronts: dict[str, int] = {}  # the rank of the first task that waits for each agent
        self.queued: dict[Row, int] = {}  # and how many wait there of an answered turn's payer
        self.depths: dict[Row, set[int]] | None = None  # that calls below (run, turn) may have
        self.budgets: BudgetBook | None = None  # where a claim names one
        self.pending: list[Row] = []  # of turns that are given an answer, as `answers` has them
        # What the driver writes.
        self.turns_begun = self.runs_begun = 0  # so many of the numbers are used
        self.resolved: list[Row] = []  # the arguments of RESOLVE
        self.resumed: list[Row] = []  # and of RESUME
        self.holding: list[Row] = []  # of turns that wait on and hold more: holds, turn
        self.budgeted: list[Row] = []  # what turns hold of budgets from now on: that, and the turn
        self.driven: list[Row] = []  # of those, what is run as a task, as TASK has it
        self.counted: dict[str, int] = {}  # the buckets that changed, and their marks
        # What this batch adds to each quota, and what it uses of quotas.
        self.reserved, self.taken = dict[str, int](), dict[str, int]()
        self.turns, self.again, self.journal = list[Row](), list[Row](), list[Row]()
        self.used: list[Nonce] = []
        self.lost: list[Row] = []  # attempts that nobody ended, as OUTBOUND has them
        self.waiting = WaitingRows([], [], [], [], [])  # of the turns that are to run later
        self._shrunk: dict[bytes, int] = {}  # what was reserved for a claim, less than it asked
        self._taken: dict[bytes, tuple[Taken, str]] = {}  # of budgets, and how a row says it

    def read_quotas(self, rows: Sequence[Row]) -> None:
        """Take what the driver has read of quotas: name, spent and reserved, unpaid."""
        for name, held, unpaid in rows:
            self.held[name] = held
            if unpaid > 0:
                self.unpaid[name] = unpaid

    def decide(self, claim: TurnClaim) -> Verdict:
        """Admit a claim, or say why not."""
        if claim.nonce is None:
            return self._decide(claim)
        if self.nonces and self.is_replayed(claim):
            return Denied("replayed")
        verdict = self._decide(claim)
        if type(verdict) is not Denied:
            self.used.append(claim.nonce)
        return verdict

    def is_replayed(self, claim: TurnClaim) -> bool:
        """Whether its nonce was used before and has not expired."""
        use = claim.nonce
        return use is not None and self.nonces.get((use.sender, use.nonce), 0) > claim.now

    def _is_spent(self, claim: TurnClaim, once: Nonce) -> bool:
        return self.nonces.get((once.sender, once.nonce), 0) > claim.now

    def _decide(self, claim: TurnClaim) -> Verdict:
        if claim.key in self.known or claim.resolution is not None:
            return self._met(claim, self.known.get(claim.key))
        if claim.once is not None and self._is_spent(claim, claim.once):
            return Denied("spent")
        run = self._run_of(claim)
        if claim.wire_parent and not self._fits(claim, run):
            return Denied("chain")
        if run.calls >= claim.most_run_calls:
            return Denied("run_calls")
        denied = None
        is_bounded = claim.rates or claim.quotas or claim.once or claim.budget
        if is_bounded or claim.may_cost or claim.admitted.reserve:
            denied = self._admit(claim, released=0)
        return denied or self._begin(claim, run)

    def _fits(self, claim: TurnClaim, run: Run) -> bool:
        """Whether the depth is that of its siblings, or one below its parent's own record.

        Nested ids of other implementations collide (R6): then there are several parents.
        """
        found = (self.depths or {}).get((run.n, parent_of(claim)))
        return not found or claim.admitted.carnet.depth in found

    def _place(self, claim: TurnClaim, run: Run, depths: dict[Row, set[int]]) -> None:
        depths.setdefault((run.n, claim.admitted.carnet.turn), set()).add(
            claim.admitted.carnet.depth + 1
        )
        if parent_of(claim) is not None:
            depths.setdefault((run.n, parent_of(claim)), set()).add(claim.admitted.carnet.depth)

    def _run_of(self, claim: TurnClaim) -> Run:
        account = claim.admitted.payer.account
        key = (claim.admitted.carnet.run, account.issuer, account.id)
        if key not in self.runs:
            n = self.run_numbers[self.runs_begun]
            self.runs_begun += 1
            is_ours = claim.is_first or key[0][:_OUR] == OUR_RUNS
            self.runs[key] = Run(key, n, 0, 0, claim.now, is_ours)
        return self.runs[key]

    def _admit(
        self, claim: TurnClaim, *, released: int, before: Row | None = None
    ) -> Denied | None:
        tats, denied = self._arrivals(claim) if claim.rates else ({}, None)
        denied = denied or (self._used_up(claim) if claim.quotas else None)
        if denied is None and (claim.may_cost or claim.admitted.reserve):
            denied = self._pay(claim, released)
        if denied is None and claim.budget is not None:
            denied = self._spend(claim, claim.budget, before)
        if denied is not None:
            return denied
        if tats:
            self.tats |= tats
            self.counted |= tats
        for quota in claim.quotas:
            if quota.take:
                self.held[quota.name] = self.held.get(quota.name, 0) + quota.take
                self.taken[quota.name] = self.taken.get(quota.name, 0) + quota.take
        if claim.once is not None:
            self.used += (claim.once, in_turn(claim.once, claim.key))
        return None

    def _pay(self, claim: TurnClaim, released: int) -> Denied | None:
        """Reserve what it may cost; refuse a payer that has not paid what it owes (R57)."""
        admitted = claim.admitted
        name, limit = admitted.payer.quota, admitted.payer.limit
        owing = name if name in self.unpaid else admitted.payer.excess
        if claim.may_cost and owing in self.unpaid:
            return Denied("unpaid", amount=self.unpaid[owing])
        reserve = admitted.reserve
        left = reserve if limit is None else limit - self.held.get(name, 0) + released
        if reserve > left:
            left = max(left, 0)
            if not left or reserve - left > claim.shrinks:
                return Denied("spending", amount=left)
            self._shrunk[claim.key] = reserve = left
        if reserve:
            self._reserve(name, reserve)
        return None

    def _as_reserved(self, claim: TurnClaim) -> tuple[TurnClaim, int | None]:
        """A claim with what was reserved for it, where that is less than it asked for."""
        reserved = self._shrunk.get(claim.key)
        if reserved is not None:
            claim = replace(claim, admitted=replace(claim.admitted, reserve=reserved))
        return claim, reserved

    def _used_up(self, claim: TurnClaim) -> Denied | None:
        """The refusal of the quota that is used up for longest."""
        empty = [q for q in claim.quotas if self.held.get(q.name, 0) + max(q.take, 1) > q.limit]
        if not empty:
            return None
        longest = max(empty, key=lambda quota: quota.retry_after)
        return Denied("quota", longest.retry_after, longest.name)

    def _arrivals(self, claim: TurnClaim) -> tuple[dict[str, int], Denied | None]:
        """The new mark of each bucket, or the refusal of the one that is full for longest."""
        tats: dict[str, int] = {}
        longest, full = 0, ""
        for rate in claim.rates:
            bucket = rate.bucket
            before = 0
            if bucket in tats:
                before = tats[bucket]
            elif bucket in self.tats:
                before = self.tats[bucket]
            tats[bucket], wait = next_arrival(rate, before, claim.now)
            if wait is not None and wait > longest:
                longest, full = wait, bucket
        return tats, Denied("rate", longest, full) if longest else None

    def _reserve(self, quota: str, amount: int) -> None:
        self.held[quota] = self.held.get(quota, 0) + amount
        self.reserved[quota] = self.reserved.get(quota, 0) + amount

    def _begin(self, claim: TurnClaim, run: Run) -> Claimed:
        reserved = None
        if self._shrunk:
            claim, reserved = self._as_reserved(claim)
        taken = None
        if self._taken:
            claim, taken = self._with_held(claim)
        run.calls += 1
        n = self.turn_numbers[self.turns_begun]
        self.turns_begun += 1
        state, worker = (_RUNNING, self._worker) if claim.task is None else (QUEUED, None)
        if self.depths is not None:
            self._place(claim, run, self.depths)
        admitted = claim.admitted
        row, turn = begun(claim, admitted, admitted.carnet, n, run.n, state, worker)
        self.turns.append(row)
        self.journal.append(sealed_row(n, ACCEPTED, 0, 0, claim.request + APART + claim.grounds))
        if claim.task is not None:
            self.waiting.add(n, claim, claim.task, self._rank(claim))
        elif claim.listed is not None:
            self.waiting.list(n, claim, claim.listed)
        return Claimed(turn, reserved) if taken is None else Claimed(turn, reserved, 0, taken)

    def _rank(self, claim: TurnClaim) -> int:
        """Where a task waits: as far behind the first as its sender has tasks there already.

        So the first task of anybody is among the first, however many somebody else has (A88). It
        is counted by the quota of the sender: a peer has one, for whomever it says that it calls.
        """
        before = [self.held[quota.name] - 1 for quota in claim.quotas if quota.take]
        return self.fronts.get(claim.admitted.agent, 0) + max(before, default=0)

    def _let_go(self, holds: str | None) -> None:
        """Give back the place of a turn that has waited, among those of its caller."""
        for name, count in places(holds):
            self.held[name] = self.held.get(name, 0) - count
            self.taken[name] = self.taken.get(name, 0) - count

    def _met(self, claim: TurnClaim, row: Row | None) -> Verdict:
        """What a claim gets that is a repeat, or should be one."""
        if row is not None and row[_WIPED] is not None:
            return Known(read_turn(row))  # that it was deleted is all that is recorded of it
        if row is not None and claim.exactly_once and claim.resolution is None:
            return Known(read_turn(row))  # agents-api:run:claimed
        if row is None or (claim.resolution is not None and row[_DIGEST] != claim.digest):
            return Denied("resolution" if row is None else "mismatch")
        if claim.resolution is not None:
            return self._resolve(claim, claim.resolution, row)
        return self._repeat(claim, row)

    def _repeat(self, claim: TurnClaim, row: Row) -> Verdict:
        turn = read_turn(row)
        reserve, quota = row[_RESERVE], row[_QUOTA]
        repeat = on_repeat(
            turn.state,
            same_digest=row[_DIGEST] == claim.digest,
            retryable=bool(row[_RETRYABLE]),
            worker_alive=turn.worker in self.alive or turn.n in self.tasks_lost,
        )
        if repeat != "run_again" or _is_moved(turn, claim):
            return _known_again(repeat, turn, claim)
        if claim.once is not None and self._is_spent(claim, claim.once):
            its_own = in_turn(claim.once, claim.key)
            if not self._is_spent(claim, its_own):
                return Denied("spent")
        agreed = self._agreed(turn.n)
        claim = self._with_agreed(claim, agreed)
        if claim.admitted.payer.limit is None:
            agreed = 0
        if agreed:
            whole = replace(claim.admitted, reserve=claim.admitted.reserve + agreed)
            claim = replace(claim, admitted=whole)
        released = reserve if quota == claim.admitted.payer.quota else 0
        denied = self._admit(claim, released=released, before=row)
        if denied is not None:
            return denied
        if reserve:  # held by an attempt that nobody ended
            self._reserve(quota, -reserve)
        self._let_go(row[_HOLDS])
        return self._begin_again(claim, turn, agreed)

    def _begin_again(self, claim: TurnClaim, turn: Turn, agreed: int) -> Claimed:
        claim, reserved = self._as_reserved(claim)
        claim, taken = self._with_held(claim)
        fence, attempt = turn.fence + 1, turn.attempt + 1
        state, worker = (_RUNNING, self._worker) if claim.task is None else (QUEUED, None)
        self.again.append(again_row(claim, turn, state, worker, fence, attempt))
        if turn.state == "running":  # and nobody has given it up
            self.lost.append(outbound_row(turn, lost_attempt(turn)))
        if claim.task is not None:
            self.waiting.add(turn.n, claim, claim.task, self._rank(claim))
        elif claim.listed is not None:
            self.waiting.list(turn.n, claim, claim.listed)
        self.journal.append(sealed_row(turn.n, DISCARD, 0, 0, b'{"attempt":%d}' % turn.attempt))
        turn = again_turn(claim, turn, state, worker, fence, attempt)
        return Claimed(turn, claim.admitted.reserve if agreed else reserved, agreed, taken)


def _is_moved(turn: Turn, claim: TurnClaim) -> bool:
    """Whether a turn is sent again from another depth: it would run on from there (A40)."""
    return turn.depth != claim.admitted.carnet.depth


def _known_again(repeat: str, turn: Turn, claim: TurnClaim) -> Verdict:
    """What a repeat gets that does not run."""
    if repeat == "mismatch":
        return Denied("mismatch")
    return Denied("moved") if _is_moved(turn, claim) else Known(turn)
