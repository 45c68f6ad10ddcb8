"""Log lines and metrics."""

import ast
import io
import json
import logging
import sys
from queue import SimpleQueue
from typing import Any

import pytest

from carnet.telemetry import (
    FIELDS,
    CallNote,
    JsonLines,
    LogSink,
    Metrics,
    note_call,
    redact,
    start_logging,
)
from carnet.testing.wait import until
from tests.architecture.tree import PACKAGE, name_of, parsed


def line(message: str, **fields: object) -> dict[str, object]:
    record = logging.LogRecord("carnet.gateway", logging.INFO, __file__, 1, message, None, None)
    record.__dict__.update(fields)
    found: dict[str, object] = json.loads(JsonLines().format(record))
    return found


def test_every_line_begins_with_the_same_fields() -> None:
    found = line("call answered", run="conv_1", turn="t", agent="echo")
    names = ["timestamp", "correlation_id", "component", "level", "message", "run", "turn"]
    assert list(found)[:7] == names
    assert found["component"] == "gateway"
    assert found["correlation_id"] == "conv_1"
    assert found["agent"] == "echo"


@pytest.mark.parametrize("client", [None, "192.0.2.7"])
def test_the_line_of_a_call_is_the_one_that_a_record_would_give(client: str | None) -> None:
    fields: dict[str, Any] = {
        "run": "conv_1",
        "turn": "t",
        "correlation_id": "0af7",
        "client": client,
        "agent": "echo",
        "seconds": 0.25,
        "actor": "token:a",
        "depth": 1,
        "state": "done",
    }
    note = CallNote(at=1_800_000_000_500_000, message="call answered", **fields)
    record = logging.LogRecord("carnet.gateway", logging.INFO, __file__, 1, "", None, None)
    record.__dict__.update(fields, msg="call answered", created=1_800_000_000.5)
    assert note.line() == JsonLines().format(record)


def test_a_note_of_a_call_is_a_line_of_its_own_and_is_redacted() -> None:
    stream = io.StringIO()
    sink = start_logging(stream=stream)
    try:
        note_call(a_note(turn='x\n{"level":"info"}', actor="sk-tan-user-123"))
    finally:
        sink.close()
        logging.getLogger().handlers.clear()
    (text,) = stream.getvalue().splitlines()
    assert json.loads(text)["turn"] == 'x\n{"level":"info"}'
    assert "sk-tan" not in text


def test_calls_are_counted_by_agent_and_state_and_by_how_long_they_took() -> None:
    metrics = Metrics()
    for seconds in (0.004, 0.005, 0.3, 1000):
        metrics.called("echo", "done", seconds)
    metrics.called("echo", "failed", 1.0)
    text = metrics.text().decode()
    assert 'carnet_calls_total{agent="echo",state="done"} 4.0' in text
    assert 'carnet_calls_total{agent="echo",state="failed"} 1.0' in text
    assert 'carnet_call_seconds_bucket{le="0.005"} 2.0' in text
    assert 'carnet_call_seconds_bucket{le="1.0"} 4.0' in text
    assert 'carnet_call_seconds_bucket{le="+Inf"} 5.0' in text
    assert "carnet_call_seconds_count 5.0" in text
    assert "carnet_call_seconds_sum 1001.309" in text


def a_note(**changed: Any) -> CallNote:
    fields: dict[str, Any] = dict.fromkeys(("correlation_id", "message", "run", "agent"), "x")
    fields |= {"at": 0, "turn": "t", "client": None, "actor": "a", "depth": 0, "state": "done"}
    return CallNote(**(fields | {"seconds": 0.0} | changed))


def test_a_field_that_is_not_on_the_list_is_named_and_its_value_left_out() -> None:
    found = line("x", password="p", agent="echo")
    assert (found["undeclared"], found["agent"]) == (["password"], "echo")
    assert "password" not in found
    assert "undeclared" not in line("x", agent="echo", run="conv_1", exc_info=None)


def test_a_field_that_is_not_on_the_list_is_an_error_in_the_tests() -> None:
    with pytest.raises(AssertionError, match="password"):
        logging.getLogger("carnet.gateway").warning("x", extra={"password": "p"})


def test_every_field_that_the_source_logs_is_on_the_list() -> None:
    shown = {*FIELDS, "run", "turn", "correlation_id"}
    lost = [
        f"{name_of(path)}:{key.lineno} {key.value!r}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for key in logged_keys(parsed(path))
        if key.value not in shown
    ]
    assert lost == []


def logged_keys(tree: ast.Module) -> list[ast.Constant]:
    """The keys of what is given as `extra`, and of a name or function that it is taken from."""
    extras = [
        keyword.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "extra"
    ]
    names = {part.id for extra in extras for part in ast.walk(extra) if isinstance(part, ast.Name)}
    nodes: list[ast.AST] = [*extras]
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            nodes += [node.value] if node.targets[0].id in names & {"extra", "fields"} else []
        elif isinstance(node, ast.FunctionDef) and node.name in names:
            nodes.append(node)
    return [
        key
        for each in nodes
        for part in ast.walk(each)
        if isinstance(part, ast.Dict)
        for key in part.keys
        if isinstance(key, ast.Constant)
    ]


def test_control_characters_stay_inside_their_line() -> None:
    text = 'a\n{"level":"info"}\x1b[31m'
    assert line(text)["message"] == text
    record = logging.LogRecord("x", logging.INFO, __file__, 1, text, None, None)
    assert "\n" not in JsonLines().format(record)


def test_a_line_is_one_line_to_every_reader_and_moves_no_cursor() -> None:
    text = "a\x7f\x85b\x9b31m\u2028c\u2029é"
    record = logging.LogRecord("x", logging.INFO, __file__, 1, text, None, None)
    written = JsonLines().format(record)
    assert len(written.splitlines()) == 1
    assert not any(character in written for character in "\x7f\x85\x9b\u2028\u2029")
    assert json.loads(written)["message"] == text


def test_what_looks_like_half_a_key_takes_nothing_else_with_it() -> None:
    found = line("x", run="-----BEGINa", agent="b-----")
    assert (found["level"], found["message"], found["agent"]) == ("info", "x", "b-----")


def test_long_values_are_cut() -> None:
    assert len(str(line("m" * 1_000_000)["message"])) == 1024


@pytest.mark.parametrize(
    "secret",
    [
        "Bearer abcdefgh",
        "bearer sk-tan-user-123",
        "sk-tan-user-123",
        "ck_0123456789abcdef",
        "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0.",
        "-----BEGIN PRIVATE KEY-----",
    ],
)
def test_what_looks_like_a_credential_is_blanked_out(secret: str) -> None:
    assert "***" in redact(f"before {secret} after")
    assert secret not in str(line(f"before {secret} after", detail=secret))


def test_an_exception_is_told_in_the_line() -> None:
    try:
        int("what went wrong")
    except ValueError:
        detail = line("failed", exc_info=sys.exc_info())["detail"]
    else:
        detail = ""
    assert "what went wrong" in str(detail)


def test_a_sink_writes_lines_and_survives_a_closed_stream() -> None:
    stream = io.StringIO()
    sink = LogSink(stream)
    sink.setFormatter(JsonLines())
    sink.emit(logging.LogRecord("x", logging.INFO, __file__, 1, "one", None, None))
    sink.close()
    assert json.loads(stream.getvalue())["message"] == "one"
    closed = io.StringIO()
    closed.close()
    broken = LogSink(closed)
    broken.setFormatter(JsonLines())
    broken.emit(logging.LogRecord("x", logging.INFO, __file__, 1, "two", None, None))
    broken.close()
    assert broken.dropped == 1


def test_a_line_wakes_a_sink_that_had_nothing_to_write() -> None:
    written: SimpleQueue[str] = SimpleQueue()

    class Stream(io.StringIO):
        def write(self, text: str) -> int:
            written.put(text)
            return len(text)

    sink = LogSink(Stream())
    sink.setFormatter(JsonLines())
    for word in ("one", "two"):
        until(lambda: sink.is_resting)
        sink.emit(logging.LogRecord("x", logging.INFO, __file__, 1, word, None, None))
        assert json.loads(written.get())["message"] == word
    sink.close()


def test_metrics_count_calls_by_agent_and_state() -> None:
    metrics = Metrics(open_calls=lambda: 3, circuits=lambda: 1)
    metrics.called("echo", "done", 0.01)
    metrics.called("echo", "done", 0.02)
    text = metrics.text().decode()
    assert 'carnet_calls_total{agent="echo",state="done"} 2.0' in text
    assert "carnet_open_calls 3.0" in text
    assert "carnet_open_circuits 1.0" in text
