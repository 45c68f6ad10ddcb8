"""Deciding what claims may spend of budgets: the part of the rules of claims that few need."""

from msgspec.structs import replace

from carnet.ports.calls.turns import Denied, TurnClaim
from carnet.ports.money.budgets import BudgetTake, Taken
from carnet.stores.database import Row
from carnet.stores.turn.budgets import BudgetBook
from carnet.stores.turn.row import place

_BUDGET, _STATE = place("budget"), place("state")


class SpendingRules:
    """The part of the rules of claims that holds what they may spend."""

    budgets: BudgetBook | None
    _shrunk: dict[bytes, int]
    _taken: dict[bytes, tuple[Taken, str]]

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

    def _with_held(self, claim: TurnClaim) -> tuple[TurnClaim, Taken | None]:
        """A claim with what it holds of budgets, and what it was given."""
        if claim.key not in self._taken:
            return claim, None
        taken, held = self._taken[claim.key]
        return replace(claim, held=held), taken
