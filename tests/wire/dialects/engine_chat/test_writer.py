"""The stream of an engine as it is written."""

import pytest

from carnet.core.messages.events import (
    CONTEXT_WINDOW,
    Data,
    Done,
    End,
    Extension,
    Failed,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    Waiting,
)
from carnet.core.messages.interrupt import Interrupt
from carnet.errors import ContextTooLong, Internal, ModelKeyRefused, ShuttingDown, ToolUnusable
from carnet.wire.dialects.engine_chat import MESSAGES, EngineWriter
from carnet.wire.dialects.engine_chat.writer import MOST_CHARACTERS
from carnet.wire.grammar.sse import MAX_EVENT_BYTES, SseReader

# The stream of the design, as it stands there.
EXAMPLE = b"""event: text-delta
data: {"content":"Hello, I'll help with budgeting."}

event: tool-call
data: {"id":"tc_1","name":"read_file","arguments":{"path":"/finances/AGENT.md"}}

event: tool-result
data: {"id":"tc_1","output":"# Finances\\nBudget goal: ..."}

event: text-delta
data: {"content":"Based on your finance page..."}

event: done
data: {"finish_reason":"stop","usage":{"prompt_tokens":150,"completion_tokens":75}}

"""
EVENTS = (
    Text("Hello, I'll help with budgeting."),
    ToolCall("tc_1", "read_file", '{"path":"/finances/AGENT.md"}', is_own=True),
    ToolResult("tc_1", "ok", "# Finances\nBudget goal: ..."),
    Text("Based on your finance page..."),
)
CALL = ToolCall("c", "f", "{}")


def ended(end: End) -> bytes | None:
    return EngineWriter().end(end)


def test_the_stream_of_the_design_is_written_to_the_byte() -> None:
    writer = EngineWriter()
    # What was used is the sum over all calls of the model.
    stream = writer.write([*EVENTS[:2], Usage(100, 50), *EVENTS[2:], Usage(50, 25)])
    assert stream + (writer.end(Done()) or b"") == EXAMPLE


def test_done_tells_what_was_used_also_where_nobody_counted() -> None:
    usage = b'"usage":{"prompt_tokens":0,"completion_tokens":0}'
    assert usage in (ended(Done("max_iterations")) or b"")


def test_a_tool_that_failed_or_was_denied_has_an_error_in_the_place_of_its_output() -> None:
    for status in ("error", "denied"):
        writer = EngineWriter()
        writer.write([CALL])
        frame = writer.write([ToolResult("c", status, "No.")])
        assert frame == b'event: tool-result\ndata: {"id":"c","error":"No."}\n\n'


def test_an_output_that_is_no_text_is_written_as_json_in_one() -> None:
    frame = EngineWriter()
    frame.write([CALL])
    assert b'"output":"{\\"a\\":[1]}"' in frame.write([ToolResult("c", "ok", {"a": [1]})])


def test_arguments_that_are_no_object_are_shown_as_none() -> None:
    for arguments in ("", "[1]", "{", '{"a":1,"a":2}', "\ud800"):
        frame = EngineWriter().write([ToolCall("c", "f", arguments)])
        assert frame == b'event: tool-call\ndata: {"id":"c","name":"f","arguments":{}}\n\n'


def test_a_long_text_is_spread_over_frames_that_every_reader_takes() -> None:
    text = "\x00" * (MOST_CHARACTERS * 2 + 1)
    frames = SseReader(max_event_bytes=MAX_EVENT_BYTES).feed(EngineWriter().write([Text(text)]))
    assert [frame.event for frame in frames] == ["text-delta"] * 3


def test_no_text_adds_a_frame() -> None:
    stream = EngineWriter().write([Text("a\n\nevent: done\ndata: {}\n\n"), Text("")])
    assert len(SseReader().feed(stream)) == 1


def test_what_the_contract_cannot_carry_is_left_out() -> None:
    assert EngineWriter().write([Data({"a": 1}), Extension("x", 1), Usage(1, 1)]) == b""


def test_a_call_that_waits_for_an_approval_is_the_last_thing_before_the_end() -> None:
    asked = Interrupt(kind="approval", message="Run f?", id="c")
    assert b'"finish_reason":"approval_required"' in (ended(Waiting((asked,))) or b"")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ModelKeyRefused("sk-123 at /srv/app.py line 7"), "provider_error"),
        (ContextTooLong("sk-123"), "context_overflow"),
        (ToolUnusable("Traceback: /srv/app.py"), "tool_error"),
    ],
)
def test_an_error_is_its_code_and_one_fixed_sentence(error: ModelKeyRefused, code: str) -> None:
    frame = ended(Failed.of(error)) or b""
    sentence = MESSAGES[code].encode()
    assert frame == b'event: error\ndata: {"code":"%b","message":"%b"}\n\n' % (
        code.encode(),
        sentence,
    )


def test_what_stops_a_loop_and_is_no_failure_is_done_with_its_reason() -> None:
    assert b'"finish_reason":"shutting_down"' in (ended(Failed.of(ShuttingDown())) or b"")


def test_for_a_fault_of_the_loop_there_is_no_word() -> None:
    assert ended(Failed.of(Internal("bug"))) is None


def test_nothing_is_written_after_the_end() -> None:
    writer = EngineWriter()
    writer.end(Done())
    with pytest.raises(Internal):
        writer.write([Text("x")])


def test_a_loop_that_mixes_up_its_calls_is_stopped() -> None:
    writer = EngineWriter()
    with pytest.raises(Internal):
        writer.write([ToolResult("c", "ok", "")])
    with pytest.raises(Internal):
        writer.write([CALL, CALL])


def test_that_a_conversation_fills_the_window_stands_beside_the_usage() -> None:
    writer = EngineWriter()
    earlier, later = {"ratio": 0.9, "managed": False}, {"ratio": 1.2, "managed": True}
    assert writer.write([Extension(CONTEXT_WINDOW, each) for each in (earlier, later)]) == b""
    assert writer.end(Done()) == (
        b'event: done\ndata: {"finish_reason":"stop","usage":{"prompt_tokens":0,'
        b'"completion_tokens":0},"context_window":{"ratio":1.2,"managed":true}}\n\n'
    )


def test_a_gateway_is_told_what_was_used_so_far_before_the_next_frame() -> None:
    writer = EngineWriter(tells_used=True)
    assert writer.write([Usage(3, 1)]) == b""
    assert writer.write([Text("a")]).startswith(b": used 3 1\n\nevent: text-delta\n")
    assert writer.write([Text("b")]).startswith(b"event: text-delta\n")
    writer.write([Usage(4, 1)])
    assert writer.used() == b": used 7 2\n\n"
    writer.write([Usage(1, 1)])
    failed = writer.end(Failed("provider_error")) or b""
    assert failed.startswith(b": used 8 3\n\nevent: error\n")
