"""Conversations by their public names: turns, limits, halts, what participants receive."""

import asyncio
from typing import Any

import pytest

import carnet
from carnet.runtime.dialogue.attempt import MOST_CHARACTERS
from tests.assembly.dialogue.speakers import Speaker, speakers, texts

CENT = 10_000  # micro-units


async def test_two_alternate_until_their_turns_are_used_up() -> None:
    researcher, critic = Speaker("r", cost=CENT), Speaker("c", cost=CENT)
    result = await carnet.run_conversation([researcher, critic], seed="Is it so?", max_turns=4)
    assert speakers(result) == ["r", "c", "r", "c"]
    assert texts(result) == ["r-1", "c-1", "r-2", "c-2"]
    assert result.halted == carnet.Halt(kind="max_turns", turns=4)
    assert (result.spent, result.unknown_costs) == (4 * CENT, 0)
    assert [turn.attempts for turn in result.transcript] == [1, 1, 1, 1]
    assert result.run_id.startswith("conv_")
    assert result.transcript[1].turn_id == f"{result.run_id}.t1.c"
    assert (result.turns, result.text) == (4, "c-2")


@pytest.mark.parametrize(
    ("wrong", "near"),
    [("max_turn", "max_turns"), ("jurnal", "journal"), ("halt_when", "halt_on"), ("seeds", "seed")],
)
async def test_an_option_that_is_none_is_refused_with_the_nearest(wrong: str, near: str) -> None:
    options: Any = {"max_turns": 2, wrong: "x"}
    people = [Speaker("a"), Speaker("b")]
    for given in (people, carnet.Conversation("talk", people, max_turns=2)):
        with pytest.raises(TypeError, match=f"no '{wrong}': did you mean '{near}'"):
            await carnet.run_conversation(given, **options)


async def test_three_take_turns() -> None:
    result = await carnet.run_conversation([Speaker("a"), Speaker("b"), Speaker("c")], max_turns=4)
    assert speakers(result) == ["a", "b", "c", "a"]
    assert result.unknown_costs == 4  # nobody said what it cost: that is not nothing


async def test_a_function_may_choose_who_speaks_by_index_or_by_name() -> None:
    def order(state: carnet.DialogueState) -> int | str:
        return "c" if state.turn_index == 0 else 0

    people = [Speaker("a"), Speaker("b"), Speaker("c")]
    result = await carnet.run_conversation(people, order=order, max_turns=3)
    assert speakers(result) == ["c", "a", "a"]


@pytest.mark.parametrize("wrong", [3, -1, "nobody", True, 1.0])
async def test_an_order_that_names_nobody_is_an_error_of_its_author(wrong: Any) -> None:
    with pytest.raises(ValueError, match="index or the name"):
        await carnet.run_conversation(
            [Speaker("a"), Speaker("b")], order=lambda _: wrong, max_turns=1
        )


async def test_each_is_given_the_seed_and_all_that_was_spoken() -> None:
    a, b = Speaker("a"), Speaker("b")
    await carnet.run_conversation([a, b], seed="Begin.", max_turns=3)
    assert [(m.role, m.text) for m in a.visits[1].messages] == [
        ("user", "Begin."),
        ("assistant", "a-1"),
        ("user", "[b] b-1"),
    ]
    assert [(m.role, m.text) for m in b.visits[0].messages] == [
        ("user", "Begin."),
        ("user", "[a] a-1"),
    ]
    assert b.visits[0].text == "[a] a-1"


async def test_a_cap_halts_between_turns_and_cannot_be_overshot_where_a_turn_is_quoted() -> None:
    dear = [Speaker("a", cost=5 * CENT), Speaker("b", cost=5 * CENT)]
    result = await carnet.run_conversation(dear, max_turns=9, max_spend="0.12")
    assert result.halted == carnet.Halt(kind="max_spend", spent=15 * CENT, cap=12 * CENT)
    assert result.turns == 3
    quoted = [carnet.Participant(target=each, most_cost="0.05") for each in dear]
    result = await carnet.run_conversation(quoted, max_turns=9, max_spend="0.12")
    assert (result.turns, result.spent) == (2, 10 * CENT)


async def test_without_money_nobody_speaks() -> None:
    a, b = Speaker("a"), Speaker("b")
    result = await carnet.run_conversation([a, b], max_turns=3, max_spend=0)
    assert (result.halted.kind, a.calls, result.turns) == ("max_spend", 0, 0)


async def test_the_smallest_cost_is_not_rounded_away() -> None:
    cheap = [Speaker("a", cost=1), Speaker("b", cost=2)]
    result = await carnet.run_conversation(cheap, max_turns=50, max_spend=4)
    assert (result.spent, result.halted.kind) == (4, "max_spend")
    assert result.turns == 3


async def test_an_unknown_cost_counts_as_the_most_that_was_quoted() -> None:
    silent = [carnet.Participant(target=Speaker(name), most_cost=7) for name in "ab"]
    result = await carnet.run_conversation(silent, max_turns=9, max_spend=20)
    assert (result.spent, result.turns, result.unknown_costs) == (14, 2, 0)


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_predicate_halts_it_with_a_reason_or_without(*, is_async: bool) -> None:
    seen: list[carnet.DialogueState] = []

    def enough(state: carnet.DialogueState) -> bool | str:
        seen.append(state)
        return "agreed" if state.turn_index == 2 else False

    async def later(state: carnet.DialogueState) -> bool | str:
        await asyncio.sleep(0)
        return enough(state)

    people = [Speaker("a", cost=3), Speaker("b", cost=3)]
    halt_on = later if is_async else enough
    result = await carnet.run_conversation(people, halt_on=halt_on, max_turns=2)
    assert result.halted == carnet.Halt(kind="predicate", reason="agreed")
    assert [state.spent for state in seen] == [3, 6]
    assert seen[0].last is not None
    assert (seen[0].last.speaker, seen[0].participants) == ("a", ("a", "b"))
    result = await carnet.run_conversation(people, halt_on=lambda _: True, max_turns=5)
    assert (result.halted.reason, result.turns) == ("predicate_true", 1)


async def test_who_decides_who_pays_sees_that_nothing_is_spent_at_the_start() -> None:
    seen: list[tuple[int, int, int]] = []

    def auth(state: carnet.DialogueState) -> Any:
        seen.append((len(state.transcript), state.turn_index, state.spent))
        return "agent-owned"

    first = carnet.Participant(target=Speaker("a", cost=4), auth=auth)
    await carnet.run_conversation([first, Speaker("b", cost=1)], max_turns=3)
    assert seen == [(0, 0, 0), (2, 2, 5)]


async def test_a_participant_that_fails_halts_the_run_and_keeps_what_was_spoken() -> None:
    b = Speaker("b", RuntimeError("backend exploded"))
    result = await carnet.run_conversation([Speaker("a"), b], max_turns=4)
    halted = result.halted
    assert (halted.kind, halted.participant, halted.code) == (
        "participant_error",
        "b",
        "agent_failed",
    )
    assert halted.detail == "RuntimeError: backend exploded"
    assert str(halted) == f"participant_error[b]: {halted.message}"
    assert (result.turns, b.calls) == (1, 1)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("   ", "provider_error"),
        (carnet.Failed("provider_unavailable"), "provider_unavailable"),
        (carnet.DepthExceeded(observed=4, limit=4), "bridge_depth_exceeded"),
    ],
)
async def test_an_answer_that_is_none_is_a_failure(line: Any, code: str) -> None:
    async def answer(_: carnet.Visit) -> Any:
        if isinstance(line, Exception):
            raise line
        return line

    result = await carnet.run_conversation([Speaker("a", answer), Speaker("b")], max_turns=2)
    assert (result.halted.kind, result.halted.code) == ("participant_error", code)


async def test_a_value_is_spoken_as_json_where_there_is_no_text() -> None:
    async def value(_: carnet.Visit) -> Any:
        return {"free": "Tuesday"}

    result = await carnet.run_conversation([Speaker("a", value), Speaker("b")], max_turns=1)
    assert result.text == '{"free":"Tuesday"}'


async def test_a_plain_function_takes_part_beside_the_event_loop() -> None:
    def plain(visit: carnet.Visit) -> str:
        return visit.text.upper()

    result = await carnet.run_conversation([plain, Speaker("b")], seed="hi", max_turns=1)
    assert (speakers(result), texts(result)) == (["plain"], ["HI"])


async def test_the_events_of_a_run_are_told_in_order() -> None:
    stream = carnet.stream_conversation([Speaker("a"), Speaker("b")], seed="x", max_turns=2)
    events = [event async for event in stream]
    assert [type(event) for event in events] == [
        carnet.ConversationStarted,
        *[carnet.TurnStarted, carnet.TurnText, carnet.TurnEnded] * 2,
        carnet.ConversationEnded,
    ]
    started, text = events[1], events[2]
    assert isinstance(started, carnet.TurnStarted)
    assert isinstance(text, carnet.TurnText)
    assert (text.text, text.attempt_id) == ("a-1", started.attempt_id)
    assert started.attempt_id == f"{started.turn_id}#1"


async def test_who_runs_it_to_its_end_may_be_told_every_event() -> None:
    kinds: list[str] = []

    async def note(event: object) -> None:
        kinds.append(type(event).__name__)

    people = [Speaker("a"), Speaker("b")]
    await carnet.run_conversation(people, max_turns=1, on_event=note)
    assert kinds[0] == "ConversationStarted"
    assert kinds[-2:] == ["TurnEnded", "ConversationEnded"]


async def test_what_cannot_be_a_conversation_is_refused_when_it_is_defined() -> None:
    a, b = Speaker("a"), Speaker("b")
    nobody: Any = "nobody"
    wrong: list[tuple[list[Any], dict[str, Any], type[Exception]]] = [
        ([a], {"max_turns": 1}, ValueError),
        ([a, a], {"max_turns": 1}, ValueError),
        ([a, carnet.Participant(target=b, name=" ")], {"max_turns": 1}, ValueError),
        ([a, carnet.Participant(target=b, name="x" * 97)], {"max_turns": 1}, ValueError),
        ([a, carnet.Participant(target=b, most_cost=nobody)], {"max_turns": 1}, Exception),
        ([a, 3], {"max_turns": 1}, TypeError),
        ([a, "no address"], {"max_turns": 1}, ValueError),
        ([a, b], {}, TypeError),
        ([a, b], {"max_turns": 0}, ValueError),
        ([a, b], {"max_turns": 1, "max_spend": -1}, ValueError),
        ([a, b], {"max_turns": 1, "deadline": 0}, ValueError),
        ([a, b, Speaker("c")], {"max_turns": 1, "order": "alternate"}, ValueError),
        ([a, b], {"max_turns": 1, "order": "chaos"}, ValueError),
        ([a, carnet.Participant(target=b, auth=nobody)], {"max_turns": 1}, ValueError),
    ]
    for people, options, error in wrong:
        with pytest.raises(error):
            carnet.Conversation("panel", people, **options)
    assert a.calls == 0


@pytest.mark.parametrize("cost", [-5, 0.01, True, "3"])
async def test_nobody_lowers_a_bill_or_tells_it_in_parts(cost: Any) -> None:
    a = Speaker("a", cost=cost)
    result = await carnet.run_conversation([a, Speaker("b")], max_turns=2, max_spend=9)
    assert (result.halted.participant, result.spent) == ("a", 0)
    assert "micro-units" in (result.halted.detail or "")


async def test_text_that_no_encoding_has_is_spoken_as_far_as_it_can_be() -> None:
    result = await carnet.run_conversation(
        [Speaker("a", "x\ud800y \u00e9"), Speaker("b")], max_turns=1
    )
    assert (
        await carnet.run_conversation([Speaker("a"), Speaker("b")], seed="\ud800", max_turns=1)
    ).turns == 1
    assert result.text == "x?y \u00e9"


async def test_an_error_is_kept_without_the_credential_of_who_pays() -> None:
    bearer = "Bearer sk-tan-user-123"
    a = Speaker("a", ValueError(f"401 for {bearer} " + "x" * 5000))
    result = await carnet.run_conversation(
        [a, Speaker("b")],
        max_turns=1,
        propagated_headers={carnet.FORWARDED_AUTHORIZATION: bearer},
    )
    detail = result.halted.detail or ""
    assert detail.startswith("ValueError: 401 for ***")
    assert ("sk-tan" in detail, len(detail)) == (False, 1000)


async def test_a_conversation_may_be_run_under_other_limits_and_stays_what_it_is() -> None:
    panel = carnet.Conversation("panel", [Speaker("a"), Speaker("b")], max_turns=4)
    assert (await carnet.run_conversation(panel, max_turns=1)).turns == 1
    assert (await carnet.run_conversation(panel)).turns == 4
    with pytest.raises(TypeError, match="'policy' is part of the conversation"):
        await carnet.run_conversation(panel, policy=carnet.CallPolicy(retries=1))


async def test_an_answer_that_never_ends_is_a_failure() -> None:
    async def babble(_: carnet.Visit) -> Any:
        return "x" * (MOST_CHARACTERS + 1)

    result = await carnet.run_conversation([Speaker("a", babble), Speaker("b")], max_turns=1)
    assert (result.halted.code, result.turns) == ("provider_error", 0)


async def test_who_pays_is_one_of_two_also_where_a_function_decides() -> None:
    nobody: Any = "nobody"
    a = Speaker("a")
    people = [carnet.Participant(target=a, auth=lambda _: nobody), Speaker("b")]
    with pytest.raises(ValueError, match="auth is"):
        await carnet.run_conversation(people, max_turns=1)
    assert a.calls == 0
