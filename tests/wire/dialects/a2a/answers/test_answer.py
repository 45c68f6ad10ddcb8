"""What an agent says, as artifacts and statuses."""

from typing import Any

from carnet.core.messages.events import (
    FILE,
    RESULT,
    Data,
    Done,
    Event,
    Extension,
    Failed,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    Waiting,
)
from carnet.core.messages.interrupt import Interrupt
from carnet.wire.dialects.a2a.answers.answer import (
    ERROR,
    TOOLS,
    artifacts_of,
    plain_status,
    status_of,
    tool_note,
)
from carnet.wire.dialects.a2a.extensions.interrupt import INTERRUPT_URI
from carnet.wire.dialects.a2a.extensions.questions import x402
from carnet.wire.dialects.a2a.extensions.questions.kagent import KAGENT_URI
from carnet.wire.dialects.a2a.extensions.questions.policy_part import POLICY_URI
from carnet.wire.dialects.a2a.extensions.tool_events import TOOL_EVENTS_URI

PAYMENT = Interrupt(
    kind="payment",
    id="int_1",
    state="s",
    message="Pay.",
    amount=500_000,
    currency="credits",
)
IDS: dict[str, Any] = {"task": "t", "context": "c"}


def test_everything_that_was_said_is_an_artifact_in_its_order() -> None:
    events: list[Event] = [
        Text("a"),
        Text("b"),
        Data({"n": 1}),
        Text(""),
        Extension(FILE, {"raw": "aGVsbG8="}),
        Extension(FILE, {"broken": 1}),
        Extension("other", 1),
        ToolCall("c1", "f", "{}"),
        ToolCall("c2", "own", "{}", is_own=True),
        Usage(1, 2),
        Text("c"),
        Extension(RESULT, {"sum": 3}),
        Done(),
    ]
    answer, result = artifacts_of(events)
    wanted = {"toolCall": {"id": "c1", "name": "f", "arguments": "{}"}}
    assert answer["parts"] == [
        {"text": "ab"},
        {"data": {"n": 1}},
        {"raw": "aGVsbG8="},
        {"data": wanted, "metadata": {TOOLS: {"type": "call"}}},
        {"text": "c"},
    ]
    assert result == {"artifactId": "result", "parts": [{"data": {"sum": 3}}]}
    assert artifacts_of([Done()]) == []


def test_a_tool_that_an_agent_runs_is_noted() -> None:
    shown = tool_note(ToolCall("c", "f", "{}", is_own=True, label="Looks"))
    assert shown == {"type": "call", "id": "c", "name": "f", "arguments": "{}", "label": "Looks"}
    assert "label" not in tool_note(ToolCall("c", "f", "{}", is_own=True))
    assert tool_note(ToolResult("c", "ok", "x")) == {
        "type": "result",
        "id": "c",
        "status": "ok",
        "output": "x",
    }


def test_a_status_has_a_message_where_there_is_something_to_say() -> None:
    assert status_of(Done(), **IDS) == {"state": "TASK_STATE_COMPLETED"}
    assert plain_status("X", "now") == {"state": "X", "timestamp": "now"}
    failed = status_of(Failed("rate_limited", {"retry_after": 9}), timestamp="now", **IDS)
    message = failed["message"]
    assert (failed["state"], failed["timestamp"]) == ("TASK_STATE_FAILED", "now")
    assert (message["messageId"], message["taskId"]) == ("t.failed", "t")
    error = message["metadata"][ERROR]
    assert (error["code"], error["message"]) == ("rate_limited", message["parts"][0]["text"])
    assert error["hint"]


def asked(*interrupts: Interrupt, uris: tuple[str, ...] = ()) -> dict[str, Any]:
    found: dict[str, Any] = status_of(Waiting(interrupts), extensions=uris, **IDS)["message"]
    return found


def test_what_is_waited_for_is_asked_in_every_form_that_is_active() -> None:
    plain = asked(PAYMENT)
    assert plain["messageId"] == "t.int_1"
    assert plain["parts"] == [{"text": "Pay. (0.5 credits)"}]
    assert plain["extensions"] == [*plain["metadata"]] == [INTERRUPT_URI]
    known = asked(PAYMENT, uris=(KAGENT_URI, x402.X402_URI, "urn:other"))
    assert known["extensions"] == [INTERRUPT_URI, KAGENT_URI, x402.X402_URI]
    assert known["metadata"][x402.STATUS] == "payment-required"
    assert known["metadata"][KAGENT_URI]["type"] == "tool_approval_request"
    assert asked(Interrupt(kind="input", id="", state="", message="?"))["messageId"] == "t.asks"


USED: list[Event] = [
    ToolCall("c1", "search", "{}", is_own=True),
    ToolCall("c2", "theirs", "{}"),
    ToolResult("c1", "ok", 3),
    ToolResult("c9", "ok", 4),
    Text("x"),
]


def test_tools_are_told_beside_a_status_to_who_wants_them() -> None:
    done = status_of(Done(), **IDS, extensions=[TOOL_EVENTS_URI], events=USED)
    assert done["message"]["extensions"] == [TOOL_EVENTS_URI]
    tools = [part["data"] for part in done["message"]["parts"]]
    assert [(each["type"], each.get("toolName")) for each in tools] == [
        ("tool-call", "search"),
        ("tool-result", "search"),
        ("tool-result", None),
    ]
    waits = status_of(Waiting((PAYMENT,)), **IDS, extensions=[TOOL_EVENTS_URI], events=USED)
    assert waits["message"]["extensions"] == [INTERRUPT_URI, TOOL_EVENTS_URI]
    assert [*map(list, waits["message"]["parts"])] == [["text"], ["data"], ["data"], ["data"]]
    assert "message" not in status_of(Done(), **IDS, events=USED)


def test_policy_parts_are_told_to_who_wants_them() -> None:
    waits = status_of(Waiting((PAYMENT,)), **IDS, extensions=[POLICY_URI])
    words, part = waits["message"]["parts"]
    assert words == {"text": "Pay. (0.5 credits)"}
    assert part["data"] == {"kind": "payment_required", "message": "Pay.", "state": "s"}
    refused = status_of(Failed("policy_forbidden"), **IDS, extensions=[POLICY_URI])
    assert refused["message"]["parts"][1]["data"]["kind"] == "forbidden"
    assert refused["message"]["extensions"] == [POLICY_URI]
    assert len(status_of(Failed("policy_forbidden"), **IDS)["message"]["parts"]) == 1
    ours = status_of(Failed("internal"), **IDS, extensions=[POLICY_URI])
    assert len(ours["message"]["parts"]) == 1
