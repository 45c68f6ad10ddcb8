"""Tools for a model without tool calling: what it is asked, and what its answers are read as."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.messages.events import Done, Event, Message, Text, ToolCall, ToolResult, Usage
from carnet.core.messages.parameters import Tool
from carnet.engine.loop import AgentLoop
from carnet.engine.schema.form import form_of
from carnet.engine.schema.tools import FormReader, SchemaTools, read_form
from carnet.ports.engine.loop import LoopTurn
from carnet.ports.engine.model import ModelAsk
from carnet.ports.engine.tools import LoopTool, ToolUse
from carnet.testing.model import ScriptedModel
from carnet.wire.dialects.engine_chat.request import EngineRequest
from tests.engine.scene import ALICE, USED, Written, call

NAMED = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
READ = Tool("read_page", "Reads a page.", NAMED)
COUNT = Tool("count", "Counts.")
WANTED = '{"tool": "read_page", "arguments": {"name": "finances"}}'


class Asked:
    """One answer of such a model."""

    def __init__(self, *lines: Any) -> None:
        self.model = ScriptedModel(lines)
        self.written = Written()

    async def __call__(self, **ask: Any) -> Done:
        asked = ModelAsk(**{"messages": (Message.user("Hi"),), "tools": (READ, COUNT), **ask})
        return await SchemaTools(self.model)(asked, self.written)

    @property
    def events(self) -> list[Event]:
        return self.written.events

    @property
    def seen(self) -> ModelAsk:
        (seen,) = self.model.asked
        return seen


async def test_it_is_asked_for_the_form_and_offered_no_tools() -> None:
    asked = Asked('{"answer": "Hello."}')
    await asked(correlation="req_1", parameters={"temperature": 0, "tool_choice": "auto"})
    assert asked.seen.tools == ()
    assert asked.seen.schema == form_of((READ, COUNT))
    assert asked.seen.parameters == {"temperature": 0}
    assert asked.seen.correlation == "req_1"
    assert asked.seen.messages[0].role == "system"


async def test_a_call_is_passed_on_when_it_is_whole() -> None:
    asked = Asked(WANTED[:9], WANTED[9:30], WANTED[30:], USED)
    assert await asked() == Done("tool_calls")
    assert asked.events == [ToolCall("", "read_page", '{"name":"finances"}')]
    assert asked.written.used == [USED]


async def test_an_answer_is_passed_on_as_it_comes_without_the_form_around_it() -> None:
    asked = Asked('{ "ans', 'wer" : "It', " is ", '\\"100\\"', "\\", "n", ".", '" }')
    assert await asked() == Done("stop")
    assert [event.text for event in asked.events if isinstance(event, Text)] == [
        "It",
        " is ",
        '"100"',
        "\n",
        ".",
    ]


async def test_what_is_in_no_form_is_text_as_it_comes() -> None:
    asked = Asked("It is ", "100.")
    assert await asked() == Done("stop")
    assert asked.events == [Text("It is "), Text("100.")]


@pytest.mark.parametrize("other", ['{"name": "a"}', "{broken", '{"tool": 7}', '{"tool":"a",'])
async def test_so_is_what_only_looks_like_it(other: str) -> None:
    asked = Asked(other)
    assert await asked() == Done("stop")
    assert asked.events == [Text(other)]


async def test_a_call_that_was_broken_off_is_none() -> None:
    asked = Asked(WANTED[:30], Done("length"))
    assert await asked() == Done("length")
    assert asked.events == []


async def test_an_answer_that_was_broken_off_is_what_there_is_of_it() -> None:
    asked = Asked('{"answer": "It is', Done("length"))
    assert await asked() == Done("length")
    assert asked.events == [Text("It is")]


async def test_a_model_that_calls_a_tool_after_all_is_understood() -> None:
    asked = Asked(call("c1", "count"))
    assert await asked() == Done("tool_calls")
    assert asked.events == [call("c1", "count")]


async def test_an_answer_of_another_schema_is_passed_on_as_its_json() -> None:
    asked = Asked('{"answer": {"name": "a"}}')
    await asked(schema=NAMED)
    assert asked.seen.schema == form_of((READ, COUNT), NAMED)
    assert asked.events == [Text('{"name":"a"}')]


async def test_without_tools_it_is_asked_plainly() -> None:
    asked = Asked("{}")
    await asked(tools=(), schema=NAMED)
    assert (asked.seen.messages, asked.seen.schema) == ((Message.user("Hi"),), NAMED)
    assert asked.events == [Text("{}")]


async def test_tool_choice_is_obeyed() -> None:
    none, required, named = Asked("Hello."), Asked(WANTED), Asked(WANTED)
    await none(parameters={"tool_choice": "none"})
    await required(parameters={"tool_choice": "required"})
    chosen = {"type": "function", "function": {"name": "read_page"}}
    await named(parameters={"tool_choice": chosen})
    assert none.seen.schema is None
    assert required.seen.schema == form_of((READ, COUNT), may_answer=False)
    assert named.seen.schema == form_of((READ,), may_answer=False)


async def test_a_loop_uses_tools_by_it_as_by_any_other_model() -> None:
    async def read(use: ToolUse) -> str:
        return f"{use.arguments['name']}: 100"

    model = ScriptedModel([WANTED, Usage(10, 5)], ['{"answer":"It is 100."}', Usage(20, 1)])
    written = Written()
    loop = AgentLoop(SchemaTools(model), [LoopTool(definition=READ, use=read)])
    request = EngineRequest(messages=(Message.user("My goal?"),), correlation="req_1")
    assert await loop(LoopTurn(request=request, actor=ALICE), written) == Done("stop")
    assert written.events == [
        call("call_0_0", "read_page", '{"name":"finances"}'),
        ToolResult("call_0_0", "ok", "finances: 100"),
        Text("It is 100."),
    ]
    assert model.asked[1].messages[-1] == Message.user("Result of read_page:\nfinances: 100")


# -------------------------------------------------------------------- reading


@given(text=st.text(), cuts=st.lists(st.integers(1, 9)), is_ascii=st.booleans())
def test_an_answer_in_pieces_is_read_as_it_was_written(
    *, text: str, cuts: list[int], is_ascii: bool
) -> None:
    written = json.dumps({"answer": text}, ensure_ascii=is_ascii)
    reader, read = FormReader(), ""
    for cut in cuts:
        read += reader.feed(written[:cut])
        written = written[cut:]
    read += reader.feed(written)
    assert reader.close(is_whole=True) == ""
    assert read == text


@given(st.dictionaries(st.text(), st.text() | st.integers(-9, 9) | st.lists(st.text())))
def test_so_is_a_call(arguments: dict[str, Any]) -> None:
    found = read_form(json.dumps({"tool": "count", "arguments": arguments}))
    if "\0" in "".join(arguments):  # refused by the one strict reader
        assert found is None
        return
    assert isinstance(found, ToolCall)
    assert (found.name, json.loads(found.arguments)) == ("count", arguments)


@pytest.mark.parametrize(
    ("inside", "read"),
    [
        (r"\ud83d\ude00", "😀"),
        (r"\ud83d!", "\N{REPLACEMENT CHARACTER}!"),
        (r"\ude00!", "\N{REPLACEMENT CHARACTER}!"),
        (r"\ud83d\n", "\N{REPLACEMENT CHARACTER}\n"),
        (r"\ud83d\u0041", "\N{REPLACEMENT CHARACTER}A"),
        (r"\x41", r"\x41"),
        ("a\nb", "a\nb"),
    ],
)
def test_escapes_that_come_in_pieces_are_put_together(inside: str, read: str) -> None:
    reader = FormReader()
    pieces = [reader.feed(each) for each in f'{{"answer":"{inside}"}}']
    assert "".join(pieces) == read


@pytest.mark.parametrize("begin", ["", '{"tool": "read_page", "arguments": {"name": "'])
def test_blanks_without_an_end_are_read_in_the_time_of_their_length(begin: str) -> None:
    reader, many = FormReader(), 100_000
    began = time.process_time()
    for piece in (begin, *many * " "):
        assert reader.feed(piece) == ""
    assert time.process_time() - began < 2  # it was more than a minute
    assert reader.close(is_whole=True) == begin + many * " "
