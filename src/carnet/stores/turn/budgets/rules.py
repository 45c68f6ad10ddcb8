"""Deciding what claims may spend of budgets: the part of the rules of claims that few need."""

from msgspec.structs import replace

from carnet.core.messages.interrupt import BudgetRaise, granted
from carnet.errors import InvalidRequest
from carnet.ports.calls.turns import Answer, Denied, TurnClaim
from carnet.ports.money.budgets import Amounts, BudgetTake, BudgetUndo, Taken
from carnet.stores.database import Row
from carnet.stores.turn.budgets.book import BudgetBook
from carnet.stores.turn.budgets.rows import read_holding
from carnet.stores.turn.interrupts import RAISES, raise_of
from carnet.stores.turn.row import place

_BUDGET, _STATE, _N = place("budget"), place("state"), place("n")
_ASKED = 7  # when, in what is read of a question


class SpendingRules:
    """The part of the rules of claims that holds what they may spend."""

    budgets: BudgetBook | None
    _shrunk: dict[bytes, int]
    _taken: dict[bytes, tuple[Taken, str]]
    budgeted: list[Row]  # what turns hold of budgets from now on: that, and the turn

    def _reserve(self, quota: str, amount: int) -> None:
        """Hold so much more of a quota."""
        raise NotImplementedError

    def _spend(self, claim: TurnClaim, asked: BudgetTake, row: Row | None) -> Denied | None:
        """Hold what a claim may spend of budgets, in the place of what its last attempt held."""
        book = self.budgets
        if book is None:
            return None
        before = None if row is None else row[_BUDGET]
        if row is not None and before:
            book.forget(before, row[_STATE])
            if row[_STATE] == "failed":
                asked = _with_before(asked, before)
        taken = book.take(asked, claim.now)
        if isinstance(taken, tuple):
            self._taken[claim.key] = taken
            return None
        if row is not None and before:
            book.restore(before, row[_STATE])
        reserve = claim.admitted.reserve
        if reserve:
            self._reserve(claim.admitted.payer.quota, -self._shrunk.pop(claim.key, reserve))
        return Denied("budget", bucket=taken.name, short=taken)

    def _grant(
        self, claim: TurnClaim, answer: Answer, row: Row, asked: Row, agreed: int
    ) -> Denied | BudgetUndo | None:
        """Hold and raise of budgets what an answer agrees to."""
        book, held = self.budgets, row[_BUDGET]
        if book is None or answer.outcome != "accepted":
            return None
        raised, before = raise_of(asked[RAISES]), None
        if agreed and held:
            more = book.hold_more(held, agreed, claim.now)
            if not isinstance(more, str):
                return Denied("budget", bucket=more.name, short=more)
            self.budgeted.append((more, row[_N]))
            before = held
        if raised is None:
            return None if before is None else BudgetUndo(held=before)
        return self._raise(claim, answer, raised, asked[_ASKED])

    def _raise(
        self, claim: TurnClaim, answer: Answer, asked: BudgetRaise, since: int
    ) -> Denied | BudgetUndo:
        """Raise a budget that has asked for more."""
        try:
            more = granted(asked, answer.grant)
        except InvalidRequest:
            more = 0
        if more < 1:
            return Denied("resolution")
        if not asked.budget:  # the loop counts it, by what it was answered
            return BudgetUndo()
        run, waited = claim.admitted.carnet.run, max(0, claim.now - since)
        short = None
        if self.budgets is not None:
            short = self.budgets.raise_limit(asked, more, run=run, now=claim.now, waited=waited)
        if short is not None:
            return Denied("budget", bucket=short.name, short=short)
        return BudgetUndo(raised=(asked.budget, asked.part, more))

    def _with_agreed(self, claim: TurnClaim, agreed: int) -> TurnClaim:
        """A claim that runs again, with what was agreed to be paid in what it holds of budgets."""
        asked = claim.budget
        if asked is None or not agreed:
            return claim
        return replace(claim, budget=replace(asked, agreed=agreed))

    def _with_held(self, claim: TurnClaim) -> tuple[TurnClaim, Taken | None]:
        """A claim with what it holds of budgets, and what it was given."""
        if claim.key not in self._taken:
            return claim, None
        taken, held = self._taken[claim.key]
        return replace(claim, held=held), taken


def _with_before(asked: BudgetTake, before: str) -> BudgetTake:
    """What a call takes that is made again: what it has used before, and what it asks for now."""
    _, calls, tokens = read_holding(before).held
    take = asked.take
    take = Amounts(take.money, take.calls + calls, take.tokens + tokens)
    return replace(asked, take=take)
