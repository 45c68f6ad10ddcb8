"""One answer of a model: what is gathered, and how it is kept."""

from carnet.core.messages.events import ECHO, Data, Done, Extension, ToolCall
from carnet.engine.completion import Completion, CompletionSink
from tests.engine.scene import USED, Written, call


async def test_every_call_has_an_id_of_its_own() -> None:
    sink = CompletionSink(Written(), 3)
    for id in ("a", "a", "", "b\n", "c"):
        await sink.write(call(id))
    answer = sink.ended(Done("tool_calls"))
    assert [each.id for each in answer.calls] == ["a", "call_3_1", "call_3_2", "call_3_3", "c"]
    assert [each.index for each in answer.calls] == [0, 1, 2, 3, 4]


async def test_what_is_neither_text_nor_a_call_is_left_out() -> None:
    written = Written()
    sink = CompletionSink(written, 0)
    await sink.write(Data({"a": 1}))
    sink.usage(USED)
    assert sink.ended(Done()) == Completion("", (), "stop", 15)
    assert written.events == []


def test_what_is_kept_is_what_was_there() -> None:
    answer = Completion("Hi", (ToolCall("a", "f", '{"x":1}', 0),), "tool_calls", 7)
    assert Completion.read(answer.written()) == answer


async def test_what_a_provider_wants_back_is_kept_with_the_answer_and_not_shown() -> None:
    written = Written()
    sink = CompletionSink(written, 0)
    await sink.write(Extension(ECHO, {"by": "x", "blocks": []}))
    await sink.write(ToolCall("c1", "look", "{}"))
    answer = sink.ended(Done("tool_calls"))
    assert written.events == []
    assert Completion.read(answer.written()) == answer
    assert answer.message.metadata == {ECHO: {"by": "x", "blocks": []}}
