"""Chain, use and receipt in our own extensions: what is written is read as the same."""

import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.chain.carnet import Carnet, Mark
from carnet.core.messages.events import Usage
from carnet.core.people.proof import Spending
from carnet.wire.dialects.a2a.extensions import TaskFacts, read_answer, write_task
from carnet.wire.dialects.a2a.extensions.own import (
    CHAIN_URI,
    read_budget,
    read_chain,
    read_usage,
    write_budget,
    write_chain,
    write_usage,
)
from carnet.wire.dialects.a2a.extensions.row import PayloadBroken

WORDS = st.text(string.ascii_letters + string.digits + "._-:/", min_size=1, max_size=64)
COUNTS = st.integers(0, 2**31 - 1)
AMOUNTS = st.none() | st.integers(0, 10**15)


def budgets() -> st.SearchStrategy[Spending]:
    return st.builds(
        lambda money, **rest: Spending(
            money=money, currency=None if money is None else "credits", **rest
        ),
        money=AMOUNTS,
        calls=st.none() | COUNTS,
        tokens=st.none() | COUNTS,
        seconds=st.none() | COUNTS,
    ).filter(lambda budget: budget != Spending())


def chains(**more: Any) -> st.SearchStrategy[Carnet]:
    return st.builds(
        Carnet,
        run=WORDS,
        turn=WORDS,
        parent_turn=st.none() | WORDS,
        speaker=st.none() | WORDS,
        depth=COUNTS,
        last_depth=st.none() | st.integers(0, 1000),
        budget=st.none() | budgets(),
        **more,
    )


@given(chains())
def test_a_chain_that_is_written_is_read_as_the_same(carnet: Carnet) -> None:
    claimed = read_chain([{CHAIN_URI: write_chain(carnet)}], 1000)
    assert claimed is not None
    assert claimed.mark == Mark(
        stamp="chain",
        depth=carnet.depth,
        last_depth=1000 if carnet.last_depth is None else carnet.last_depth,
        run=carnet.run,
        turn=carnet.turn,
        parent_turn=carnet.parent_turn,
        speaker=carnet.speaker,
        is_usual=carnet.last_depth is None,
    )
    assert claimed.budget == carnet.budget


@pytest.mark.parametrize(
    "wrong",
    [
        *([], "5", 5, {"money": 0.5}, {"money": "-1"}, {"money": "0.0000001"}, {"calls": -1}),
        *(
            {"calls": True},
            {"tokens": "5"},
            {"seconds": 1.5},
            {"steps": 3},
            {"currency": "credits"},
        ),
        {"money": "1", "currency": "c\n"},
    ],
)
def test_a_budget_that_could_not_be_held_is_broken(wrong: object) -> None:
    with pytest.raises(PayloadBroken):
        read_budget(wrong)


def test_a_budget_of_nothing_bounds_nothing() -> None:
    assert [read_budget(None), read_budget({})] == [None, None]
    assert write_budget(Spending()) is None


@pytest.mark.parametrize("speaker", ["Kritiker-ß", "a\nb", "  "])
def test_a_speaker_that_no_header_could_hold_is_left_out(speaker: str) -> None:
    assert "speaker" not in write_chain(Carnet(run="r", turn="t", speaker=speaker))


@given(
    st.builds(
        Usage,
        tokens_in=st.none() | COUNTS,
        tokens_out=st.none() | COUNTS,
        cost=AMOUNTS,
        run_cost=AMOUNTS,
        currency=st.just("credits"),
    )
)
def test_use_that_is_written_is_read_as_the_same(usage: Usage) -> None:
    assert read_usage(write_usage(usage), "credits") == usage


@given(WORDS)
def test_a_receipt_that_is_written_is_read_as_the_same(receipt: str) -> None:
    metadata = write_task(TaskFacts(task="task-1", run="r", turn="t", receipt=receipt))
    assert read_answer(metadata, currency="credits").receipt == receipt
