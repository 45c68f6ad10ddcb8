"""Budgets in a real store: any order of calls, ends, lost connections and deaths keeps them whole.

`pytest --hypothesis-profile=explore tests/stores/ledger/test_budgets_machine.py` searches further.
"""

import asyncio
import tempfile
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from msgspec.structs import replace

import carnet.faults
from carnet.core.chain.turn import Turn
from carnet.core.people.proof import Spending
from carnet.errors import CarnetError
from carnet.ports.calls.turns import Claimed, Debit, Denied, TurnClaim
from carnet.ports.money.budgets import Amounts, BudgetTake, Opening
from carnet.stores.postgres import budgets as postgres_budgets
from carnet.stores.sqlite import budgets as sqlite_budgets
from carnet.stores.turn.budgets.rows import COLUMNS, BudgetRow, read_budget
from tests.stores.support import servers
from tests.stores.support.scenes import Place, a_claim, a_finish

T = TypeVar("T")
ROOT = "call:root"
LIMITS = Spending(money=20, currency="credits", calls=12, tokens=30)
ALL = f"SELECT {', '.join(COLUMNS)} FROM budget"  # noqa: S608  names of ours

small = st.integers(0, 6)


@contextmanager
def dropped() -> Iterator[None]:
    """Lose the connection where budgets were just written, before their commit; once."""
    left = [ConnectionResetError("the connection is gone")]

    def lose(name: str) -> None:
        if name == "budget.written" and left:
            raise left.pop()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(carnet.faults, "is_armed", True)
        patched.setattr(sqlite_budgets, "point", lose)
        patched.setattr(postgres_budgets, "point", lose)
        yield


class Spenders(RuleBasedStateMachine):
    """Calls that take of one budget, or of shares of it."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._place = Place(Path(self._folder.name), self.url())
        self._loop = asyncio.new_event_loop()
        self._store = self._run(self._place.start())
        self._running: dict[int, tuple[Turn, TurnClaim]] = {}
        self._lost: list[TurnClaim] = []
        self._made = 0

    def url(self) -> str:
        """Of an empty database; none for a file of its own."""
        return ""

    def _run(self, work: Awaitable[T]) -> T:
        return self._loop.run_until_complete(work)

    def _rows(self) -> dict[str, BudgetRow]:
        return {row[0]: read_budget(row) for row in self._place.rows(ALL)}

    def _new(self, money: int, share: int | None, place: int) -> TurnClaim:
        """A claim of the root, of a share that is open, or of a share of its own."""
        self._made += 1
        open_shares = [name for name, row in self._rows().items() if row.parent and not row.closed]
        above = [ROOT, *open_shares][place % (1 + len(open_shares))]
        name, opens = above, None
        if share is not None:
            name = f"call:{self._made}"
            limits = Spending(money=share, currency="credits", calls=max(1, share // 2))
            opens = Opening(name=name, limits=limits, parent=above)
        need = Amounts(money, 1, 0)
        root = Opening(name=ROOT, limits=LIMITS) if above == ROOT else None
        take = BudgetTake(names=(name,), take=need, least=need, run="run", above=root, opens=opens)
        return a_claim(f"r{self._made}", budget=take)

    def _claim(self, claim: TurnClaim) -> bool:
        try:
            verdict = self._run(self._store.turns.claim(claim))
        except CarnetError:  # the connection was lost: nothing was written
            return False
        if isinstance(verdict, Denied):
            assert verdict.reason == "budget", verdict
            return False
        assert isinstance(verdict, Claimed), verdict
        self._running[verdict.turn.n] = (verdict.turn, claim)
        return True

    @rule(money=small, share=st.none() | st.integers(1, 8), place=small)
    def begin(self, money: int, share: int | None, place: int) -> None:
        self._claim(self._new(money, share, place))

    @rule(money=small, share=st.none() | st.integers(1, 8), place=small)
    def begin_and_lose_the_connection(self, money: int, share: int | None, place: int) -> None:
        claim = self._new(money, share, place)
        with dropped():
            self._claim(claim)

    def _finish(self, turn: Turn, claim: TurnClaim, money: int, tokens: int) -> None:
        assert claim.budget is not None
        cost = min(money, claim.budget.take.money)
        debits = (Debit("agent:echo", cost),) if cost else ()
        finish = a_finish(turn, debits=debits, used=(1, tokens))
        self._run(self._store.turns.finish(finish))
        del self._running[turn.n]

    @rule(money=small, tokens=small, place=small)
    def end(self, money: int, tokens: int, place: int) -> None:
        if self._running:
            chosen = [*self._running.values()][place % len(self._running)]
            self._finish(*chosen, money, tokens)

    @rule(money=small, tokens=small, place=small)
    def end_and_lose_the_connection(self, money: int, tokens: int, place: int) -> None:
        if not self._running:
            return
        chosen = [*self._running.values()][place % len(self._running)]
        with dropped():
            try:
                self._finish(*chosen, money, tokens)
            except CarnetError:  # it is not ended; the next one who tries does it
                assert chosen[0].n in self._running

    @rule()
    def die(self) -> None:
        """Leave all that runs without an end, and start again."""
        self._run(self._store.close())
        self._place.end_leases()
        self._store = self._run(self._place.start())
        self._lost += [claim for _, claim in self._running.values()]
        self._running = {}

    @rule(place=small)
    def run_again(self, place: int) -> None:
        if self._lost:
            claim = self._lost[place % len(self._lost)]
            if self._claim(replace(claim, now=self._place.clock.wall_us())):
                self._lost.remove(claim)

    @invariant()
    def nobody_has_more_than_there_is(self) -> None:
        rows = self._rows()
        for row in rows.values():
            below = [one for one in rows.values() if one.parent == row.name]
            for part in (0, 1):  # of tokens the last call may read more than is left
                limit, total = row.limits[part], row.total(part)
                assert min(row.held[part], row.spent[part]) >= 0, row
                assert limit is None or total <= limit, row
                given_away = [
                    one.total(part) if one.closed else one.limits[part] or 0
                    for one in below
                    if one.limits[part] is not None
                ]
                assert sum(given_away) <= total, (row, below)

    @invariant()
    def every_call_that_runs_is_counted(self) -> None:
        rows = self._rows()
        if ROOT in rows:
            assert rows[ROOT].total(1) >= len(self._running) + len(self._lost)

    def teardown(self) -> None:
        for turn, claim in [*self._running.values()]:
            self._finish(turn, claim, 0, 0)
        held = [row.held for row in self._rows().values()]
        self._run(self._store.close())
        self._loop.close()
        self._folder.cleanup()
        assert not any(map(any, held)), held


def test_in_any_order_children_never_have_more_than_their_parent_and_nothing_stays_held(
    driver: str, request: pytest.FixtureRequest
) -> None:
    class Here(Spenders):
        def url(self) -> str:
            if driver == "sqlite":
                return ""
            server: servers.Server = request.getfixturevalue("server")
            return server.fresh()

    few = 12 if driver == "sqlite" else 5  # a database of its own for each
    run_state_machine_as_test(
        Here, settings=settings(max_examples=few, stateful_step_count=25, deadline=None)
    )
