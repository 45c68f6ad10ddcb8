"""Appending and ending: the rules, without a database.

Law 1. Only the owner writes: the fence must be the turn's own and the turn must be running.
       Everybody else is told `Fenced`, and nothing of theirs is kept.
Law 2. What is released is what the turn's row holds, not what the caller remembers.
Law 3. A turn's cost and the cost of its run are frozen here, in the order of the batch.
Law 4. A turn that ends as waiting to be run goes on to hold what it held; the attempt that ended is
       no longer part of the answer, and whoever made it is told `Fenced` from then on.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from carnet.core.turn import Turn
from carnet.ports.outbox import Letter
from carnet.ports.turns import Fenced, TurnFinish
from carnet.stores.database import Flush, Row
from carnet.stores.journal import DISCARD, ENDED, EVENTS, sealed_row
from carnet.stores.turn_row import ended_row, ended_turn


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


class FinishRules:
    """One batch: what was read for it, and the rows to write."""

    def __init__(self) -> None:
        # What the driver reads.
        self.held: dict[int, Row] = {}  # of each running turn: n, fence, reserve, purse, run, cost
        self.run_costs: dict[int, int] = {}
        # What the driver writes.
        self.run_costs_changed: dict[int, int] = {}
        self.purses: dict[str, tuple[int, int]] = {}  # more spent, more reserved
        self.turns: list[Row] = []
        self.journal: list[Row] = []
        self.ledger: list[Row] = []
        self.requeued: list[Row] = []  # turns that wait again: fence, attempt, lost, n
        self.letters: list[tuple[Letter, int]] = []  # and when they are due
        self.tasks: list[Row] = []  # that have ended: when, and their turn

    def read(self, rows: Sequence[Row]) -> None:
        """Take what the driver has read."""
        for row in rows:
            self.held[row[0]] = row
            self.run_costs[row[4]] = row[5]

    def end(self, finish: TurnFinish) -> Turn | Fenced:
        """End a turn, or say that it is not the caller's."""
        turn = finish.turn
        held = self.held.pop(turn.n, None)  # the same turn again in this batch is too late
        if held is None or held[1] != turn.fence:
            if held is not None:
                self.held[turn.n] = held
            return _fenced(turn)
        if finish.state == "queued":
            return self._wait_again(finish)
        _, _, reserve, purse, run, _ = held
        debited = self._post(finish, run)
        self._move(purse, 0, -reserve)
        self._move(finish.payer.purse, debited, 0)
        data = finish.events
        self.journal.append(
            sealed_row(turn.n, EVENTS, finish.first, finish.last, data)
            if data
            else sealed_row(turn.n, ENDED, 0, 0, b'{"state":"%b"}' % finish.state.encode())
        )
        if finish.uses or finish.letters or finish.is_task:
            self._tell(finish)
        return self._record(
            finish, cost=debited + finish.children_cost, run_cost=self.run_costs[run]
        )

    def _wait_again(self, finish: TurnFinish) -> Turn:
        turn = finish.turn
        waiting = replace(
            turn, state="queued", fence=turn.fence + 1, attempt=turn.attempt + 1, worker=None
        )
        lost = int(finish.code is not None)
        self.requeued.append((waiting.fence, waiting.attempt, lost, turn.n))
        note = b'{"attempt":%d}' % turn.attempt
        self.journal.append(sealed_row(turn.n, DISCARD, 0, 0, note))
        return waiting

    def _tell(self, finish: TurnFinish) -> None:
        for use in finish.uses:
            self._move(use.purse, use.amount, 0)
        self.letters += [(letter, finish.now) for letter in finish.letters]
        if finish.is_task and finish.state != "waiting":
            self.tasks.append((finish.now, finish.turn.n))

    def _post(self, finish: TurnFinish, run: int) -> int:
        turn, account = finish.turn, finish.payer.account
        debited = 0
        for debit in finish.debits:
            debited += debit.amount
            self.ledger.append(
                (
                    *(finish.now, turn.run, turn.turn, account.issuer, account.id),
                    *(debit.credit, debit.amount),
                )
            )
        if debited:
            self.run_costs[run] += debited
            self.run_costs_changed[run] = self.run_costs[run]
        return debited

    def _move(self, purse: str, spent: int, reserved: int) -> None:
        if spent or reserved:
            before = self.purses.get(purse, (0, 0))
            self.purses[purse] = (before[0] + spent, before[1] + reserved)

    def _record(self, finish: TurnFinish, *, cost: int, run_cost: int) -> Turn:
        ended = None if finish.state == "waiting" else finish.now
        row = (finish, finish.state, ended, cost, run_cost)
        self.turns.append(ended_row(*row))
        return ended_turn(*row)
