"""A Python function as a tool: what a model is told of it, and how it is called."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from carnet.core.messages.events import ToolResult
from carnet.core.people.identity import Ceiling
from carnet.errors import SchemaInvalid
from carnet.ports.engine.tools import ToolUse
from carnet.runtime.threads import MOST_AT_ONCE
from carnet.runtime.tools.function import MOST_OF_ONE, FunctionTool
from carnet.testing.wait import until_so
from carnet.wire.dialects.engine_chat.actor import EngineActor
from tests.engine.scene import Scene, call, tool


class Page(Struct):
    """What a tool may give."""

    name: str
    lines: int


def read_page(name: str, *, lines: int = 20) -> str:
    """Reads a page.

    The first lines of it.
    """
    return f"{lines} lines of {name}, {threading.current_thread() is threading.main_thread()}"


async def find(name: str) -> Page:
    return Page(name, 3)


def used(**arguments: Any) -> ToolUse:
    actor = EngineActor("alice", Ceiling())
    return ToolUse(arguments=arguments, call="c1", actor=actor, correlation="req_1")


def test_a_model_is_told_of_it_by_its_name_its_docstring_and_its_signature() -> None:
    definition = FunctionTool(read_page).definition
    assert (definition.name, definition.description) == (
        "read_page",
        "Reads a page.\n\nThe first lines of it.",
    )
    schema = definition.parameters
    assert schema["required"] == ["name"]
    assert schema["properties"]["name"]["type"] == "string"
    assert schema["properties"]["lines"]["default"] == 20


async def test_a_plain_function_is_called_in_a_thread() -> None:
    assert await FunctionTool(read_page)(used(name="a")) == "20 lines of a, False"


async def test_what_is_no_text_is_given_as_json() -> None:
    assert await FunctionTool(find)(used(name="a")) == {"name": "a", "lines": 3}


@pytest.mark.parametrize("arguments", [{}, {"name": 3}, {"name": "a", "lines": "many"}])
async def test_arguments_that_do_not_fit_are_refused_by_field(arguments: dict[str, Any]) -> None:
    with pytest.raises(SchemaInvalid):
        await FunctionTool(read_page)(used(**arguments))
    function = FunctionTool(read_page)
    answer = [call("c1", "read_page", '{"name":3}')]
    scene = Scene(answer, ["So."], tools=[tool("read_page", function)])
    await scene.run()
    (found,) = [event for event in scene.events if isinstance(event, ToolResult)]
    assert found.status == "error"
    assert "name" in found.output


def endless() -> Iterator[str]:
    yield "x"


async def endless_too() -> AsyncIterator[str]:
    yield "x"


def visiting(visit: object) -> str:
    return str(visit)


def unnamed(*names: str) -> str:
    return str(names)


@pytest.mark.parametrize("function", [endless, endless_too, visiting, unnamed])
def test_what_cannot_be_a_tool_is_refused_in_words(function: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match=function.__name__):
        FunctionTool(function)


async def test_one_caller_does_not_have_all_threads_of_a_function() -> None:
    leave, began = threading.Event(), list[str]()

    def wait(who: str) -> str:
        began.append(who)
        leave.wait(30)
        return who

    tool = FunctionTool(wait)
    held = [asyncio.ensure_future(tool(used(who="alice"))) for _ in range(2 * MOST_AT_ONCE)]
    bob = replace(used(who="bob"), actor=EngineActor("bob", Ceiling()))
    held.append(asyncio.ensure_future(tool(bob)))
    await until_so(lambda: len(began), lambda count: count == MOST_OF_ONE + 1)
    assert "bob" in began
    leave.set()
    assert await asyncio.gather(*held) == [*2 * MOST_AT_ONCE * ["alice"], "bob"]
