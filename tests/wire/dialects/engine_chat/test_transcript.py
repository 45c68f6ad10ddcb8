"""What a stream has said, as messages, and as it is kept."""

from carnet.core.messages.events import (
    Done,
    Event,
    Message,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    Waiting,
)
from carnet.wire.dialects.engine_chat.stream import approval_of
from carnet.wire.dialects.engine_chat.transcript import Transcript, messages_of

A, B = ToolCall("a", "f", "{}", is_own=True), ToolCall("b", "g", '{"x":1}', 1, is_own=True)


def test_text_and_the_calls_behind_it_are_one_message_and_results_follow() -> None:
    events: list[Event] = [
        Text("I "),
        Text("look."),
        A,
        B,
        ToolResult("a", "ok", {"n": 1}),
        ToolResult("b", "error", "no"),
    ]
    assert messages_of([*events, Usage(1, 1), Text("So.")]) == (
        Message("assistant", ("I look.",), tool_calls=(A, B)),
        Message("tool", ('{"n":1}',), tool_call_id="a"),
        Message("tool", ("no",), tool_call_id="b"),
        Message.assistant("So."),
    )


def test_a_call_that_waits_has_no_result_and_nothing_is_nothing() -> None:
    assert messages_of([A, B, ToolResult("a", "ok", "x")]) == (
        Message("assistant", ("",), tool_calls=(A, B)),
        Message("tool", ("x",), tool_call_id="a"),
    )
    assert messages_of([A, Text("x")]) == (
        Message("assistant", ("",), tool_calls=(A,)),
        Message.assistant("x"),
    )
    assert messages_of([]) == ()


def test_what_is_kept_is_what_was_there() -> None:
    for end in (Done("length"), Waiting((approval_of(B),)), None):
        transcript = Transcript((Text("x"), A, ToolResult("a", "denied", ["y"])), end)
        assert Transcript.read(transcript.written()) == transcript
        assert len(transcript.after(())) == 2


def test_a_call_that_is_shown_again_with_its_result_is_no_second_call() -> None:
    first = Transcript((A, B, ToolResult("a", "ok", "x")), Waiting((approval_of(B),)))
    again = ToolCall("b", "g", '{"x":2}', is_own=True)
    then = Transcript((B, ToolResult("b", "ok", "y"), again, ToolResult("b", "ok", "z")))
    assert then.after(first.after((Message.user("Hi"),))) == (
        Message.user("Hi"),
        Message("assistant", ("",), tool_calls=(A, B)),
        Message("tool", ("x",), tool_call_id="a"),
        Message("tool", ("y",), tool_call_id="b"),
        Message("assistant", ("",), tool_calls=(again,)),
        Message("tool", ("z",), tool_call_id="b"),
    )
