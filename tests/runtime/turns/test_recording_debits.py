"""Nobody is debited more for a call than was set aside of the budget that it came with."""

import json
from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from carnet.core.call import Call
from carnet.core.chain.allowance import Allowance
from carnet.core.messages.events import Done, Event, Text, Usage
from carnet.core.people.proof import Spending
from carnet.ports.calls.agent import Target
from carnet.telemetry import JsonLines
from tests.guards.scene import REMOTE, claim, target
from tests.runtime.scene import speaking
from tests.runtime.stage import Stage

BUDGET = Spending(money=300, currency="credits")


def elsewhere(charged: int | None) -> Target:
    """An agent elsewhere that was not told of any budget, or does not keep to it."""

    @speaking
    async def answer(call: Call, /) -> AsyncIterator[Event]:
        yield Text(call.ask.text)
        yield Usage(cost=charged)
        yield Done()

    return target("away", **REMOTE, most_cost=1000, agent=answer)


async def within(charged: int | None, budget: Spending, *, set_aside: int) -> int:
    stage = Stage(elsewhere(charged))
    call = await stage.gate.admit(claim("away"))
    travelled = replace(call.carnet, budget=budget)
    await stage.read(
        replace(call, carnet=travelled, allowance=Allowance(budget), set_aside=set_aside)
    )
    return sum(d.amount for d in stage.turns.debits if not d.credit.startswith("disputed:"))


@pytest.mark.parametrize(("charged", "owed"), [(200, 200), (700, 300), (None, 300)])
async def test_what_a_callee_charges_beyond_the_budget_or_does_not_tell_is_not_owed(
    charged: int | None, owed: int
) -> None:
    assert await within(charged, BUDGET, set_aside=300) == owed


async def test_the_warning_tells_what_was_charged_and_what_is_owed_at_most(
    caplog: pytest.LogCaptureFixture,
) -> None:
    await within(700, BUDGET, set_aside=300)
    (record,) = [record for record in caplog.records if "more than was reserved" in record.message]
    line = json.loads(JsonLines().format(record))
    assert (line["agent"], line["charged"], line["limit"]) == ("away", 700, 300)


async def test_a_call_that_its_agent_pays_for_has_no_bound_in_the_budget_of_its_caller() -> None:
    assert await within(700, BUDGET, set_aside=0) == 700


async def test_a_budget_that_bounds_no_money_bounds_no_debit() -> None:
    assert await within(None, Spending(calls=3), set_aside=1000) == 1000
