"""Calls that a budget of the agent holds up: until who pays gives more, and no others."""

from carnet.core.messages.events import ToolResult
from carnet.engine.budgets import LoopBudgets
from carnet.engine.toolbox import USED_UP, Toolbox, ToolRun
from carnet.engine.tools.turn import ToolTurn
from carnet.ports.engine.tools import ToolUse
from tests.engine.scene import ALICE, Kept, Written, call, tool


async def test_a_tool_that_says_what_a_budget_says_is_no_call_that_is_held_up() -> None:
    async def says(_: ToolUse) -> str:
        return USED_UP

    sink = Written()
    turn = ToolTurn(actor=ALICE, correlation="", resolved={}, once=Kept(), asks=True)
    run = ToolRun(Toolbox([tool("says", says)]), turn, sink, LoopBudgets((("tool_calls", 1),), ()))
    calls = [call("a", "says"), call("b", "says", '{"n": 2}', index=1)]
    outcomes = await run.use(calls)
    assert set(outcomes.results) == {"a"}
    results = [event for event in sink.events if isinstance(event, ToolResult)]
    assert results == [ToolResult("a", "ok", USED_UP)]
