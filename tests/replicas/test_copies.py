"""Many copies of one turn, spread over gateways: one execution, one answer, one bill (F25)."""

import asyncio

import pytest

from tests.replicas.scene import PRICE, Callers, House, Replica, spread
from tests.replicas.upstream import Upstream

COPIES = 64
ROUNDS = 25


@pytest.mark.parametrize("count", [2, 4])
async def test_copies_of_a_turn_sent_to_all_gateways_at_once_run_once(
    house: House, four: list[Replica], people: Callers, model: Upstream, count: int
) -> None:
    for number in range(ROUNDS):
        run, text, stream = f"conv_{count}_{number}", f"{count} of {number} here", number % 2 == 1
        asking = [
            people.ask(replica, run, "model", text, stream=stream)
            for replica in spread(four[:count], COPIES)
        ]
        answers = await asyncio.gather(*asking)
        again = await people.ask(four[number % count], run, "model", text, stream=stream)
        assert {answer.status for answer in answers} == {200}
        assert {answer.body for answer in answers} == {again.body}
        assert again.is_whole == stream
        assert again.body.count(b"[DONE]") == int(stream)
        assert model.asked[text] == 1
        assert house.turns(run) == [("done", None, 1)]
        assert house.billed(run) == [PRICE]


async def test_copies_with_another_body_are_refused_everywhere(
    house: House, four: list[Replica], people: Callers
) -> None:
    first = await people.ask(four[0], "conv_other", "words", "one")
    others = await asyncio.gather(
        *[people.ask(replica, "conv_other", "words", "two") for replica in four]
    )
    assert first.status == 200
    assert [answer.status for answer in others] == [422] * 4
    assert all(b"idempotency_mismatch" in answer.body for answer in others)
    assert house.ran("conv_other") == 1
