"""What becomes of a turn that ends and goes on: it waits for an answer, or to be run again.

Law. A turn goes on to hold what it held, of quotas and of budgets, as long as it may still run on.
"""

from msgspec.structs import replace

from carnet.core.chain.turn import Turn, TurnState
from carnet.ports.calls.turns import TurnFinish
from carnet.ports.money.budgets import Amounts, BudgetUndo
from carnet.stores.database import Row
from carnet.stores.turn.budgets.book import BudgetBook
from carnet.stores.turn.budgets.rows import HELD_BUDGET
from carnet.stores.turn.interrupts import (
    UnansweredFinish,
    WaitingFinish,
    places,
    read_holds,
    write_holds,
)
from carnet.stores.turn.outbound_calls import outbound_row
from carnet.stores.turn.row import DISCARD, ended, sealed_row


class WaitingRules:
    """The part of the rules of ends for turns that are not over."""

    budgets: BudgetBook | None
    turns: list[Row]
    journal: list[Row]
    requeued: list[Row]
    outbound: list[Row]
    interrupts: list[Row]
    calls: list[Row]
    closed: list[int]
    refunds: list[Row]
    reopened: list[Row]
    budgeted: list[Row]

    def _move(self, quota: str, spent: int, reserved: int) -> None:
        """Change what is spent and reserved of a quota."""
        raise NotImplementedError

    def _end_budget(
        self, budget: str, finish: TurnFinish, debited: int, was: TurnState
    ) -> str | None:
        if self.budgets is None:
            return None
        if was == "waiting":  # in vain
            self.budgets.lapse(budget)
            return None
        used = None if finish.used is None else Amounts(debited, *finish.used)
        may_go_on = finish.tells_all and finish.retryable
        return self.budgets.end(budget, finish.state, used, may_go_on=may_go_on)

    def _wait(
        self,
        finish: TurnFinish,
        cost: int,
        run_cost: int,
        kept: list[object],
        budget: str | None,
    ) -> Turn:
        """Let a turn wait for an answer: it goes on to hold what it held."""
        if not isinstance(finish, WaitingFinish):
            raise TypeError("what a turn waits for is sealed before it is stored")
        held = [kept] if kept[1] else []
        held += [[use.quota, 0, use.amount, 0] for use in finish.holding]
        if finish.place is not None:
            self._move(finish.place, 1, 0)
        self.interrupts += finish.rows
        if finish.turn.fence != finish.turn.attempt:  # it has asked before
            self.refunds += [(finish.turn.n, row[0]) for row in finish.rows]
        self.calls.append((finish.turn.n, finish.call_bytes, finish.key_id))
        holds = write_holds(held) if held else None
        row, record = ended(
            finish, finish.state, None, cost, run_cost, finish.waits_until, holds, budget
        )
        self.turns.append(row)
        return record

    def _wait_on(self, finish: UnansweredFinish, held: Row) -> Turn:
        """Let a turn wait as it did: it holds what its row says, and not what was agreed to."""
        _, _, reserve, quota, _, _, holds, *_ = held
        kept = sum(hold[1] for hold in read_holds(holds) if hold[0] == quota)
        self._move(quota, 0, kept - reserve)
        self.reopened.append((finish.turn.n, finish.state_hash))
        if finish.undo is not None and self.budgets is not None:
            self._undo(self.budgets, finish.turn.n, finish.undo, held[HELD_BUDGET])
        return replace(finish.turn, state="waiting")

    def _undo(self, book: BudgetBook, turn: int, undo: BudgetUndo, holding: str | None) -> None:
        if undo.held is not None and holding is not None:
            book.give_back(holding, undo.held)
            self.budgeted.append((undo.held, turn))
        if undo.raised is not None:
            book.lower(*undo.raised)

    def _let_go(self, turn: int, holds: str | None, *, is_waiting: bool) -> None:
        """Give back what a turn held while it waited for an answer that did not come.

        Of one that was answered it is its place; if it waits anew, it takes that again.
        """
        if not is_waiting:
            for place, count in places(holds):
                self._move(place, -count, 0)
            return
        for quota, money, calls, tokens in read_holds(holds):
            self._move(quota, -calls - tokens, -money)
        self.closed.append(turn)

    def _wait_again(self, finish: TurnFinish) -> Turn:
        turn = finish.turn
        waiting = replace(
            turn, state="queued", fence=turn.fence + 1, attempt=turn.attempt + 1, worker=None
        )
        lost = int(finish.code is not None)
        self.requeued.append((waiting.fence, waiting.attempt, lost, turn.n))
        for call in finish.outbound:
            self.outbound.append(outbound_row(turn, call))
        note = b'{"attempt":%d}' % turn.attempt
        self.journal.append(sealed_row(turn.n, DISCARD, 0, 0, note))
        return waiting
