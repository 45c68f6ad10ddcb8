"""How participants are called: deadlines, further attempts, breakers, failures, aborts."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

import carnet
from carnet.testing.clock import FakeClock
from carnet.testing.wait import until_so
from tests.assembly.dialogue.speakers import Speaker, speakers, texts

RESET = ConnectionResetError("ECONNRESET")


def again(retries: int, **more: Any) -> carnet.CallPolicy:
    return carnet.CallPolicy(retries=retries, backoff=0, **more)


async def events_of(people: Any, **options: Any) -> list[Any]:
    return [event async for event in carnet.stream_conversation(people, **options)]


async def test_who_cannot_be_reached_is_called_again_as_often_as_its_policy_says() -> None:
    flaky = Speaker("flaky", RESET, cost=2)
    people = [carnet.Participant(target=flaky, policy=again(2)), Speaker("b", cost=1)]
    result = await carnet.run_conversation(people, max_turns=2)
    assert (result.halted.kind, result.halted.participant) == ("participant_error", "flaky")
    assert flaky.calls == 3
    assert result.spent == 6  # failed attempts are paid for


async def test_a_failed_attempt_is_discarded_and_the_next_has_the_same_turn_id() -> None:
    class Flaky(Speaker):
        async def _speak(self, visit: carnet.Visit) -> AsyncIterator[object]:
            self.visits.append(visit)
            yield carnet.Usage(cost=5)
            if self.calls == 1:
                yield "half of "
                raise RESET
            yield "all"

    flaky = Flaky("flaky")
    events = await events_of([flaky, Speaker("b", cost=1)], policy=again(1), max_turns=1)
    kinds = [type(event).__name__ for event in events]
    assert kinds == [
        *("ConversationStarted", "TurnStarted", "TurnText", "TurnDiscarded"),
        *("TurnRetried", "TurnText", "TurnEnded", "ConversationEnded"),
    ]
    started, half, discarded, retried, whole, ended = events[1:7]
    assert (retried.attempt, retried.turn_id.endswith(".t0.flaky")) == (2, True)
    assert retried.turn_id == started.turn_id == flaky.visits[1].carnet.turn
    assert half.attempt_id == started.attempt_id == discarded.attempt_id
    assert whole.attempt_id == retried.attempt_id != half.attempt_id
    assert (discarded.cost, discarded.code) == (5, "agent_failed")
    assert (ended.turn.text, ended.turn.attempts, ended.turn.cost) == ("all", 2, 5)
    assert events[-1].result.spent == 10


@pytest.mark.parametrize(
    ("error", "calls"),
    [
        (ConnectionRefusedError(), 2),
        (TimeoutError(), 2),
        (OSError(101, "Network is unreachable"), 2),
        (ValueError("model refused: 400 bad request"), 1),
        (carnet.DepthExceeded(observed=4, limit=4), 1),
    ],
)
async def test_only_what_may_pass_is_repeated(error: Exception, calls: int) -> None:
    a = Speaker("a", error, "at last")
    await carnet.run_conversation([a, Speaker("b")], policy=again(1), max_turns=1)
    assert a.calls == calls


async def test_what_is_repeated_can_be_chosen() -> None:
    a = Speaker("a", KeyError("odd"), "at last")
    policy = again(1, retry_on=lambda error: isinstance(error.__cause__, KeyError))
    result = await carnet.run_conversation([a, Speaker("b")], policy=policy, max_turns=1)
    assert texts(result) == ["at last"]


async def test_a_deadline_holds_against_who_ignores_it() -> None:
    gone = asyncio.Event()

    async def stubborn(_: carnet.Visit) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.shield(gone.wait())
        return "too late"

    policy = carnet.CallPolicy(seconds=0.05)
    result = await carnet.run_conversation(
        [Speaker("a", stubborn), Speaker("b")], policy=policy, max_turns=1
    )
    assert result.halted.code == "provider_timeout"
    assert result.turns == 0
    gone.set()


async def test_a_deadline_holds_against_a_plain_function_too() -> None:
    done = False

    def stubborn(_: carnet.Visit) -> str:
        while not done:
            time.sleep(0.001)
        return "too late"

    policy = carnet.CallPolicy(seconds=0.05)
    result = await carnet.run_conversation([stubborn, Speaker("b")], policy=policy, max_turns=1)
    done = True
    assert result.halted.code == "provider_timeout"


async def test_the_time_of_a_whole_run_is_an_end_of_its_own() -> None:
    async def slow(_: carnet.Visit) -> str:
        await asyncio.Event().wait()
        return "never"

    b = Speaker("b", slow)
    result = await carnet.run_conversation(
        [Speaker("a"), b], policy=again(5), max_turns=4, deadline=0.2
    )
    assert (result.halted.kind, result.turns, b.calls) == ("deadline", 1, 1)


async def test_an_abort_is_no_failure_and_is_not_repeated() -> None:
    abort = asyncio.Event()
    breaker = carnet.Breaker(failures_to_open=1)

    async def aborted(_: carnet.Visit) -> str:
        abort.set()
        await asyncio.Event().wait()
        return "never"

    a = Speaker("a", aborted)
    policy = again(5, breaker=breaker)
    events = await events_of([a, Speaker("b")], policy=policy, max_turns=4, abort=abort)
    assert events[-1].result.halted == carnet.Halt(kind="abort")
    assert events[-2].code == "cancelled"
    assert (a.calls, breaker.state) == (1, "closed")


async def test_an_abort_before_the_start_lets_nobody_speak() -> None:
    abort = asyncio.Event()
    abort.set()
    a = Speaker("a")
    result = await carnet.run_conversation([a, Speaker("b")], max_turns=4, abort=abort)
    assert (result.halted.kind, result.turns, a.calls) == ("abort", 0, 0)


async def test_an_abort_ends_the_pause_between_two_attempts() -> None:
    abort = asyncio.Event()
    a = Speaker("a", RESET)

    def note(event: object) -> None:
        if isinstance(event, carnet.TurnDiscarded):
            asyncio.get_running_loop().call_later(0.02, abort.set)

    policy = carnet.CallPolicy(retries=3, backoff=3600)
    result = await carnet.run_conversation(
        [a, Speaker("b")], policy=policy, max_turns=1, abort=abort, on_event=note
    )
    assert (result.halted.kind, a.calls) == ("abort", 1)


async def test_a_cancelled_driver_cancels_who_speaks() -> None:
    state: list[str] = []

    async def watched(_: carnet.Visit) -> str:
        state.append("begun")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            state.append("cancelled")
            raise
        return "never"

    run = asyncio.ensure_future(
        carnet.run_conversation([Speaker("a", watched), Speaker("b")], max_turns=1)
    )
    await until_so(lambda: state)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert state == ["begun", "cancelled"]


async def test_who_fails_may_be_left_out() -> None:
    people = [
        Speaker("a"),
        carnet.Participant(target=Speaker("b", ValueError("no")), on_failure="skip"),
    ]
    events = await events_of(people, max_turns=4)
    result = events[-1].result
    assert (speakers(result), result.halted.turns) == (["a", "a"], 4)
    (first, _) = [event for event in events if isinstance(event, carnet.TurnSkipped)]
    assert (first.index, first.speaker, first.code) == (1, "b", "agent_failed")
    assert [turn.index for turn in result.transcript] == [0, 2]


async def test_somebody_may_speak_for_who_fails() -> None:
    stand_in = Speaker("stand_in")
    b = carnet.Participant(target=Speaker("b", ValueError("no"), cost=1), on_failure=stand_in)
    result = await carnet.run_conversation([Speaker("a", cost=0), b], max_turns=2)
    spoken = result.transcript[1]
    assert (spoken.speaker, spoken.text, spoken.attempts) == ("b", "stand_in-1", 2)
    assert spoken.by is not None
    assert spoken.by.endswith("Speaker.stand_in")
    assert stand_in.visits[0].carnet.turn == spoken.turn_id
    assert result.spent == 1


async def test_a_breaker_outlives_the_run_and_ends_the_attempts_at_once() -> None:
    clock = FakeClock()
    breaker = carnet.Breaker(failures_to_open=2, cooldown_seconds=20, clock=clock)
    a = Speaker("a", RESET, RESET, "well")
    people = [carnet.Participant(target=a, policy=again(5, breaker=breaker)), Speaker("b")]
    result = await carnet.run_conversation(people, max_turns=1)
    assert (a.calls, result.halted.code) == (2, "circuit_open")
    result = await carnet.run_conversation(people, max_turns=1)
    assert (a.calls, result.halted.code, result.spent) == (2, "circuit_open", 0)
    clock.advance(21)
    result = await carnet.run_conversation(people, max_turns=1)
    assert (a.calls, texts(result)) == (3, ["well"])


async def test_breakers_are_kept_by_whom_they_are_for_not_by_the_policy() -> None:
    a, other = Speaker("kept_by_callee", RESET), Speaker("another_callee")
    policy = again(0, failures_to_open=1, cooldown_seconds=3600)
    await carnet.run_conversation([a, other], policy=policy, max_turns=1)
    policy = again(0, failures_to_open=1, cooldown_seconds=3600)
    result = await carnet.run_conversation([a, other], policy=policy, max_turns=1)
    assert (a.calls, result.halted.code) == (1, "circuit_open")
    policy = again(0, failures_to_open=1, cooldown_seconds=3600)
    result = await carnet.run_conversation([other, a], policy=policy, max_turns=1)
    assert result.turns == 1
