"""The JSON Schemas of the contract, held to the code: what one takes, the other takes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from carnet.core.messages.events import Done, Failed, Text, ToolCall, ToolResult, Usage, Waiting
from carnet.errors import BY_CODE, CarnetError, Malformed
from carnet.runtime.skills.schemas import foreign
from carnet.wire.dialects import engine_chat
from carnet.wire.dialects.engine_chat import (
    MESSAGES,
    EngineReader,
    EngineWriter,
    read_request,
    write_refusal,
)
from carnet.wire.dialects.engine_chat.refusals import BEFORE
from carnet.wire.dialects.engine_chat.request import MOST_CALLS, MOST_MESSAGES, MOST_NAME
from carnet.wire.dialects.engine_chat.stream import approval_of
from carnet.wire.grammar import json
from carnet.wire.grammar.sse import SseReader
from tests.wire.dialects.engine_chat.test_request import CALLED, EXAMPLE, HELLO, RESULT
from tests.wire.dialects.engine_chat.test_writer import EXAMPLE as STREAM

SCHEMAS = Path(engine_chat.__file__).with_name("schemas")


def fits(name: str) -> Callable[[object], bool]:
    """What tells whether a value is in the form of a published schema."""
    return foreign(json.read_object((SCHEMAS / f"{name}.json").read_bytes()), most_bytes=1 << 20)


def asking(messages: object = (HELLO,), **metadata: object) -> dict[str, Any]:
    return {
        "messages": list(messages) if isinstance(messages, tuple) else messages,
        "metadata": {"correlation_id": "req_1", **metadata},
    }


def calling(**changes: object) -> dict[str, Any]:
    call = {"id": "c", "name": "f", "arguments": {}} | changes
    return asking(({**CALLED, "tool_calls": [call]},))


def many(calls: int) -> list[dict[str, Any]]:
    return [{"id": f"c{n}", "name": "f", "arguments": {}} for n in range(calls)]


KEPT_OUT = (
    *("provider", "provider_adapter", "model", "base_url", "tools", "tool_sources", "api_key"),
    *("api_key_env", "x_api_key", "authorization", "bearer", "token", "access_token", "session_id"),
    *("cookie", "password", "secret", "credential", "credentials", "max_iterations"),
)
CONTEXTS: tuple[Any, ...] = ({}, {"api_key": "x"}, [], None)
ODD: tuple[dict[str, Any], ...] = ({"content": None}, {"name": "x"}, {"content": []})
REQUESTS: tuple[Any, ...] = (
    *(json.read_object(EXAMPLE), asking(), asking((HELLO, CALLED, RESULT)), calling()),
    *(asking(trigger=word) for word in ("message", "webhook", "schedule", "cron", None, 1)),
    *(asking(correlation_id=word) for word in ("", "a b", "x" * 128, "x" * 129, "é", None, 7)),
    *(asking(conversation_id=word) for word in ("", "c", "x" * 256, "x" * 257, None)),
    *(asking(client_context=word) for word in CONTEXTS),
    *(asking(project={"model": 1}), asking(models=1), asking(my_token=1)),
    *(asking(**{spelled(word): 1}) for word in KEPT_OUT for spelled in (str, str.upper)),
    *(asking(**{word.replace("_", "-"): 1}) for word in KEPT_OUT),
    *(asking(**{word.replace("_", ""): 1}) for word in KEPT_OUT),
    *({**asking(), word: 1} for word in ("provider", "version", "stream")),
    *({"messages": [HELLO]}, {"metadata": {"correlation_id": "c"}}, {}, asking("Hi"), asking(())),
    *({"messages": [HELLO], "metadata": []}, asking(("Hi",)), asking((HELLO,) * MOST_MESSAGES)),
    asking((HELLO,) * (MOST_MESSAGES + 1)),
    *(asking(({**HELLO, "role": role},)) for role in ("system", "assistant", "tool", "owner", 1)),
    *(asking(({**HELLO, **more},)) for more in ODD),
    *(asking(({"role": "user"},)), asking(({"content": "x"},))),
    *(asking(({**HELLO, "tool_calls": []},)), asking(({**HELLO, "tool_call_id": "c"},))),
    *(calling(id=word) for word in ("", "x" * MOST_NAME, "x" * (MOST_NAME + 1), 1)),
    *(calling(name=""), calling(arguments="{}"), calling(arguments=None), calling(type="function")),
    asking(({**CALLED, "tool_calls": [{"id": "c", "name": "f"}]},)),
    *(asking(({**CALLED, "tool_calls": many(n)},)) for n in (MOST_CALLS, MOST_CALLS + 1)),
)


def is_taken(request: object) -> bool:
    try:
        read_request(json.write(request))
    except Malformed:
        return False
    return True


def test_the_schema_of_a_request_takes_what_is_taken() -> None:
    judge, taken = fits("request"), [is_taken(request) for request in REQUESTS]
    assert [judge(request) for request in REQUESTS] == taken
    assert min(taken.count(True), taken.count(False)) > 10


def frames(data: bytes) -> list[dict[str, Any]]:
    read = SseReader().feed(data)
    return [{"event": each.event, "data": json.read_object(each.data.encode())} for each in read]


def written(*events: Any) -> bytes:
    writer = EngineWriter()
    *before, end = events
    return writer.write(before) + (writer.end(end) or b"")


CALL = ToolCall("c", "f", "{}")
STREAMS = (
    STREAM,
    written(Text("x" * 90_000), Done("stop")),
    written(ToolCall("c", "f", '{"a":[1]}'), ToolResult("c", "error", "no"), Done("length")),
    written(ToolCall("c", "f", "no object"), ToolResult("c", "denied", None), Done("cancelled")),
    written(ToolCall("c", "f", "{}"), ToolResult("c", "ok", {"a": 1}), Usage(1, 2), Done("stop")),
    written(CALL, Waiting((approval_of(CALL),))),
    *(
        written(Failed(code))
        for code in ("provider_error", "tool_error", "context_length_exceeded")
    ),
)


@pytest.mark.parametrize("stream", STREAMS)
def test_every_event_that_is_written_is_in_the_form_of_the_schema(stream: bytes) -> None:
    judge = fits("event")
    assert frames(stream)
    assert [frame for frame in frames(stream) if not judge(frame)] == []


@pytest.mark.parametrize(
    ("event", "data"),
    [
        ("message", {"content": "x"}),
        ("text-delta", {"delta": "x"}),
        ("text-delta", {"content": "x", "type": "text-delta"}),
        ("tool-call", {"id": "c", "name": "f", "arguments": "{}"}),
        ("tool-result", {"id": "c"}),
        ("tool-result", {"id": "c", "output": "x", "error": "y"}),
        ("tool-result", {"id": "c", "output": {}}),
        ("done", {"finish_reason": "stop"}),
        ("done", {"finish_reason": "", "usage": {"prompt_tokens": 1, "completion_tokens": 1}}),
        ("done", {"finish_reason": "stop", "usage": {"prompt_tokens": -1, "completion_tokens": 1}}),
        ("error", {"code": "internal_error", "message": "x"}),
        ("error", {"code": "tool_error", "message": ""}),
    ],
)
def test_what_is_no_event_of_the_contract_is_not(event: str, data: dict[str, Any]) -> None:
    assert not fits("event")({"event": event, "data": data})


def test_the_schema_of_an_event_names_those_that_there_are() -> None:
    schema: Any = json.read_object((SCHEMAS / "event.json").read_bytes())
    assert schema["$defs"]["error"]["properties"]["code"]["enum"] == list(MESSAGES)
    reader = EngineReader()
    for name in schema["properties"]["event"]["enum"]:
        reader.feed(b"event: %b\ndata: {}\n\n" % name.encode())
        assert "does not know" not in reader.fault
        reader = EngineReader()


def test_every_refusal_is_in_the_form_of_the_schema() -> None:
    judge = fits("refusal")
    for kind in BY_CODE.values():
        error: CarnetError = kind.__new__(kind)
        CarnetError.__init__(error)
        status, body = write_refusal(error)
        assert judge(json.read_object(body)), kind
        assert status in BEFORE


def test_a_refusal_holds_nothing_else() -> None:
    judge = fits("refusal")
    assert judge({"code": "unauthorized", "message": "No."})
    for other in ({"code": "unauthorized"}, {"code": "odd", "message": "No."}):
        assert not judge(other)
    assert not judge({"code": "unauthorized", "message": "No.", "hint": "x"})
