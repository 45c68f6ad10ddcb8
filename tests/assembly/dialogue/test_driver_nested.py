"""Conversations that take part in conversations."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import carnet
from carnet.testing.wait import until_so
from tests.assembly.dialogue.speakers import Speaker, texts

BEARER = "Bearer sk-tan-user-123"
FORWARDED = {"x-tangle-forwarded-authorization": BEARER}


def files(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def swarm(*people: Any, **limits: Any) -> carnet.Conversation:
    return carnet.Conversation("swarm", people, **{"max_turns": 2, **limits})


def inner(cost: int = 1) -> tuple[Speaker, Speaker]:
    return Speaker("inner-a", cost=cost), Speaker("inner-b", cost=cost)


async def test_what_is_spoken_within_is_one_turn_outside() -> None:
    a, b = inner()
    result = await carnet.run_conversation(
        [swarm(a, b), Speaker("o", cost=5)], seed="Go.", max_turns=2
    )
    assert texts(result) == ["[inner-a] inner-a-1\n[inner-b] inner-b-1", "o-1"]
    assert result.spent == 7
    assert a.visits[0].text == "Go."


async def test_run_payer_and_depth_are_inherited_and_ids_are_scoped() -> None:
    a, b = inner()
    outer = Speaker("critic", cost=0)
    result = await carnet.run_conversation(
        [swarm(a, b), outer],
        max_turns=3,
        inbound_depth=1,
        run_id="shared-run",
        propagated_headers=FORWARDED,
    )
    seen = a.visits[0].headers
    assert seen["x-tangle-forwarded-depth"] == "3"
    assert outer.visits[0].headers["x-tangle-forwarded-depth"] == "2"
    assert seen["x-tangle-runid"] == result.run_id == "shared-run"
    assert seen["x-tangle-forwarded-authorization"] == BEARER
    assert seen["x-tangle-parent-turnid"] == "shared-run.t0.swarm"
    assert "x-tangle-parent-turnid" not in outer.visits[0].headers
    ids = [visit.carnet.turn for speaker in (a, b, outer) for visit in speaker.visits]
    assert len(set(ids)) == len(ids) == 5  # two invocations of one nested agent do not collide


async def test_who_pays_for_itself_strips_the_credential_of_all_within() -> None:
    a, b = inner()
    people = [carnet.Participant(target=swarm(a, b), auth="agent-owned"), Speaker("o")]
    await carnet.run_conversation(people, max_turns=1, propagated_headers=FORWARDED)
    assert "x-tangle-forwarded-authorization" not in a.visits[0].headers
    assert a.visits[0].headers["x-tangle-forwarded-depth"] == "2"


async def test_a_failure_within_is_a_failure_of_the_participant_and_is_paid_for() -> None:
    broken = Speaker("inner-b", ValueError("no"), cost=3)
    result = await carnet.run_conversation(
        [swarm(Speaker("inner-a", cost=4), broken), Speaker("o")], max_turns=2
    )
    assert (result.halted.participant, result.halted.code) == ("swarm", "agent_failed")
    assert result.spent == 7


async def test_no_hop_is_made_that_is_too_deep_and_nobody_is_called() -> None:
    a, b = inner()
    innermost = swarm(a, b)
    middle = carnet.Conversation("middle", [innermost, Speaker("m")], max_turns=1)
    people = [carnet.Conversation("top", [middle, Speaker("t")], max_turns=1), Speaker("o")]
    result = await carnet.run_conversation(people, max_turns=1)
    assert (result.halted.participant, result.halted.code) == ("top", "bridge_depth_exceeded")
    assert (a.calls, result.spent) == (0, 0)
    result = await carnet.run_conversation(people, max_turns=1, max_depth=5)
    assert (a.calls, result.halted.kind) == (1, "max_turns")


async def test_a_driver_that_is_too_deep_itself_writes_and_calls_nothing(tmp_path: Path) -> None:
    a = Speaker("a")
    journal = f"sqlite:{tmp_path / 'j.db'}"
    for depth in (3, 4, 99):
        with pytest.raises(carnet.DepthExceeded):
            await carnet.run_conversation(
                [a, Speaker("b")], max_turns=1, inbound_depth=depth, journal=journal
            )
    assert (a.calls, files(tmp_path)) == (0, [])


async def test_what_is_left_of_the_money_bounds_what_is_within() -> None:
    a, b = inner(cost=4)
    result = await carnet.run_conversation(
        [Speaker("o", cost=2), swarm(a, b, max_turns=9)], max_turns=9, max_spend=10
    )
    assert (a.calls, b.calls) == (1, 1)
    assert (result.spent, result.halted.kind) == (10, "max_spend")


async def test_the_time_of_the_run_bounds_what_is_within() -> None:
    async def slow(_: carnet.Visit) -> str:
        await asyncio.Event().wait()
        return "never"

    people = [swarm(Speaker("inner-a", slow), Speaker("inner-b")), Speaker("o")]
    result = await carnet.run_conversation(people, max_turns=2, deadline=0.2)
    assert result.halted.kind == "deadline"


async def test_it_is_kept_under_its_parent_and_goes_on_with_it(tmp_path: Path) -> None:
    journal = f"sqlite:{tmp_path / 'j.db'}"
    begun = asyncio.Event()

    async def waits(_: carnet.Visit) -> str:
        begun.set()
        await asyncio.Event().wait()
        return "never"

    options: dict[str, Any] = {"max_turns": 2, "journal": journal, "run_id": "r1", "seed": "Go."}
    first = [
        swarm(Speaker("inner-a", cost=1), Speaker("inner-b", waits, cost=1)),
        Speaker("o", cost=1),
    ]
    run = asyncio.ensure_future(carnet.run_conversation(first, **options))
    await begun.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    a, b = inner()
    result = await carnet.run_conversation([swarm(a, b), Speaker("o", cost=1)], **options)
    assert texts(result) == ["[inner-a] inner-a-1\n[inner-b] inner-b-1", "o-1"]
    assert (a.calls, b.calls) == (0, 1)  # what was acknowledged within is not spoken again
    async with carnet.Journal(journal) as opened:
        assert await opened.nested("r1") == ["r1.t0.swarm"]
        events: list[Any] = await opened.events("r1", "r1.t0.swarm")
        assert events[0].parent_turn_id == "r1.t0.swarm"
        assert events[-1].result.halted.kind == "max_turns"
        assert [each.run_id for each in await opened.runs()] == ["r1"]


async def test_an_abort_reaches_who_speaks_within() -> None:
    abort = asyncio.Event()
    state: list[str] = []

    async def watched(_: carnet.Visit) -> str:
        state.append("begun")
        try:
            await asyncio.Event().wait()
        finally:
            state.append("ended")
        return "never"

    people = [swarm(Speaker("inner-a", watched), Speaker("inner-b")), Speaker("o")]
    run = asyncio.ensure_future(carnet.run_conversation(people, max_turns=2, abort=abort))
    await until_so(lambda: state)
    abort.set()
    result = await run
    assert (result.halted.kind, state) == ("abort", ["begun", "ended"])


async def test_a_function_has_others_converse_kept_under_its_turn(tmp_path: Path) -> None:
    a, b = inner()

    async def chair(visit: carnet.Visit) -> str:
        first = await visit.conversation([a, b], seed=visit.text, max_turns=2)
        second = await visit.conversation([b, a], seed=first.text, max_turns=1)
        return f"{len(first.transcript)} {second.text}"

    url = f"sqlite:{tmp_path / 'j.db'}"
    result = await carnet.run_conversation(
        [chair, Speaker("o", cost=5)], seed="Go.", max_turns=2, journal=url
    )
    assert texts(result)[0] == "2 inner-b-2"
    assert result.spent == 8
    async with carnet.Journal(url) as journal:
        turn = result.transcript[0].turn_id
        assert await journal.nested(result.run_id) == [f"{turn}#1", f"{turn}#2"]


def journaled(tmp_path: Path, *, is_kept: bool) -> dict[str, Any]:
    return {"journal": f"sqlite:{tmp_path / 'j.db'}"} if is_kept else {}


@pytest.mark.parametrize("is_kept", [False, True])
@pytest.mark.parametrize("costs", [(5, 1), (1, 5)])
async def test_who_speaks_for_another_is_paid_beside_what_that_one_has_cost(
    costs: tuple[int, int],
    is_kept: bool,  # noqa: FBT001
    tmp_path: Path,
) -> None:
    failed, spoken = costs
    broken = Speaker("broken", ValueError("no"), cost=failed)
    spare = swarm(*inner(cost=spoken))
    people = [carnet.Participant(target=broken, on_failure=spare), Speaker("o", cost=0)]
    kept = journaled(tmp_path, is_kept=is_kept)
    result = await carnet.run_conversation(people, max_turns=1, **kept)
    assert texts(result) == ["[inner-a] inner-a-1\n[inner-b] inner-b-1"]
    assert result.spent == failed + 2 * spoken


async def test_a_conversation_that_speaks_for_another_is_kept_beside_it(tmp_path: Path) -> None:
    broken = swarm(Speaker("x", cost=3), Speaker("y", ValueError("no"), cost=4))
    spare = carnet.Conversation("spare", inner(cost=1), max_turns=2)
    people = [carnet.Participant(target=broken, on_failure=spare), Speaker("o", cost=0)]
    kept = journaled(tmp_path, is_kept=True)
    result = await carnet.run_conversation(people, max_turns=1, **kept)
    assert (result.halted.kind, result.spent) == ("max_turns", 3 + 4 + 2)


@pytest.mark.parametrize(("is_kept", "spoken"), [(True, 2), (False, 4)])
async def test_what_a_function_had_others_say_is_counted_as_often_as_it_was_said(
    is_kept: bool,  # noqa: FBT001
    spoken: int,
    tmp_path: Path,
) -> None:
    a, b = inner(cost=5)
    failures = [ConnectionResetError()]

    async def chair(visit: carnet.Visit) -> str:
        await visit.conversation([a, b], max_turns=2)
        if failures:
            raise failures.pop()
        return "done"

    result = await carnet.run_conversation(
        [chair, Speaker("o", cost=0)],
        max_turns=1,
        policy=carnet.CallPolicy(retries=1, backoff=0),
        **journaled(tmp_path, is_kept=is_kept),
    )
    assert texts(result) == ["done"]
    assert (a.calls + b.calls, result.spent) == (spoken, 5 * spoken)


async def test_what_a_function_has_others_say_is_bounded_by_what_is_left(tmp_path: Path) -> None:
    a, b = inner(cost=4)

    async def chair(visit: carnet.Visit) -> str:
        result = await visit.conversation([a, b], max_turns=9)
        return result.halted.kind

    result = await carnet.run_conversation(
        [Speaker("o", cost=2), chair],
        max_turns=9,
        max_spend=10,
        **journaled(tmp_path, is_kept=True),
    )
    assert (a.calls, b.calls) == (1, 1)
    assert (texts(result)[1], result.spent, result.halted.kind) == ("max_spend", 10, "max_spend")


async def test_a_nested_attempt_that_is_late_is_tried_again() -> None:
    """Whichever of the two timers rings first."""

    async def slow(_: carnet.Visit) -> str:
        await asyncio.Event().wait()
        return "never"

    first = Speaker("inner-a", slow, "well")
    policy = carnet.CallPolicy(seconds=0.05, retries=1, backoff=0)
    people = [carnet.Participant(target=swarm(first, Speaker("inner-b")), policy=policy)]
    result = await carnet.run_conversation([*people, Speaker("o")], max_turns=1)
    assert texts(result) == ["[inner-a] well\n[inner-b] inner-b-1"]


async def test_names_of_agents_lead_nowhere_without_a_gateway() -> None:
    panel = carnet.Conversation("panel", ["writer", "critic"], max_turns=2)
    with pytest.raises(ValueError, match="'writer' is no address"):
        await carnet.run_conversation(panel)
