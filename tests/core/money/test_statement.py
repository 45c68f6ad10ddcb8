"""Where the records of two partners differ."""

from hypothesis import given
from hypothesis import strategies as st

from carnet.core.money.statement import Disagreement, Statement, StatementLine, disagreements

words = st.sampled_from(["a", "b", "c"])
lines = st.builds(
    StatementLine,
    words,
    words,
    st.none() | st.integers(0, 3),
    st.none() | words,
    st.integers(0, 9),
)


def statement(*served: StatementLine, made: tuple[StatementLine, ...] = ()) -> Statement:
    return Statement(
        issuer="acme.example",
        audience="globex.example",
        since=0,
        until=10,
        currency="credits",
        served=served,
        made=made,
    )


def line(cost: int | None = 2, payer: str | None = "alice", at: int = 5) -> StatementLine:
    return StatementLine("run", "turn", cost, payer, at)


def found(made: StatementLine | None, served: StatementLine | None) -> list[str]:
    """What we find of a call that we made, as each side has it."""
    ours = statement(made=() if made is None else (made,))
    theirs = statement(*(() if served is None else (served,)))
    return [each.kind for each in disagreements(ours, theirs)]


def test_what_both_have_alike_is_no_disagreement() -> None:
    assert found(line(), line()) == []
    assert found(line(payer=None), line()) == []
    assert found(line(), line(payer="acme.example")) == []  # the caller as a whole
    assert found(line(), line(payer="0" * 32)) == []  # a forwarded credential


def test_each_way_to_differ_has_its_name() -> None:
    assert found(line(), None) == ["missing_there"]
    assert found(None, line()) == ["missing_here"]
    assert found(line(2), line(3)) == ["other_amount"]
    assert found(line(), line(payer="mallory")) == ["other_payer"]
    assert found(line(None), line()) == ["unmatched"]
    assert found(line(None), None) == []  # nobody answered it, and nobody has it


def test_a_call_outside_of_the_time_is_not_looked_at() -> None:
    assert found(line(at=10), None) == []
    assert found(None, line(at=10)) == []
    assert found(line(at=9), line(at=12)) == []  # their clock is later


def test_who_serves_compares_what_the_other_says_to_have_made() -> None:
    ours = statement(line())
    assert disagreements(ours, statement(made=(line(),))) == []
    (other,) = disagreements(ours, statement(made=(line(3),)))
    assert other == Disagreement(
        kind="other_amount",
        owing="them",
        run="run",
        turn="turn",
        here=2,
        there=3,
        payer_here="alice",
        payer_there="alice",
    )


def test_sums_are_those_of_the_lines() -> None:
    both = statement(line(2), made=(line(3), line(None)))
    assert (both.owed(), both.owes()) == (2, 3)


@given(st.lists(lines, max_size=6), st.lists(lines, max_size=6))
def test_what_is_compared_with_itself_agrees_but_for_what_nobody_was_told(
    served: list[StatementLine], made: list[StatementLine]
) -> None:
    ours = statement(*served, made=tuple(made))
    theirs = statement(*made, made=tuple(served))
    kinds = {each.kind for each in disagreements(ours, theirs)}
    assert kinds <= {"unmatched"}
