"""What is held and spent of budgets: never more than there is, nothing lost and nothing created."""

from hypothesis import given, settings
from hypothesis import strategies as st

from carnet.core.messages.interrupt import BudgetRaise
from carnet.core.people.proof import Spending
from carnet.ports.money.budgets import Amounts, BudgetShort, BudgetTake, Opening
from carnet.stores.turn.budgets.book import BudgetBook
from carnet.stores.turn.budgets.rows import (
    BudgetRow,
    names_in,
    read_budget,
    read_holding,
    write_budget,
)

ROOT = "call:root"
TOKEN = "token:a"  # that pays for all of it
LIMITS = [20, 12, 30]
MOST_OF_TOKEN = 60


def book() -> BudgetBook:
    root = BudgetRow(name=ROOT, limits=[*LIMITS], currency="credits", run="run", asks=True)
    token = BudgetRow(name=TOKEN, limits=[MOST_OF_TOKEN, None, None], currency="credits")
    return BudgetBook([root, token])


def asked(money: int, share: int | None = None, *, above: str = ROOT, key: int = 0) -> BudgetTake:
    """A call that may cost so much, with a share of its own if one is given."""
    opens = None
    name = above
    if share is not None:
        name = f"call:{key}"
        limits = Spending(money=share, currency="credits", calls=max(1, share // 2))
        opens = Opening(name=name, limits=limits, parent=above, asks=share % 2 == 0)
    need = Amounts(money, 1, 0)
    return BudgetTake(names=(name, TOKEN), take=need, least=need, run="run", opens=opens)


def check(held: BudgetBook) -> None:
    for row in held.rows.values():
        for part, limit in enumerate(row.limits):
            assert row.held[part] >= 0
            assert row.spent[part] >= 0
            if limit is not None and part < 2:
                assert row.total(part) <= limit, row
    for row in held.rows.values():
        below = [one for one in held.rows.values() if one.parent == row.name]
        for part in range(2):
            given_away = sum(
                one.total(part) if one.closed else one.limits[part] or 0
                for one in below
                if one.limits[part] is not None
            )
            assert given_away <= row.total(part), (row, below)


Step = tuple[str, int, int, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["call", "share", "below", "done", "lose", "again", "wait", "give", "agree", "refuse"]
        ),
        st.integers(0, 6),
        st.integers(0, 8),
        st.integers(0, 6),
    ),
    max_size=40,
)


Held = tuple[str, BudgetTake]


class Story:
    """Calls that begin, end, wait, are lost and run again, in any order."""

    def __init__(self) -> None:
        self.book = book()
        self.running: dict[int, Held] = {}
        self.lost: dict[int, Held] = {}
        self.failed: dict[int, str] = {}

    def go(self, key: int, what: str, money: int, share: int, place: int) -> None:
        if what in {"call", "share", "below"}:
            self.begin(key, what, money, share, place)
        elif what == "again":
            self.run_again(place)
        elif what == "give":
            self.give(money, place)
        elif self.running:
            chosen = [*self.running][place % len(self.running)]
            getattr(self, what)(chosen, money)

    def begin(self, key: int, what: str, money: int, share: int, place: int) -> None:
        shares = [n for n, row in self.book.rows.items() if row.parent and not row.closed]
        above = shares[place % len(shares)] if what == "below" and shares else ROOT
        claim = asked(money, share if what == "share" else None, above=above, key=key)
        taken = self.book.take(claim, 0)
        if not isinstance(taken, BudgetShort):
            self.running[key] = (taken[1], claim)

    def give(self, more: int, place: int) -> None:
        """Have who pays give one of them more, where it asks."""
        name = [*self.book.rows][place % len(self.book.rows)]
        part = ("money", "calls")[more % 2]
        before = {row.name: [*row.limits] for row in self.book.rows.values()}
        asked = BudgetRaise(budget=name, part=part, more=more, observed=0, limit=0)
        short = self.book.raise_limit(asked, more, run="run", now=0, waited=0)
        raised = [row for row in self.book.rows.values() if before[row.name] != row.limits]
        assert all(row.asks for row in raised)
        assert bool(raised) == (short is None)

    def agree(self, key: int, money: int) -> None:
        """Agree to a payment that a call asks for: it is held of the token's budget, or refused."""
        text, claim = self.running[key]
        more = self.book.hold_more(text, money, 0)
        if isinstance(more, str):
            self.running[key] = (more, claim)
        else:
            assert more.name == TOKEN

    def refuse(self, key: int, money: int) -> None:
        """Have a callee refuse that has used something, and may go on from there."""
        text, _ = self.running.pop(key)
        used = Amounts(min(money, read_holding(text).held[0]), 1, 0)
        kept = self.book.end(text, "failed", used, may_go_on=True)
        assert kept is not None
        self.failed[key] = kept
        self.book.forget(kept, "failed")
        self.book.restore(kept, "failed")

    def done(self, key: int, money: int) -> None:
        text, _ = self.running.pop(key)
        used = Amounts(min(money, read_holding(text).held[0]), 1, money)
        assert self.book.end(text, "done", used) is None

    def lose(self, key: int, _: int) -> None:
        self.lost[key] = self.running.pop(key)
        text = self.lost[key][0]
        assert self.book.end(text, "unknown", None) == text

    def wait(self, key: int, money: int) -> None:
        text, claim = self.running[key]
        used = Amounts(min(money, read_holding(text).held[0]) // 2, 1, 0)
        waiting = self.book.end(text, "waiting", used)
        assert waiting is not None
        self.running[key] = (waiting, claim)

    def run_again(self, place: int) -> None:
        if not self.lost:
            return
        key = [*self.lost][place % len(self.lost)]
        text, claim = self.lost[key]
        before = [write_budget(row) for row in self.book.rows.values()]
        self.book.forget(text, "unknown")
        taken = self.book.take(claim, 0)
        if isinstance(taken, BudgetShort):
            self.book.restore(text, "unknown")
            assert [write_budget(row) for row in self.book.rows.values()] == before
        else:
            self.running[key] = (taken[1], claim)
            del self.lost[key]

    def end(self) -> None:
        for text, _ in self.running.values():
            self.book.end(text, "failed", Amounts(0, 1, 0))


@settings(max_examples=300)
@given(STEPS)
def test_children_never_have_more_than_their_parent_and_nothing_is_lost_or_created(
    steps: list[Step],
) -> None:
    story = Story()
    for key, step in enumerate(steps):
        story.go(key, *step)
        check(story.book)
    story.end()
    check(story.book)
    rows = story.book.rows.values()
    assert not any(row.held[part] for row in rows for part in range(3)), rows


def test_a_refusal_leaves_no_trace() -> None:
    held = book()
    taken = held.take(asked(20), 0)
    assert isinstance(taken, tuple)
    before = write_budget(held.rows[ROOT])
    refused = held.take(asked(1, 4, key=2), 0)
    assert isinstance(refused, BudgetShort)
    assert (refused.part, refused.limit) == ("money", 0)
    assert write_budget(held.rows[ROOT]) == before
    assert [*held.rows] == [ROOT, TOKEN]


def test_a_share_that_is_closed_gives_back_what_is_released_later() -> None:
    held = book()
    child = held.take(asked(2, 10, key=1), 0)
    assert isinstance(child, tuple)
    grandchild = held.take(asked(3, above="call:1", key=2), 0)
    assert isinstance(grandchild, tuple)
    assert held.rows[ROOT].held[0] == 10
    held.end(child[1], "done", Amounts(2, 1, 0))  # while the one below it runs
    assert (held.rows[ROOT].spent[0], held.rows[ROOT].held[0]) == (5, 0)
    held.end(grandchild[1], "done", Amounts(1, 1, 0))
    assert held.rows[ROOT].spent[0] == 3


def test_a_day_begins_with_nothing_spent() -> None:
    day = 86_400_000_000
    row = BudgetRow(name="token:a/day", limits=[None, 1, None], period=day, since=0)
    held = BudgetBook([row])
    claim = BudgetTake(names=("token:a/day",), take=Amounts(0, 1, 0), least=Amounts(0, 1, 0))
    taken = held.take(claim, day - 1)
    assert isinstance(taken, tuple)
    held.end(taken[1], "done", Amounts(0, 1, 0))
    assert isinstance(held.take(claim, day - 1), BudgetShort)
    assert isinstance(held.take(claim, day), tuple)


def test_a_budget_that_has_ended_refuses() -> None:
    row = BudgetRow(name=ROOT, limits=[None, None, None], until=5_000_000, since=0)
    refused = BudgetBook([row]).take(asked(0), 6_000_000)
    assert refused == BudgetShort(name=ROOT, part="seconds", observed=6, limit=5)


def test_a_row_comes_back_as_it_was() -> None:
    held = book()
    taken = held.take(asked(3, 6, key=7), 0)
    assert isinstance(taken, tuple)
    for row in held.rows.values():
        assert read_budget(write_budget(row)) == row
    assert names_in(taken[1]) == ["call:7", TOKEN, "call:7"]
    assert names_in(None) == []
