"""Tokens of the budget that a call came with: subtracted as they are reported."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from carnet.core.chain.allowance import Allowance
from carnet.core.messages.events import Event, Failed, Usage
from carnet.core.people.proof import Spending
from carnet.runtime.visit.dispatch import Dispatching
from carnet.runtime.visit.visit import Visit
from tests.guards.scene import claim, target
from tests.runtime.stage import Stage, native


async def spender(_: Visit) -> AsyncIterator[Event | str]:
    yield Usage(30, 20)
    yield "spent"


async def reporter(visit: Visit) -> str:
    visit.usage(tokens_in=30, tokens_out=20)
    return "spent"


async def twice(visit: Visit) -> str:
    """Use ten tokens and call another two times."""
    visit.usage(tokens_out=10)
    first = await visit.peer("below").ask("go")
    return first + await visit.peer("below").ask("go")


async def played(tokens: int, below: Callable[[Visit], Any]) -> tuple[list[Event], Allowance]:
    dispatch = Dispatching()
    stage = Stage(
        target("above", agent=native(twice, dispatch)),
        target("below", agent=native(below)),
    )
    dispatch.connect(stage.gate, stage.journal)
    call = await stage.gate.admit(claim("above"))
    allowance = Allowance(Spending(tokens=tokens))
    return await stage.read(replace(call, allowance=allowance)), allowance


@pytest.mark.parametrize("below", [spender, reporter])
async def test_what_is_used_above_and_below_is_subtracted_once(
    below: Callable[[Visit], Any],
) -> None:
    events, allowance = await played(200, below)
    assert not isinstance(events[-1], Failed)
    assert allowance.left().tokens == 200 - 10 - 2 * 50


@pytest.mark.parametrize("below", [spender, reporter])
async def test_with_no_tokens_left_nothing_more_is_called(below: Callable[[Visit], Any]) -> None:
    events, allowance = await played(60, below)
    assert isinstance(events[-1], Failed)
    assert (events[-1].code, allowance.left().tokens) == ("budget_exceeded", 0)


async def test_what_an_agent_used_itself_is_gone_before_it_calls_another() -> None:
    events, _ = await played(10, spender)
    assert isinstance(events[-1], Failed)
    assert events[-1].code == "budget_exceeded"
