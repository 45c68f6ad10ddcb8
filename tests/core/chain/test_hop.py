"""What has come of a run that was cancelled, hop by hop."""

import pytest

from carnet.core.chain.hop import Hop, chosen, hops_of, outcome_of
from carnet.core.chain.turn import Turn, TurnState
from carnet.core.people.identity import Account

ALICE = Account("acme.example", "alice")


def turn(
    n: int,
    name: str,
    parent: str | None = None,
    *,
    actor: str = "agent:front",
    state: TurnState = "failed",
    code: str | None = "cancelled",
) -> Turn:
    return Turn(
        n=n,
        agent=f"agent-{n}",
        run="r",
        turn=name,
        parent_turn=parent,
        depth=0 if parent is None else 1,
        actor=actor,
        state=state,
        code=code,
        payer=ALICE,
        created=n,
    )


@pytest.mark.parametrize(
    ("state", "code", "outcome"),
    [
        ("done", None, "done"),
        ("failed", "cancelled", "cancelled"),
        ("failed", "agent_failed", "failed"),
        ("running", None, "unknown"),
        ("waiting", None, "unknown"),
        ("unknown", "outcome_unknown", "unknown"),
    ],
)
def test_only_what_its_record_says_is_told_of_a_turn(
    state: TurnState, code: str | None, outcome: str
) -> None:
    assert outcome_of(turn(1, "a", state=state, code=code)) == outcome


def test_the_turns_stand_below_those_that_called_them_in_the_order_they_were_asked() -> None:
    top = turn(1, "r.t0.front", actor="token:alice")
    second = turn(2, "r.x.t1.b", top.turn)
    first = turn(3, "r.x.t0.a", top.turn)
    stranger = turn(4, "r.y", "r.x.t0.a", actor="peer:globex.example")
    far = Hop(turn="r.x.t0.a", agent="a", depth=1, outcome="done", at="globex.example")
    tree = hops_of([top, second, first, stranger], {3: [far]})
    assert [hop.turn for hop in tree] == [top.turn, stranger.turn]
    assert [hop.turn for hop in tree[0].below] == [first.turn, second.turn]
    assert tree[0].below[0].below == (far,)


def test_a_turn_that_names_itself_or_a_later_one_as_its_parent_is_shown_all_the_same() -> None:
    itself, other = turn(1, "a", "a"), turn(2, "b", "c")
    assert [hop.turn for hop in hops_of([itself, other], {})] == ["a", "b"]


def test_those_with_an_id_are_chosen_and_what_they_called_here() -> None:
    turns = [
        turn(1, "a", actor="peer:globex.example"),
        turn(2, "b", "a"),
        turn(3, "c", "b"),
        turn(4, "d", actor="peer:globex.example"),
        turn(5, "e", "a", actor="token:mallory"),
    ]
    assert [one.turn for one in chosen(turns, {"a"})] == ["a", "b", "c"]
    assert chosen(turns, set()) == []
    assert chosen(turns, None) == turns
