"""Steps: kept by the owner of a turn alone, and given to whoever runs it next."""

import asyncio

import pytest

from carnet.errors import Internal
from carnet.ports.calls.steps import Step
from carnet.ports.calls.turns import Fenced
from carnet.stores.open import Store
from tests.stores.support.scenes import NOW, Place, a_claim, a_finish, a_task, claimed, leased

FIRST = Step(0, "charge", b'{"paid":true}')
SECOND_STEP = Step(1, "send", b"null")


async def test_kept_steps_are_given_in_order(store: Store) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    assert await store.steps.of(turn) == []
    await store.steps.keep(turn, SECOND_STEP)
    await store.steps.keep(turn, FIRST)
    other = claimed(await store.turns.claim(a_claim("r2")))
    await store.steps.keep(other, Step(0, "else", b"1"))
    assert await store.steps.of(turn) == [FIRST, SECOND_STEP]


async def test_many_turns_keep_steps_at_once_and_who_may_not_fails_alone(store: Store) -> None:
    turns = [claimed(await store.turns.claim(a_claim(f"m{n}"))) for n in range(5)]
    await store.turns.finish(a_finish(turns[2]))
    ends = await asyncio.gather(
        *[store.steps.keep(turn, Step(n, "s", b"1")) for turn in turns for n in range(30)],
        return_exceptions=True,
    )
    assert [type(end) for end in ends if end is not None] == [Fenced] * 30
    counts = [len(await store.steps.of(turn)) for turn in turns]
    assert counts == [30, 30, 0, 30, 30]


async def test_the_steps_of_a_task_are_there_when_it_runs_again(store: Store) -> None:
    await store.turns.claim(a_task())
    (task,) = await leased(store)
    await store.steps.keep(task.turn, FIRST)
    await store.tasks.release(task.turn, NOW)
    (again,) = await leased(store)
    assert await store.steps.of(again.turn) == [FIRST]
    with pytest.raises(Fenced):
        await store.steps.keep(task.turn, SECOND_STEP)
    await store.steps.keep(again.turn, SECOND_STEP)
    assert await store.steps.of(again.turn) == [FIRST, SECOND_STEP]


async def test_who_lost_its_turn_to_another_postgres_process_is_told_before_a_step(
    store: Store,
) -> None:
    await store.turns.claim(a_task())
    (task,) = await leased(store)
    await store.steps.check(task.turn)
    await store.tasks.release(task.turn, NOW)
    (again,) = await leased(store)
    with pytest.raises(Fenced):
        await store.steps.check(task.turn)
    await store.steps.check(again.turn)


async def test_a_step_of_a_turn_that_is_not_running_is_fenced(store: Store) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    await store.turns.finish(a_finish(turn))
    with pytest.raises(Fenced):
        await store.steps.keep(turn, FIRST)
    waiting = claimed(await store.turns.claim(a_task("r2")))
    with pytest.raises(Fenced):
        await store.steps.keep(waiting, FIRST)
    assert await store.steps.of(turn) == []


async def test_keeping_the_same_step_again_changes_nothing_and_another_is_refused(
    store: Store,
) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    await store.steps.keep(turn, FIRST)
    await store.steps.keep(turn, FIRST)
    with pytest.raises(Fenced):
        await store.steps.keep(turn, Step(0, "charge", b'{"paid":false}'))
    assert await store.steps.of(turn) == [FIRST]


async def test_many_at_once_are_each_kept(store: Store) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    steps = [Step(place, f"s{place}", b"%d" % place) for place in range(20)]
    await asyncio.gather(*[store.steps.keep(turn, step) for step in steps])
    assert await store.steps.of(turn) == steps


async def test_a_damaged_step_is_reported_and_not_given(store: Store, place: Place) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    await store.steps.keep(turn, FIRST)
    place.rows("UPDATE step SET name = 'refund'")
    with pytest.raises(Internal, match="step 0 of turn 1 is damaged"):
        await store.steps.of(turn)
