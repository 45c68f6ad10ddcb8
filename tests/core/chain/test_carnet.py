"""The travel document and how stamps become one: depth grows, the limit shrinks, the run stays."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from carnet.core.chain.carnet import (
    TOP,
    Carnet,
    DepthLimits,
    Mark,
    Position,
    Trace,
    check_depth,
    merge,
    within_budget,
)
from carnet.core.chain.turn_id import scoped_turn_id, turn_id
from carnet.errors import (
    CarnetError,
    ChainFinal,
    ChainMismatch,
    DelegationExceeded,
    DepthExceeded,
)

STAMPS: list[str] = ["tangle", "caller_context", "mentionable", "delegation", "travel"]
NAMES = st.none() | st.sampled_from(["a", "b"])
# A depth of 0 beside others is a contradiction of its own; it has its own tests.
MARKS = st.builds(
    Mark,
    stamp=st.sampled_from(STAMPS),
    depth=st.none() | st.integers(1, 20),
    last_depth=st.none() | st.integers(0, 20),
    run=st.none() | st.just("run"),
    turn=st.none() | st.just("turn"),
    parent_turn=st.none() | st.just("parent"),
    speaker=NAMES,
)
CARNETS = st.builds(
    Carnet,
    run=st.sampled_from(["run", "run.with.dots"]),
    turn=st.just("turn"),
    depth=st.integers(0, 20),
    last_depth=st.none() | st.integers(0, 20),
    bound_by=st.none() | st.sampled_from(STAMPS),
    parent_turn=st.none() | st.just("parent"),
    run_is_ours=st.booleans(),
    path=st.just(("@a@a.example",)),
    on_behalf_of=st.just(("alice",)),
    deadline=st.none() | st.just(5.0),
    trace=st.none() | st.just(Trace("1" * 32, "2" * 16)),
)

KEY = bytes(range(16))  # of the record of a turn


@given(marks=st.lists(MARKS, max_size=5), data=st.data())
def test_the_order_of_stamps_does_not_matter(marks: list[Mark], data: st.DataObject) -> None:
    assert merge(data.draw(st.permutations(marks))) == merge(marks)


@given(marks=st.lists(MARKS, max_size=5), more=MARKS)
def test_another_stamp_never_lowers_the_depth_and_never_raises_the_limit(
    marks: list[Mark], more: Mark
) -> None:
    before, after = merge(marks), merge([*marks, more])
    assert after.depth >= before.depth
    if before.last_depth is not None:
        assert after.last_depth is not None
        assert after.last_depth <= before.last_depth


@given(marks=st.lists(MARKS, min_size=1, max_size=5))
def test_the_largest_depth_and_the_smallest_limit_hold(marks: list[Mark]) -> None:
    position = merge(marks)
    depths = [mark.depth for mark in marks if mark.depth is not None]
    limits = [mark.last_depth for mark in marks if mark.last_depth is not None]
    assert position.depth == max(depths, default=0)
    assert position.last_depth == min(limits, default=None)
    assert (position.bound_by is None) == (position.last_depth is None)
    if limits:
        assert (position.bound_by, min(limits)) in {(m.stamp, m.last_depth) for m in marks}


@given(mark=MARKS)
def test_one_stamp_is_read_as_it_is(mark: Mark) -> None:
    position = merge([mark])
    assert position == merge([mark, mark])
    assert position.depth == (mark.depth or 0)
    assert (position.last_depth, position.run, position.turn, position.parent_turn) == (
        *(mark.last_depth, mark.run, mark.turn, mark.parent_turn),
    )


def test_no_stamp_is_the_top_of_a_chain() -> None:
    assert merge([]) == TOP == Position()
    assert (TOP.depth, TOP.last_depth, TOP.run) == (0, None, None)


def test_an_explicit_depth_0_beside_a_depth_above_0_is_a_contradiction() -> None:
    zero, one = Mark(stamp="tangle", depth=0), Mark(stamp="caller_context", depth=1)
    for marks in ([zero, one], [one, zero]):
        with pytest.raises(ChainMismatch, match="explicit depth 0"):
            merge(marks)
    assert merge([zero, Mark(stamp="mentionable", depth=0)]).depth == 0
    assert merge([one, Mark(stamp="tangle")]).depth == 1


@pytest.mark.parametrize(
    ("field", "message"),
    [("run", "two different runs"), ("turn", "turns"), ("parent_turn", "parent turns")],
)
def test_stamps_that_name_different_things_contradict_one_another(field: str, message: str) -> None:
    first = Mark(stamp="tangle", **{field: "a"})  # type: ignore[arg-type]
    other = Mark(stamp="travel", **{field: "b"})  # type: ignore[arg-type]
    with pytest.raises(ChainMismatch, match=message):
        merge([first, other])


def test_a_call_deeper_than_its_chain_may_go_is_refused() -> None:
    check_depth(Position(depth=3, last_depth=3))
    check_depth(Position(depth=99))
    with pytest.raises(DepthExceeded) as caught:
        check_depth(Position(depth=4, last_depth=3))
    assert caught.value.public_facts() == {"observed": 4, "limit": 4}


@pytest.mark.parametrize(
    ("bound_by", "refusal"),
    [
        (None, DepthExceeded),
        ("travel", DepthExceeded),
        ("mentionable", ChainFinal),
        ("delegation", DelegationExceeded),
    ],
)
def test_who_set_the_limit_decides_what_is_said_where_it_ends(
    bound_by: str | None, refusal: type[CarnetError]
) -> None:
    last = Carnet(run="r", turn="t", depth=1, last_depth=1, bound_by=bound_by)
    with pytest.raises(refusal) as caught:
        last.next_hop(index=0, speaker="Critic", key=KEY, default=3)
    assert type(caught.value) is refusal


@given(carnet=CARNETS, default=st.integers(0, 20), index=st.integers(0, 9))
def test_a_hop_goes_one_deeper_in_the_same_run_under_no_larger_limit(
    carnet: Carnet, default: int, index: int
) -> None:
    assume(not carnet.is_final(default))
    child = carnet.next_hop(index=index, speaker="Critic", key=KEY, default=default)
    assert child.depth == carnet.depth + 1
    assert child.run == carnet.run
    assert child.last_depth == carnet.bound(default)
    assert child.depth <= child.bound(0)
    assert child.remaining(0) == carnet.remaining(default) - 1
    assert child.turn != carnet.turn
    assert child.speaker == "Critic"
    assert child.run_is_ours is False
    assert (child.path, child.on_behalf_of, child.deadline, child.trace) == (
        *(carnet.path, carnet.on_behalf_of, carnet.deadline, carnet.trace),
    )
    assert child == carnet.next_hop(index=index, speaker="Critic", key=KEY, default=default)


@given(carnet=CARNETS, default=st.integers(0, 20))
def test_a_carnet_without_a_hop_left_cannot_be_extended(carnet: Carnet, default: int) -> None:
    assume(carnet.is_final(default))
    assert carnet.remaining(default) == 0
    with pytest.raises((ChainFinal, DelegationExceeded, DepthExceeded)):
        carnet.next_hop(index=0, speaker="critic", key=KEY, default=default)


@given(carnet=CARNETS, default=st.integers(0, 20))
def test_every_chain_ends(carnet: Carnet, default: int) -> None:
    hops = 0
    while not carnet.is_final(default):
        carnet = carnet.next_hop(index=0, speaker="critic", key=KEY, default=default)
        hops += 1
    assert hops <= 20
    assert carnet.depth >= carnet.bound(default)


def test_the_refusal_names_the_depth_the_callee_would_have_had() -> None:
    with pytest.raises(DepthExceeded) as deep:
        Carnet(run="r", turn="t", depth=3, last_depth=3).refuse_if_final(99)
    assert deep.value.public_facts() == {"observed": 4, "limit": 4}
    with pytest.raises(ChainFinal) as final:
        Carnet(run="r", turn="t", depth=3, last_depth=3, bound_by="mentionable").refuse_if_final(9)
    assert final.value.public_facts() == {"hop": 3, "hops": 3}
    Carnet(run="r", turn="t", depth=3).refuse_if_final(4)


def test_where_we_named_the_run_calls_out_of_it_are_its_first_level() -> None:
    origin = Carnet(run="conv_abc", turn="turn_1", run_is_ours=True)
    child = origin.next_hop(index=0, speaker="researcher", key=KEY, default=3)
    assert origin.opens_the_run
    assert child.turn == turn_id("conv_abc", 0, "researcher")
    assert child.parent_turn is None
    assert child.bound_by == "tangle"
    grandchild = child.next_hop(index=1, speaker="critic", key=KEY, default=3)
    assert grandchild.turn == scoped_turn_id("conv_abc", KEY, 1, "critic")
    assert grandchild.parent_turn == child.turn


@pytest.mark.parametrize(
    "carnet",
    [
        Carnet(run="conv_abc", turn="conv_abc.t0.researcher", depth=1),
        Carnet(run="conv_abc", turn="t", parent_turn="elsewhere", run_is_ours=True),
    ],
)
def test_inside_another_turn_ids_are_scoped_and_name_their_parent(carnet: Carnet) -> None:
    child = carnet.next_hop(index=0, speaker="critic", key=KEY, default=3)
    assert child.turn == scoped_turn_id(carnet.run, KEY, 0, "critic")
    assert child.parent_turn == carnet.turn


def test_each_stamp_has_its_own_limit_and_the_others_the_default() -> None:
    limits = DepthLimits(by_stamp={"slow": 3, "long": 16})
    assert [limits.of(stamp) for stamp in ("slow", "long", "other")] == [3, 16, 3]
    assert limits.clamped(10) == DepthLimits(by_stamp={"slow": 3, "long": 10}, default=3)
    assert limits.clamped(2) == DepthLimits(by_stamp={"slow": 2, "long": 2}, default=2)


def test_what_a_stamp_names_itself_holds_beside_another_and_not_what_is_usual_here() -> None:
    document = Mark(stamp="travel", depth=5, last_depth=3, is_usual=True, own_depth=7)
    context = Mark(stamp="caller_context", depth=5, last_depth=16)
    assert merge([context, document]).last_depth == 7
    wide = Mark(stamp="travel", depth=5, last_depth=3, is_usual=True, own_depth=40)
    assert merge([context, wide]).last_depth == 16
    silent = Mark(stamp="tangle", run="r")
    assert merge([silent, document]).last_depth == 3  # nobody else bounds it


def test_a_stamp_that_names_the_same_depth_itself_does_not_bound_in_place_of_another() -> None:
    chain = Mark(stamp="chain", depth=1, last_depth=3, is_usual=True, own_depth=4)
    mentions = Mark(stamp="mentionable", depth=1, last_depth=4)
    for marks in ([chain, mentions], [mentions, chain]):
        position = merge(marks)
        assert (position.last_depth, position.bound_by) == (4, "mentionable")


BUDGETS = st.lists(st.integers(1, 40), min_size=1, max_size=3)


@given(BUDGETS, st.integers(0, 20), st.none() | st.integers(0, 20))
def test_the_lowest_budget_holds_whichever_dialect_a_call_leaves_by(
    ceilings: list[int], default: int, last_depth: int | None
) -> None:
    place = Carnet(run="r", turn="t", last_depth=last_depth)
    for ceiling in ceilings:
        place = within_budget(place, ceiling, of="token", default=3)
    bound = place.bound(default)
    assert bound <= min(ceilings) - 1
    assert bound <= (default if last_depth is None else last_depth)


@pytest.mark.parametrize(
    ("ceiling", "default", "last", "by"),
    [(8, 16, 7, "chain_depth"), (8, 3, 3, "x"), (40, 16, 16, "x"), (2, 16, 1, "chain_depth")],
)
def test_a_budget_above_the_usual_limit_is_kept_for_dialects_with_longer_chains(
    ceiling: int, default: int, last: int, by: str
) -> None:
    place = within_budget(Carnet(run="r", turn="t"), ceiling, of="agent", default=3)
    out = place.next_hop(index=0, speaker="s", key=b"k" * 32, default=default, stamp="x")
    assert (out.last_depth, out.bound_by) == (last, by)


def test_a_budget_that_leaves_nothing_is_not_raised_by_another() -> None:
    place = within_budget(Carnet(run="r", turn="t"), 1, of="token", default=0)
    assert within_budget(place, 9, of="agent", default=0).bound(16) == 0


def test_a_budget_that_has_ended_is_told_as_one_where_a_call_would_leave() -> None:
    place = within_budget(Carnet(run="r", turn="t"), 1, of="token", default=0)
    with pytest.raises(DepthExceeded) as refused:
        place.refuse_if_final(16)
    assert refused.value.facts["stamp"] == "chain_depth"
    with pytest.raises(DepthExceeded):
        within_budget(Carnet(run="r", turn="t", depth=3), 3, of="token", default=16)
