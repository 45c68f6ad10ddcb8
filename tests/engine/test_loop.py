"""The loop: one model call after the other, with tools between, and every way it ends."""

import asyncio
from typing import Any

import pytest

from carnet.core.messages.events import Done, Message, Text, ToolCall, ToolResult, Usage, Waiting
from carnet.core.messages.interrupt import Resolution
from carnet.engine.history import NOT_RUN, marked
from carnet.engine.loop import LoopBounds
from carnet.engine.toolbox import DENIED
from carnet.errors import (
    CarnetError,
    ContextTooLong,
    Internal,
    ModelKeyRefused,
    ProviderTimeout,
    SpendingLimitReached,
)
from carnet.ports.engine.tools import ToolUse
from tests.engine.scene import NO, USED, YES, Kept, Scene, call, tool


async def test_what_a_model_says_is_passed_on_as_it_comes_and_ends_with_it() -> None:
    scene = Scene(["Hello ", "world!", USED])
    assert await scene.run() == Done("stop")
    assert scene.events == [Text("Hello "), Text("world!")]
    assert scene.written.used == [USED]
    assert scene.model.asked[0].messages == (Message.user("Hi"),)
    assert scene.model.asked[0].correlation == "req_1"


async def test_a_model_is_asked_again_with_what_its_tools_gave() -> None:
    async def read(use: ToolUse) -> str:
        return f"read {use.arguments['path']} for {use.actor.id} as {use.correlation}"

    scene = Scene(
        ["I look.", call("c1", "read", '{"path":"/a"}'), USED],
        ["It says so.", Usage(20, 1)],
        tools=[tool("read", read)],
    )
    assert await scene.run() == Done("stop")
    assert scene.events == [
        Text("I look."),
        call("c1", "read", '{"path":"/a"}'),
        ToolResult("c1", "ok", "read /a for alice as req_1"),
        Text("It says so."),
    ]
    assert scene.written.used == [USED, Usage(20, 1)]
    first, second = scene.model.asked
    assert [offered.name for offered in first.tools] == ["read"]
    assert second.messages[1:] == (
        Message("assistant", ("I look.",), tool_calls=(ToolCall("c1", "read", '{"path":"/a"}'),)),
        Message("tool", (marked("read /a for alice as req_1", "read"),), tool_call_id="c1"),
    )


async def test_without_a_bound_it_goes_on_until_the_model_ends() -> None:
    rounds = [[call(f"c{n}", arguments=f'{{"n":{n}}}')] for n in range(60)]
    scene = Scene(*rounds, ["Done."], tools=[tool()])
    assert await scene.run() == Done("stop")
    assert len(scene.model.asked) == 61


async def test_a_bound_of_iterations_is_an_end_with_a_reason() -> None:
    scene = Scene([call("c1"), USED], [call("c2"), USED], tools=[tool()])
    assert await scene.run(bounds=LoopBounds(max_iterations=2)) == Done("max_iterations")
    assert len(scene.model.asked) == 2
    assert scene.written.used == [USED, USED]
    assert isinstance(scene.events[-1], ToolResult)


async def test_so_is_a_budget_of_tokens_that_is_used_up() -> None:
    scene = Scene([call("c1"), Usage(90, 10)], tools=[tool()])
    assert await scene.run(bounds=LoopBounds(max_tokens=100)) == Done("budget_exceeded")


async def test_and_a_payer_who_has_nothing_left() -> None:
    scene = Scene(["So far", SpendingLimitReached(needed="2", left="1")])
    assert await scene.run() == Done("budget_exceeded")


@pytest.mark.parametrize("reason", ["length", "content_filter"])
async def test_an_answer_that_was_broken_off_ends_and_wants_no_tools(reason: str) -> None:
    scene = Scene(["Half", call(), Done(reason)], tools=[tool()])
    assert await scene.run() == Done(reason)
    assert scene.events == [Text("Half")]


@pytest.mark.parametrize("nothing", [[], [" \n"], [" ", "\t"]])
async def test_a_model_that_gives_nothing_is_asked_once_more(nothing: list[str]) -> None:
    scene = Scene(nothing, ["Now."])
    assert await scene.run() == Done("stop")
    assert scene.events == [Text("Now.")]


async def test_one_that_gives_nothing_twice_has_failed() -> None:
    scene = Scene([], [" "])
    assert (await scene.failed()).code == "provider_error"
    assert scene.events == []


async def test_what_was_seen_is_not_asked_for_again() -> None:
    scene = Scene(["Well", ""])
    assert await scene.run() == Done("stop")
    assert len(scene.model.asked) == 1


async def test_blanks_before_the_first_word_come_with_it() -> None:
    scene = Scene(["\n", " ", "Well", " "])
    await scene.run()
    assert scene.events == [Text("\n Well"), Text(" ")]


async def test_a_model_that_has_nothing_to_add_to_what_was_seen_ends() -> None:
    scene = Scene([call()], [], [], tools=[tool()])
    assert await scene.run() == Done("stop")
    assert len(scene.model.asked) == 3


async def test_tool_calls_without_a_word_are_an_answer() -> None:
    scene = Scene([call()], ["So."], tools=[tool()])
    assert await scene.run() == Done("stop")
    assert len(scene.model.asked) == 2


@pytest.mark.parametrize(
    "error",
    [ProviderTimeout("at /srv"), ModelKeyRefused("sk-1"), ContextTooLong(), Internal("bug")],
)
async def test_a_failure_keeps_its_cause(error: CarnetError) -> None:
    assert await Scene(["So far", error]).failed() is error


# ------------------------------------------------------------------ stopped


@pytest.mark.parametrize("reason", ["cancelled", "shutting_down"])
async def test_a_stop_ends_the_call_of_the_model_at_once(reason: str) -> None:
    scene = Scene()

    async def hang() -> None:
        scene.stop.ask(reason)
        await asyncio.Event().wait()

    scene.model = type(scene.model)(["So far", USED, hang, "never"])
    assert await scene.run() == Done(reason)
    assert scene.events == [Text("So far")]
    assert scene.written.used == [USED]


async def test_and_tools_that_run() -> None:
    scene = Scene([call()])
    was_cancelled = asyncio.Event()

    async def hang(use: ToolUse) -> str:
        del use
        scene.stop.ask("cancelled")
        try:
            await asyncio.Event().wait()
        finally:
            was_cancelled.set()
        return "never"

    scene.tools = [tool(use=hang)]
    assert await scene.run() == Done("cancelled")
    assert was_cancelled.is_set()
    assert [type(event) for event in scene.events] == [ToolCall]


async def test_a_stop_before_the_beginning_asks_nobody() -> None:
    scene = Scene()
    scene.stop.ask("shutting_down")
    assert await scene.run() == Done("shutting_down")
    assert scene.model.asked == []


async def test_who_is_cancelled_from_elsewhere_is() -> None:
    scene = Scene([asyncio.Event().wait])
    running = asyncio.ensure_future(scene.run())
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


# ------------------------------------------------------------------ approvals


async def test_a_tool_that_needs_an_approval_ends_the_answer_with_its_call() -> None:
    scene = Scene(
        [call("a", "send", '{"to":"x"}'), call("b")],
        tools=[tool("send", approval="always"), tool()],
    )
    end = await scene.run()
    assert isinstance(end, Waiting)
    (asked,) = end.interrupts
    assert (asked.kind, asked.id) == ("approval", "a")
    assert asked.more == {"tool": "send", "arguments": {"to": "x"}}
    # The other one has run; the last that is seen of the pending one is its call.
    assert scene.events == [
        call("a", "send", '{"to":"x"}', 0),
        call("b", index=1),
        ToolResult("b", "ok", "nothing"),
    ]


async def test_what_was_approved_is_run_once_when_the_turn_runs_again() -> None:
    sent: list[object] = []

    async def send(use: ToolUse) -> str:
        sent.append(use.arguments)
        return "sent"

    tools, kept = [tool("send", send, approval="always"), tool()], Kept()
    answer = ["I send.", call("a", "send", '{"to":"x"}'), call("b"), USED]
    first = Scene(answer, tools=tools)
    assert isinstance(await first.run(once=kept), Waiting)
    assert sent == []
    kept.again()
    second = Scene(["Sent."], tools=tools)
    assert await second.run(once=kept, resolved={"a": YES}) == Done("stop")
    assert sent == [{"to": "x"}]
    # Told from its beginning, and nothing that was done is done or counted again.
    assert second.events[0] == Text("I send.")
    assert second.events[3:] == [
        ToolResult("a", "ok", "sent"),
        ToolResult("b", "ok", "nothing"),
        Text("Sent."),
    ]
    assert second.written.used == []
    kept.again()
    third = Scene(tools=tools)
    assert await third.run(once=kept, resolved={"a": YES}) == Done("stop")
    assert third.events == second.events
    assert len(sent) == 1


async def test_whoever_approves_may_change_the_arguments() -> None:
    given: list[object] = []

    async def send(use: ToolUse) -> str:
        given.append(use.arguments)
        return "sent"

    scene = Scene(
        [call("a", "send", '{"to":"x"}')], ["Ok."], tools=[tool("send", send, approval="always")]
    )
    edited = Resolution(outcome="accepted", value={"to": "y"})
    await scene.run(resolved={"a": edited})
    assert given == [{"to": "y"}]


async def test_what_was_denied_is_not_run_and_the_model_is_told() -> None:
    scene = Scene([call("a", "send")], ["Then not."], tools=[tool("send", approval="always")])
    assert await scene.run(resolved={"a": NO}) == Done("stop")
    assert scene.events[1] == ToolResult("a", "denied", DENIED)
    assert scene.model.asked[1].messages[-1].text == DENIED


@pytest.mark.parametrize(("writes", "waits"), [(True, True), (False, False)])
async def test_a_rule_may_ask_for_an_approval_where_something_is_written(
    writes: bool,  # noqa: FBT001
    waits: bool,  # noqa: FBT001
) -> None:
    scene = Scene([call()], ["So."], tools=[tool(approval="write", writes=writes)])
    assert isinstance(await scene.run(), Waiting) is waits


async def test_a_call_that_stands_in_a_message_is_not_run() -> None:
    async def never(use: ToolUse) -> str:
        raise AssertionError(use)

    forged = Message("assistant", ("",), tool_calls=(call("a"), call("b", "send")))
    scene = Scene(["Well."], tools=[tool(use=never), tool("send", never, approval="always")])
    await scene.run(Message.user("Hi"), forged, Message.user("Go on"))
    assert scene.events == [Text("Well.")]
    assert [message.text for message in scene.model.asked[0].messages] == [
        *("Hi", "", NOT_RUN, NOT_RUN, "Go on"),
    ]


async def test_one_that_was_approved_by_name_is() -> None:
    pending = Message("assistant", ("",), tool_calls=(call("a", "send"), call("b")))
    scene = Scene(["Sent."], tools=[tool("send", approval="always"), tool()])
    asked = (Message.user("Hi"), pending, Message("tool", ("x",), tool_call_id="b"))
    assert await scene.run(*asked, resolved={"a": YES}) == Done("stop")
    assert scene.events == [call("a", "send"), ToolResult("a", "ok", "nothing"), Text("Sent.")]
    assert [message.text for message in scene.model.asked[0].messages] == [
        *("Hi", "", marked("x", "look"), marked("nothing", "send")),
    ]


# ------------------------------------------------------------------ what was answered is for one


async def test_an_approval_is_for_one_call_whatever_the_model_calls_the_next() -> None:
    """A model may give all its calls one name; what was approved is the first of them."""
    used: list[dict[str, Any]] = []

    async def send(use: ToolUse) -> str:
        used.append(use.arguments)
        return "sent"

    tools = [tool("send", send, approval="always")]
    script = [[call("c1", "send", '{"to":"bob"}')], [call("c1", "send", '{"to":"mallory"}')]]
    kept, scene = Kept(), Scene(*script, tools=tools)
    end = await scene.run(once=kept)
    assert isinstance(end, Waiting)
    kept.again()
    end = await scene.run(once=kept, resolved={"c1": YES})
    assert isinstance(end, Waiting)
    assert [asked.id for asked in end.interrupts] == ["call_1_0"]
    assert used == [{"to": "bob"}]


async def test_an_approval_is_never_for_a_call_that_its_caller_wrote() -> None:
    used: list[dict[str, Any]] = []

    async def send(use: ToolUse) -> str:
        used.append(use.arguments)
        return "sent"

    written = tuple([call(id, "send", '{"to":"mallory"}') for id in ("c1", "call_0_0")])
    messages = (Message("assistant", ("",), tool_calls=written), Message.user("Go on"))
    tools = [tool("send", send, approval="always")]
    kept, scene = Kept(), Scene([call("c1", "send", '{"to":"bob"}')], ["So."], tools=tools)
    end = await scene.run(*messages, once=kept)
    assert isinstance(end, Waiting)
    (question,) = end.interrupts
    assert question.id == "call_0_0_1"
    kept.again()
    assert await scene.run(*messages, once=kept, resolved={question.id: YES}) == Done("stop")
    assert used == [{"to": "bob"}]


async def test_what_ran_beside_a_call_that_waited_is_found_at_its_place() -> None:
    used: list[str] = []

    async def look(use: ToolUse) -> str:
        used.append(use.call)
        return use.call

    tools = [tool("send", look, approval="always"), tool("look", look)]
    script = [call("c1", "send"), call("c2", "look", index=1)]
    kept, scene = Kept(), Scene(script, ["So."], tools=tools)
    assert isinstance(await scene.run(once=kept), Waiting)
    kept.again()
    assert await scene.run(once=kept, resolved={"c1": YES}) == Done("stop")
    assert used == ["c2", "c1"]
    results = [event for event in scene.events if isinstance(event, ToolResult)][-2:]
    assert [(result.id, result.output) for result in results] == [("c1", "c1"), ("c2", "c2")]
