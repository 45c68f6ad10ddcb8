"""Tools: which calls are run, what comes of them, and what of that is shown to whom."""

import asyncio
import logging
from typing import Any

import pytest

from carnet.core.messages.events import Done, ToolCall, ToolResult
from carnet.core.people.identity import Ceiling
from carnet.engine import toolbox
from carnet.engine.toolbox import MOST_ARGUMENTS, MOST_AT_ONCE, MOST_OUTPUT, Toolbox
from carnet.errors import (
    CarnetError,
    PaymentRequired,
    PeerBusy,
    ShuttingDown,
    StorageUnavailable,
    ToolUnusable,
)
from carnet.ports.engine.tools import ToolFailed, ToolUse
from carnet.wire.dialects.engine_chat import EngineWriter
from carnet.wire.dialects.engine_chat.actor import EngineActor
from carnet.wire.grammar.sse import MAX_EVENT_BYTES
from tests.engine.scene import Scene, call, tool

NOBODY = EngineActor("bob", Ceiling(allow=frozenset({"tool:read"}), deny=frozenset({"tool:send"})))


def raising(error: BaseException) -> Any:
    async def use(_: ToolUse) -> str:
        raise error

    return use


async def result_of(scene: Scene, **more: Any) -> ToolResult:
    """The result of the only call that is made."""
    assert await scene.run(**more) == Done("stop")
    (found,) = [event for event in scene.events if isinstance(event, ToolResult)]
    assert scene.model.asked[1].messages[-1].text == found.output
    return found


async def test_tools_of_one_answer_run_at_once_and_are_shown_in_their_order() -> None:
    began = [asyncio.Event(), asyncio.Event()]

    async def first(_: ToolUse) -> str:
        began[0].set()
        await began[1].wait()  # both run: neither could end otherwise
        return "1"

    async def second(_: ToolUse) -> str:
        await began[0].wait()
        began[1].set()
        return "2"

    calls = [call("a", "first"), call("b", "second", index=1)]
    scene = Scene(calls, ["So."], tools=[tool("first", first), tool("second", second)])
    await scene.run()
    assert scene.events[:4] == [*calls, ToolResult("a", "ok", "1"), ToolResult("b", "ok", "2")]


async def test_of_many_only_some_run_at_once() -> None:
    running = most = 0

    async def use(_: ToolUse) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _round in range(3):
            await asyncio.sleep(0)
        running -= 1
        return ""

    calls = [call(f"c{n}", arguments=f'{{"n":{n}}}') for n in range(3 * MOST_AT_ONCE)]
    await Scene(calls, ["So."], tools=[tool(use=use)]).run()
    assert most == MOST_AT_ONCE


async def test_a_tool_that_does_not_exist_is_told_to_the_model() -> None:
    found = await result_of(Scene([call("c", "none")], ["So."]))
    assert found == ToolResult("c", "error", toolbox.UNKNOWN)


@pytest.mark.parametrize("arguments", ["", "[]", '"x"', "{", '{"a":1,"a":2}'])
async def test_so_are_arguments_that_are_no_object(arguments: str) -> None:
    scene = Scene([call(arguments=arguments)], ["So."], tools=[tool()])
    assert (await result_of(scene)).output == toolbox.NOT_AN_OBJECT
    # What a provider is shown again is JSON whatever its model wrote.
    assert scene.model.asked[1].messages[-2].tool_calls[0].arguments == "{}"


async def test_the_same_call_again_and_again_is_not_run_for_ever() -> None:
    rounds = [
        [call(f"c{n}", arguments=['{"a":1,"b":2}', '{"b":2,"a":1}'][n % 2])] for n in range(3)
    ]
    scene = Scene(*rounds, ["So."], tools=[tool()])
    await scene.run()
    results = [event.output for event in scene.events if isinstance(event, ToolResult)]
    assert results == ["nothing", "nothing", toolbox.REPEATED]


async def test_what_the_actor_may_not_use_is_neither_offered_nor_run() -> None:
    tools = [
        tool("read", permission="tool:read"),
        tool("send", raising(AssertionError()), permission="tool:send"),
        tool("look"),
    ]
    scene = Scene([call("c", "send")], ["So."], tools=tools)
    assert await result_of(scene, actor=NOBODY) == ToolResult("c", "denied", toolbox.NOT_ALLOWED)
    assert [offered.name for offered in scene.model.asked[0].tools] == ["read", "look"]


async def test_a_tool_that_fails_tells_the_model_in_its_own_words() -> None:
    found = await result_of(
        Scene([call()], ["So."], tools=[tool(use=raising(ToolFailed("No such page.")))])
    )
    assert found == ToolResult("c1", "error", "No such page.")
    silent = await result_of(Scene([call()], ["So."], tools=[tool(use=raising(ToolFailed()))]))
    assert silent.output == toolbox.FAILED


@pytest.mark.parametrize(
    "error",
    [
        *(ValueError("/srv/app.py: sk-123"), SystemExit(3), KeyboardInterrupt()),
        asyncio.CancelledError(),  # its own: nobody has cancelled it
    ],
)
async def test_whatever_else_it_raises_is_for_the_log_alone(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    scene = Scene([call()], ["So."], tools=[tool(use=raising(error))])
    with caplog.at_level(logging.ERROR, "carnet.engine"):
        assert (await result_of(scene)).output == toolbox.FAILED
    (record,) = caplog.records
    assert (record.__dict__["tool"], record.__dict__["correlation_id"]) == ("look", "req_1")


async def test_a_tool_that_is_too_slow_is_given_up() -> None:
    async def hang(_: ToolUse) -> str:
        await asyncio.Event().wait()
        return ""

    scene = Scene([call()], ["So."], tools=[tool(use=hang, seconds=0.01)])
    assert (await result_of(scene)).output == toolbox.TOO_SLOW


@pytest.mark.parametrize("error", [PaymentRequired(), PeerBusy(peer_status=503, peer_code="x")])
async def test_an_agent_that_refuses_is_told_in_our_words(error: CarnetError) -> None:
    scene = Scene([call()], ["So."], tools=[tool(use=raising(error))])
    assert (await result_of(scene)).output == error.safe_text


@pytest.mark.parametrize("error", [ToolUnusable("gone: /srv/mcp"), StorageUnavailable()])
async def test_what_cannot_be_used_at_all_ends_the_answer_when_the_others_have_ended(
    error: CarnetError,
) -> None:
    calls = [call("a", "broken"), call("b", index=1)]
    scene = Scene(calls, tools=[tool("broken", raising(error)), tool()])
    assert await scene.failed() is error
    assert scene.events == [*calls, ToolResult("b", "ok", "nothing")]


async def test_a_tool_that_stops_with_the_process_stops_the_answer() -> None:
    scene = Scene([call()], tools=[tool(use=raising(ShuttingDown()))])
    assert await scene.run() == Done("shutting_down")


@pytest.mark.parametrize(
    "output", ["x" * (MOST_OUTPUT + 1), "\0" * MOST_OUTPUT, ["x" * MOST_OUTPUT]]
)
async def test_an_output_has_a_greatest_length_that_every_reader_takes(output: object) -> None:
    async def use(_: ToolUse) -> object:
        return output

    found = await result_of(Scene([call()], ["So."], tools=[tool(use=use)]))
    assert len(str(found.output)) <= MOST_OUTPUT
    writer = EngineWriter()
    writer.write([call()])
    assert len(writer.write([found])) <= MAX_EVENT_BYTES


async def test_arguments_have_one_too() -> None:
    long = '{"a":"' + "\u2028" * (MOST_ARGUMENTS // 3) + '"}'
    scene = Scene([call(arguments=long)], ["So."], tools=[tool()])
    assert (await result_of(scene)).output == toolbox.TOO_LONG
    (shown,) = [event for event in scene.events if isinstance(event, ToolCall)]
    assert shown.arguments == "{}"
    longest = '{"a":"' + "\u2028" * ((MOST_ARGUMENTS - 8) // 3) + '"}'
    assert len(EngineWriter().write([call(arguments=longest)])) <= MAX_EVENT_BYTES


def test_names_tell_tools_apart() -> None:
    with pytest.raises(ValueError, match="same name"):
        Toolbox([tool(), tool()])
    with pytest.raises(ValueError, match="no name"):
        Toolbox([tool("")])


# ------------------------------------------------------------------ other agents


async def test_an_agent_is_no_tool_where_none_can_be_called() -> None:
    tools = [tool("clerk", raising(AssertionError()), calls_agent=True), tool("look")]
    scene = Scene([call("c", "clerk")], ["So."], tools=tools)
    assert await result_of(scene) == ToolResult("c", "denied", toolbox.NO_CALLS)
    assert [offered.name for offered in scene.model.asked[0].tools] == ["look"]
