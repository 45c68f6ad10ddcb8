"""Executions of Datalayer: what we send a worker is what a worker of ours reads."""

from hypothesis import given
from hypothesis import strategies as st

from carnet.core.chain.carnet import Carnet
from carnet.core.messages.events import Usage
from carnet.core.people.proof import Spending
from carnet.wire.dialects.a2a.extensions.datalayer import KEY, answer, read, send, task
from carnet.wire.dialects.a2a.extensions.row import OutboundFacts, TaskFacts


@given(st.integers(1, 99), st.integers(0, 10**15))
def test_a_call_is_read_as_it_was_sent(depth: int, money: int) -> None:
    budget = Spending(money=money, currency="credits")
    carnet = Carnet(run="r", turn="t", parent_turn="p", depth=depth, budget=budget)
    metadata = send(OutboundFacts(carnet=carnet, payer="alice@acme.example"))
    claimed = read([metadata], 200)
    assert claimed is not None
    assert claimed.mark is not None
    assert (claimed.mark.depth, claimed.mark.run) == (depth, None)
    assert claimed.budget == budget
    assert metadata[KEY]["execution"] == {
        "executionId": "t",
        "rootExecutionId": "r",
        "parentExecutionId": "p",
        "depth": depth,
        "accountUid": "alice@acme.example",
    }


def test_a_call_without_a_budget_in_money_tells_none() -> None:
    for budget in (None, Spending(calls=3)):
        carnet = Carnet(run="r", turn="t", budget=budget)
        assert set(send(OutboundFacts(carnet=carnet))[KEY]) == {"execution"}


@given(st.integers(0, 10**15))
def test_use_is_read_as_it_was_summary(cost: int) -> None:
    usage = Usage(tokens_in=1, tokens_out=2, cost=cost, currency="credits")
    metadata = task(TaskFacts(task="task-1", run="r", turn="t", usage=usage))
    reading = answer(metadata, "credits")
    assert reading is not None
    assert reading.usage == usage
    unpriced = Usage(tokens_in=1)
    assert task(TaskFacts(task="t", run="r", turn="t", usage=unpriced))[KEY] == {
        "usage": {"inputTokens": 1}
    }
