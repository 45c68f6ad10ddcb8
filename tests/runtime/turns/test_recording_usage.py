"""What an agent says that it used: in its record, in its price, and in the quota of its sender."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from carnet.core.call import Call, Price, Target, call_of
from carnet.core.messages.events import (
    CHILD,
    Done,
    End,
    Event,
    Extension,
    Failed,
    Usage,
    Waiting,
)
from carnet.core.messages.interrupt import Interrupt, hash_state
from carnet.core.messages.output import Output
from carnet.core.money.amount import MICROS
from carnet.core.sealed_call import read_sealed_call
from carnet.ports.calls.turns import Answer, Claimed, TurnClaim
from carnet.runtime.visit.dispatch import Dispatching
from carnet.runtime.visit.visit import Visit
from tests.guards.scene import claim, target
from tests.runtime.stage import Stage, native

QUOTA = "tokens/2027-01-15/counted/agent://b.example"
NEEDED = Interrupt(id="int_1", state="secret", kind="approval", message="May I?")
PRICE = Price(per_million_in=1 * MICROS, per_million_out=2 * MICROS)


async def reporting(visit: Visit) -> str:
    visit.usage(tokens_in=30)
    visit.usage(tokens_in=10, tokens_out=5)
    return "done"


async def failing(visit: Visit) -> str:
    visit.usage(tokens_in=40, tokens_out=5)
    raise RuntimeError("after that")


async def saying(_: Visit) -> AsyncIterator[Event | str]:
    yield Usage(40, 5)
    yield "done"


async def above(visit: Visit) -> str:
    visit.usage(tokens_out=1)
    return await visit.peer("counted").ask("go")


async def played(function: Callable[[Visit], Any], name: str = "counted") -> tuple[Stage, Event]:
    dispatch = Dispatching()
    counted = target("counted", agent=native(function))
    stage = Stage(replace(counted, price=PRICE), target("above", agent=native(above, dispatch)))
    dispatch.connect(stage.gate, stage.journal)
    call = await stage.gate.admit(claim(name))
    return stage, (await stage.read(replace(call, quota=QUOTA)))[-1]


@pytest.mark.parametrize("function", [reporting, saying])
async def test_what_is_reported_is_added_up_recorded_and_priced(function: Any) -> None:
    stage, end = await played(function)
    assert isinstance(end, Done)
    assert (stage.turns.turns[1].tokens_in, stage.turns.turns[1].tokens_out) == (40, 5)
    assert [debit.amount for debit in stage.turns.debits] == [50]
    assert stage.turns.quotas == {QUOTA: 45}


async def test_what_was_used_before_it_failed_is_used_and_costs_nothing() -> None:
    stage, end = await played(failing)
    assert isinstance(end, Failed)
    assert (stage.turns.quotas, stage.turns.debits) == ({QUOTA: 45}, [])


async def test_what_is_called_in_process_uses_the_quota_of_its_caller() -> None:
    stage, end = await played(reporting, "above")
    assert isinstance(end, Done)
    assert stage.turns.quotas == {QUOTA: 46}


@pytest.mark.parametrize("tokens", [-1, 2**53])
async def test_less_than_nothing_or_more_than_can_be_recorded_is_not_reported(tokens: int) -> None:
    async def lying(visit: Visit) -> str:
        with pytest.raises(ValueError, match="from 0 to 9007199254740991"):
            visit.usage(tokens_in=tokens)
        return "done"

    stage, end = await played(lying)
    assert isinstance(end, Done)
    assert stage.turns.quotas == {}


async def test_what_an_agent_says_of_itself_stays_within_what_can_be_recorded() -> None:
    async def boasting(_: Visit) -> AsyncIterator[Event | str]:
        yield Usage(2**80, -(2**80))
        yield "done"

    stage, end = await played(boasting)
    assert isinstance(end, Done)
    assert (stage.turns.turns[1].tokens_in, stage.turns.turns[1].tokens_out) == (2**53 - 1, 0)


async def run_on(stage: Stage, call: Call, whom: Target) -> list[Event]:
    """Answer what a call waits for; what it says then."""
    kept = read_sealed_call(stage.turns.finishes[-1].call_bytes).admitted
    answer = Answer(state_hash=hash_state(NEEDED.state), outcome="accepted")
    verdict = await stage.turns.claim(
        TurnClaim(
            admitted=kept,
            key=call.record.key,
            digest=claim("careful").digest,
            most_run_calls=9,
            now=call.record.created,
            request=b"",
            resolution=answer,
        )
    )
    assert isinstance(verdict, Claimed)
    return await stage.read(call_of(kept, whom, verdict.turn))


async def test_what_calls_have_cost_until_a_turn_waits_is_counted_once() -> None:
    async def careful(call: Call, out: Output, /) -> End:
        is_first = call.record.fence == 1
        for cost in (30,) if is_first else (30, 12):  # the first is told again from the record
            await out.write(Extension(CHILD, {"cost": cost}))
        out.usage(Usage(40) if is_first else Usage(10))
        return Waiting((NEEDED,)) if is_first else Done()

    careful_one = replace(target("careful", agent=careful), price=PRICE)
    stage = Stage(careful_one)
    call = await stage.gate.admit(claim("careful"))
    await stage.read(call)
    assert stage.turns.turns[1].cost == 40 + 30
    await run_on(stage, call, careful_one)
    assert stage.turns.turns[1].cost == 40 + 10 + 30 + 12


async def test_what_was_used_until_a_turn_waits_is_debited_then_and_the_rest_at_its_end() -> None:
    async def careful(call: Call, out: Output, /) -> End:
        if call.record.fence == 1:
            out.usage(Usage(40, 5))
            return Waiting((NEEDED,))
        out.usage(Usage(10))
        return Done()

    price = replace(PRICE, per_call=7)
    careful_one = replace(target("careful", agent=careful), price=price)
    stage = Stage(careful_one)
    call = await stage.gate.admit(claim("careful"))
    assert isinstance((await stage.read(replace(call, quota=QUOTA)))[-1], Waiting)
    assert [debit.amount for debit in stage.turns.debits] == [50]
    kept = read_sealed_call(stage.turns.finishes[-1].call_bytes).admitted
    assert call.reserve - kept.reserve == 50
    events = await run_on(stage, call, careful_one)
    assert isinstance(events[-1], Done)
    assert [debit.amount for debit in stage.turns.debits] == [50, 10 + 7]
    ended = stage.turns.turns[1]
    assert (ended.tokens_in, ended.tokens_out, ended.cost) == (50, 5, 67)
    assert events[-2] == Usage(50, 5, 67, 67, "credits")
    assert stage.turns.quotas == {QUOTA: 55}
