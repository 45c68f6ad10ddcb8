"""Appending and ending: the rules, without a database.

Here is also the chain of the ledger, which makes a changed, missing or invented posting show.

A shard is the chain of one writer process; a chain over all of them would be a lock over all of
them. Every hash is keyed with a secret that is not in the database, so that who can write the
database alone cannot write a posting that fits.

Law 1. Only the owner writes: the fence must be the turn's own and the turn must be running.
       Everybody else is told `Fenced`, and nothing of theirs is kept.
Law 2. What is released is what the turn's row holds, not what the caller remembers.
Law 3. A turn's cost and the cost of its run are frozen here, in the order of the batch. What its
       payer's limit cannot take beside the reservations of others is a posting of its own.
Law 4. The end of a task is told to the addresses that it has now, or is not written (`Untold`).
Law 5. A turn that ends as queued goes on to hold what it held; the attempt that ended is no longer
       part of the answer, and whoever made it is told `Fenced` from then on.
Law 6. A hash covers the one before it and every column of its row, each with its own length
       (MessagePack), so that no two rows are spelled the same.
Law 7. A turn for which its caller has no place left does not wait: nothing of its end is written,
       and whoever made it ends it otherwise.
Law 8. A rule that has agreed to a payment is given back its amount where nothing was paid: the turn
       has failed for good and has cost nothing, or asks for it again.
Law 9. The head moves with the commit: what was rolled back leaves no gap, and after a commit that
       may or may not have happened a new shard begins.
"""

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Final

import msgspec

from carnet.core.chain.turn import TRANSITIONS, Turn, TurnState
from carnet.errors import TooManyWaiting
from carnet.ports.calls.turns import UNPAID, Debit, Fenced, TurnFinish, whole_cost, within
from carnet.ports.world.outbox import Delivery
from carnet.stores.database import Flush, Row
from carnet.stores.turn.budgets.book import BudgetBook
from carnet.stores.turn.callbacks import CallbacksChanged, NotifyingFinish
from carnet.stores.turn.interrupts import UnansweredFinish, WaitingFinish, places
from carnet.stores.turn.outbound_calls import outbound_row
from carnet.stores.turn.row import ENDED_ROW, EVENTS, ended, sealed_row
from carnet.stores.turn.wait_rules import WaitingRules

# A running turn ends as it likes; one that waits for an answer only as failed.
_ENDS: Final[dict[TurnState, frozenset[TurnState]]] = {
    **TRANSITIONS,
    "waiting": frozenset({"failed"}),
}


Ended = Turn | Fenced | CallbacksChanged | TooManyWaiting  # what an end comes to


def appended(
    flushes: Sequence[Flush], fences: dict[int, int]
) -> tuple[list[Fenced | None], list[Row]]:
    """A verdict on each, and the journal rows of those who own their turn.

    `fences` has the fence of each turn that is running.
    """
    answers: list[Fenced | None] = []
    rows: list[Row] = []
    for flush in flushes:
        turn = flush.turn
        if fences.get(turn.n) != turn.fence:
            answers.append(_fenced(turn))
            continue
        rows.append(sealed_row(turn.n, EVENTS, flush.first, flush.last, flush.events))
        answers.append(None)
    return answers, rows


def _fenced(turn: Turn) -> Fenced:
    return Fenced(f"turn {turn.n} is not running under fence {turn.fence}")


class FinishRules(WaitingRules):
    """One batch: what was read for it, and the rows to write."""

    def __init__(self) -> None:
        # What the driver reads.
        self.held: dict[int, Row] = {}  # of each turn that may end, as HELD has them
        self.run_costs: dict[int, int] = {}
        # And reserved, of the quotas of ends that exceed, and that turns wait by.
        self.spent: dict[str, int] = {}
        self.budgets: BudgetBook | None = None  # where a turn holds something of one
        self.holds_budgets = False
        self.callbacks: list[Row] = []  # of tasks that end, as CALLBACK_COLUMNS has them
        # What the driver writes.
        self.run_costs_changed: dict[int, int] = {}
        self.quotas: dict[str, tuple[int, int]] = {}  # more spent, more reserved
        self.unpaid: dict[str, int] = {}  # more that is owed above a limit
        self.turns: list[Row] = []
        self.journal: list[Row] = []
        self.ledger: list[Row] = []
        self.requeued: list[Row] = []  # turns that wait again: fence, attempt, lost, n
        self.deliveries: list[tuple[Delivery, int]] = []  # and when they are due
        self.tasks: list[Row] = []  # that have ended: when, and their turn
        self.forgotten: list[Row] = []  # the turns of those for which a call may be kept
        self.touched: list[Row] = []  # the same of those that wait for an answer
        self.outbound: list[Row] = []  # as OUTBOUND has them
        self.interrupts: list[Row] = []  # as INTERRUPT has them
        self.calls: list[Row] = []  # of turns that wait for an answer: turn, sealed, key_id
        self.closed: list[int] = []  # turns that wait no more, and were not answered
        self.refunds: list[Row] = []  # payments that were not made: turn, interrupt or "" for all
        self.budgeted: list[Row] = []  # what turns hold of budgets from now on: that, and the turn
        self.reopened: list[Row] = []  # turns that wait on, and the hash of what they were answered

    def read(self, rows: Sequence[Row]) -> None:
        """Take what the driver has read."""
        for row in rows:
            self.held[row[0]] = row
            self.run_costs[row[4]] = row[-1]
            if row[8] is not None:
                self.holds_budgets = True

    def end(self, finish: TurnFinish) -> Ended:
        """End a turn, or say that it is not the caller's, is not told to all or may not wait."""
        turn = finish.turn
        held = self.held[turn.n] if turn.n in self.held else None  # noqa: SIM401  a call less
        if held is None or held[1] != turn.fence or finish.state not in _ENDS[held[5]]:
            return _fenced(turn)
        notifies = self.callbacks or type(finish) is not TurnFinish
        if notifies and finish.tell is not None and not self._has_these_addresses(finish):
            return CallbacksChanged(f"turn {turn.n} has other addresses")
        if finish.state == "waiting":
            return self._end_waiting(finish, held)
        del self.held[turn.n]  # the same turn again in this batch is too late
        if finish.state == "queued":
            return self._wait_again(finish)
        return self._end(finish, held)

    def _end_waiting(self, finish: TurnFinish, held: Row) -> Turn | TooManyWaiting:
        """Let a turn wait if it has a place; one that was answered and not run on has its own."""
        if isinstance(finish, WaitingFinish) and self._is_full(finish, held[6]):
            return TooManyWaiting(limit=finish.most)
        del self.held[finish.turn.n]
        if isinstance(finish, UnansweredFinish):
            return self._wait_on(finish, held)
        return self._end(finish, held)

    def _is_full(self, finish: WaitingFinish, holds: str | None) -> bool:
        """Whether as many turns of its caller wait as may; one that has waited has its place."""
        place = finish.place
        own = sum(count for name, count in places(holds) if name == place)
        return place is not None and self.spent.setdefault(place, 0) - own >= finish.most

    def _has_these_addresses(self, finish: TurnFinish) -> bool:
        addresses = finish.addresses if isinstance(finish, NotifyingFinish) else ()
        now = {tuple(row) for row in self.callbacks if row[0] == finish.turn.n}
        return now == set(addresses)

    def _end(self, finish: TurnFinish, held: Row) -> Turn:
        turn = finish.turn
        _, _, reserve, quota, run, state, holds, before, budget, _ = held
        debits = self._within_limit(finish, reserve, budget) if finish.exceeds else finish.debits
        debited = self._post(finish, debits, run) if debits else 0
        kept = max(reserve - debited - finish.released, 0) if finish.state == "waiting" else 0
        if reserve:
            self._move(quota, 0, kept - reserve)
        if debited:
            self._move(finish.payer.quota, debited, 0)
        if budget is not None:
            budget = self._end_budget(budget, finish, debited, state)
        if holds or state == "waiting":
            self._let_go(turn.n, holds, is_waiting=state == "waiting")
        data = finish.events
        self.journal.append(
            sealed_row(turn.n, EVENTS, finish.first, finish.last, data)
            if data
            else sealed_row(turn.n, ENDED_ROW, 0, 0, b'{"state":"%b"}' % finish.state.encode())
        )
        cost = debited + finish.children_cost
        if before:
            cost = whole_cost(debited, finish.children_cost, before)
        # Of a turn that has waited, the fence was raised once more often than the attempt.
        has_waited = turn.fence != turn.attempt or state == "waiting"
        is_kept = finish.is_task or finish.has_asked  # what runs it on, or would have
        if has_waited or finish.uses or finish.deliveries or is_kept or finish.outbound:
            self._tell(finish, cost, has_waited=has_waited)
        if finish.state == "waiting":
            return self._wait(finish, cost, self.run_costs[run], [quota, kept, 0, 0], budget)
        costs = (cost, self.run_costs[run])
        row, record = ended(finish, finish.state, finish.now, *costs, None, None, budget)
        self.turns.append(row)
        return record

    def _tell(self, finish: TurnFinish, cost: int, *, has_waited: bool) -> None:
        """What few ends have: quotas, deliveries, calls out, what was kept to run it."""
        for call in finish.outbound:
            self.outbound.append(outbound_row(finish.turn, call))
        if finish.has_asked or finish.state == "unknown":  # nobody takes the answers any more
            self.closed.append(finish.turn.n)
        if finish.is_task or finish.has_asked or has_waited:
            row = (finish.now, finish.turn.n)
            if finish.state != "waiting":
                self.tasks += (row,)
                is_first = finish.is_listed and finish.turn.fence == 1
                self.forgotten += () if is_first else (row[1:],)
            else:
                self.touched += (row,) if finish.is_task else ()
        if has_waited and finish.state == "failed" and not finish.retryable and not cost:
            self.refunds.append((finish.turn.n, ""))
        for use in finish.uses:
            self._move(use.quota, use.amount, 0)
        for delivery in finish.deliveries:
            self.deliveries.append((delivery, finish.now))

    def _within_limit(
        self, finish: TurnFinish, reserve: int, budget: str | None
    ) -> Sequence[Debit]:
        """What is debited where a call has cost more than was reserved for it (R57).

        That is what the payer's limit, and its budgets, have left beside what others hold.
        """
        payer, debits = finish.payer, finish.debits
        if payer.limit is not None:
            left = payer.limit - (self.spent.get(payer.quota, 0) - reserve)
            debits = within(debits, max(left, reserve), payer.owing)
        if budget is None or self.budgets is None:
            return debits
        room = self.budgets.room(budget)
        return debits if room is None else within(debits, room, payer.owing)

    def _post(self, finish: TurnFinish, debits: Sequence[Debit], run: int) -> int:
        turn, account = finish.turn, finish.payer.account
        debited = 0
        for debit in debits:
            if debit.kind == "owed":
                debited += debit.amount
            elif debit.kind == "unpaid":
                quota = debit.credit.removeprefix(UNPAID)
                self.unpaid[quota] = self.unpaid.get(quota, 0) + debit.amount
            self.ledger.append(
                (
                    *(finish.now, turn.run, turn.turn, account.issuer, account.id),
                    *(debit.credit, debit.amount, run),
                )
            )
        if debited:
            self.run_costs[run] += debited
            self.run_costs_changed[run] = self.run_costs[run]
        return debited

    def _move(self, quota: str, spent: int, reserved: int) -> None:
        if spent or reserved:
            before = self.quotas.get(quota, (0, 0))
            self.quotas[quota] = (before[0] + spent, before[1] + reserved)
            if quota in self.spent:
                self.spent[quota] += spent + reserved


HASH_BYTES: Final = 32
START: Final = bytes(HASH_BYTES)  # what stands before the first of a shard, and of the checkpoints
BEFORE_THE_CHAIN: Final = ""  # the shard of postings that have none

_spell = msgspec.msgpack.Encoder().encode


class Seals:
    """The keyed hashes of one store (BLAKE2b, 256 bits), a kind of its own for each use."""

    __slots__ = ("_checkpoint", "_posting", "_settlement", "_shard")

    def __init__(self, secret: bytes) -> None:
        """`secret` is one that is never rotated: old rows must fit for ever."""
        key = blake2b(key=secret, person=b"carnet.ledger", digest_size=HASH_BYTES).digest()
        self._posting = blake2b(key=key, person=b"carnet.posting", digest_size=HASH_BYTES)
        self._shard = blake2b(key=key, person=b"carnet.lane", digest_size=HASH_BYTES)
        self._settlement = blake2b(key=key, person=b"carnet.settle", digest_size=HASH_BYTES)
        self._checkpoint = blake2b(key=key, person=b"carnet.check", digest_size=HASH_BYTES)

    def posting(self, before: bytes, row: Row) -> bytes:
        """The hash of a posting: n, at, run, turn, issuer, account, credit, amount, shard, seq."""
        state = self._posting.copy()
        state.update(before + _spell(row))
        return state.digest()

    def shard(self, shard: str, postings: int, head: bytes) -> bytes:
        """The seal of the row that says where a shard ends."""
        state = self._shard.copy()
        state.update(_spell((shard, postings, head)))
        return state.digest()

    def settlement(self, name: str, at: int, quota: str, amount: int, how: str) -> bytes:
        """The seal of a settlement."""
        state = self._settlement.copy()
        state.update(_spell((name, at, quota, amount, how)))
        return state.digest()

    def checkpoint(self, before: bytes, n: int, at: int, shards: str) -> bytes:
        """The seal of a checkpoint."""
        state = self._checkpoint.copy()
        state.update(before + _spell((n, at, shards)))
        return state.digest()


class Shard:
    """The end of one shard, as its writer remembers it."""

    __slots__ = ("_begun", "_end", "_kept", "_marked", "_seals", "_worker", "name")

    def __init__(self, seals: Seals, worker: str) -> None:
        self._seals = seals
        self._worker = worker
        self._begun = 0
        self.leave()

    def leave(self) -> None:
        """Begin a new shard: nobody knows whether the last batch was written."""
        self._begun += 1
        self.name = f"{self._worker}.{self._begun}"
        self._end = self._kept = self._marked = (0, START)

    def resume(self, postings: int, head: bytes) -> None:
        """Go on where the database says that the shard ends."""
        self._end = self._kept = self._marked = (postings, head)

    def link(self, postings: Sequence[Row], numbers: Iterator[int]) -> list[Row]:
        """The rows to insert, in their order: with number, shard, place in the shard and hash.

        What is told of a posting last, the number of its run, is for finding it: no part of it.
        """
        linked: list[Row] = []
        seq, head = self._end
        name, posting = self.name, self._seals.posting
        for row in postings:
            seq += 1
            whole = (next(numbers), *row[:-1], name, seq)
            head = posting(head, whole)
            linked.append((*whole, head, row[-1]))
        self._end = (seq, head)
        return linked

    def row(self) -> Row:
        """The row that says where the shard ends now."""
        seq, head = self._end
        return (self.name, seq, head, self._seals.shard(self.name, seq, head))

    def keep(self) -> None:
        """What was linked is committed."""
        self._kept = self._end

    def back(self) -> None:
        """It was rolled back."""
        self._end = self._kept

    def mark(self) -> None:
        """Remember this place, for a savepoint."""
        self._marked = self._end

    def undo(self) -> None:
        """Go back to the place that was marked."""
        self._end = self._marked
