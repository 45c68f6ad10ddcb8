"""A task as it goes on, told in updates."""

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from carnet.core.messages.events import (
    FILE,
    RECEIPT,
    RESULT,
    Data,
    Done,
    Event,
    Extension,
    Failed,
    Interrupted,
    Resolved,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    Waiting,
)
from carnet.core.messages.interrupt import Interrupt, Resolution
from carnet.wire.dialects.a2a.answers.answer import TOOLS, artifacts_of
from carnet.wire.dialects.a2a.answers.stream import MOST_CHARACTERS, TaskStream, Update
from carnet.wire.dialects.a2a.extensions import TaskFacts
from carnet.wire.dialects.a2a.extensions.own import CHAIN_URI, RECEIPT_URI, USAGE_URI
from carnet.wire.dialects.a2a.extensions.questions.kagent import KAGENT_URI
from carnet.wire.dialects.a2a.extensions.tool_events import TOOL_EVENTS_URI

FACTS = TaskFacts(task="t", run="r", turn="u")
ASKED = Interrupt(kind="approval", id="int_1", state="s", message="May I?")
SPOKEN: st.SearchStrategy[Event] = st.one_of(
    st.text(max_size=5).map(Text),
    st.integers().map(Data),
    st.just(Extension(FILE, {"raw": "aGVsbG8="})),
    st.just(Extension(RESULT, {"sum": 3})),
    st.just(ToolCall("c", "f", "{}", is_own=True)),
    st.just(ToolCall("c", "f", "{}")),
    st.just(ToolResult("c", "ok", "x")),
    st.just(Usage(1, 2, 3)),
    st.just(Extension(RECEIPT, "eyJ")),
    st.just(Extension("other", 1)),
)
ENDS = st.sampled_from([Done(), Failed("internal"), Waiting((ASKED,))])


def updates_of(batches: list[list[Event]], seen: int = 0) -> list[Update]:
    stream = TaskStream(FACTS, "c", currency="credits", extensions=(KAGENT_URI,), seen=(seen, 0))
    return [update for batch in batches for update in stream.updates(batch)]


def cut(events: list[Event], places: list[int]) -> list[list[Event]]:
    at = [0, *sorted(place % (len(events) + 1) for place in places), len(events)]
    return [events[begin:end] for begin, end in pairwise(at)]


def whole(updates: list[Update]) -> tuple[dict[str, list[Any]], list[Any]]:
    """What updates add up to: the artifacts, and the statuses."""
    artifacts: dict[str, list[Any]] = {}
    statuses = []
    for _, update in updates:
        if "statusUpdate" in update:
            statuses.append({**update["statusUpdate"]})
            continue
        added = update["artifactUpdate"]
        name, (part,) = added["artifact"]["artifactId"], added["artifact"]["parts"]
        assert added["append"] is (name in artifacts)
        parts = artifacts.setdefault(name, [])
        if parts and "text" in part and "text" in parts[-1]:
            parts[-1] = {"text": parts[-1]["text"] + part["text"]}
        else:
            parts.append(part)
    return artifacts, statuses


@given(st.lists(SPOKEN, max_size=12), ENDS, st.lists(st.integers(0, 99), max_size=6))
def test_where_batches_are_cut_makes_no_difference(
    spoken: list[Event], end: Event, places: list[int]
) -> None:
    events = [*spoken, end]
    at_once, in_pieces = whole(updates_of([events])), whole(updates_of(cut(events, places)))
    assert at_once == in_pieces
    assert at_once == whole(updates_of([[event] for event in events]))
    states = [each["status"]["state"] for each in at_once[1]]
    assert set(states[:-1]) <= {"TASK_STATE_WORKING"}
    assert states[-1] != "TASK_STATE_WORKING"


@given(st.lists(SPOKEN, max_size=8))
def test_updates_add_up_to_the_whole_answer(spoken: list[Event]) -> None:
    artifacts, _ = whole(updates_of([[*spoken, Done()]]))
    parts = [
        ((0, 0), added(each["artifactId"], part, is_more=place > 0))
        for each in artifacts_of(spoken)
        for place, part in enumerate(each["parts"])
    ]
    assert artifacts == whole(parts)[0]


def added(name: str, part: dict[str, Any], *, is_more: bool) -> dict[str, Any]:
    inner = {"artifactId": name, "parts": [part]}
    return {"artifactUpdate": {"artifact": inner, "append": is_more}}


@given(st.lists(SPOKEN, max_size=8), st.integers(0, 12))
def test_who_was_away_is_told_what_it_has_not_seen(spoken: list[Event], seen: int) -> None:
    events = [*spoken, Done()]
    every = updates_of([[event] for event in events])
    later = updates_of([[event] for event in events], seen)
    assert later == [(count, update) for count, update in every if count > (seen, 0)]
    assert [count for count, _ in every] == sorted(count for count, _ in every)


def test_a_long_text_is_told_in_pieces() -> None:
    text = "é" * (2 * MOST_CHARACTERS + 1)
    updates = updates_of([[Text(text)]])
    pieces = [update["artifactUpdate"]["artifact"]["parts"][0]["text"] for _, update in updates]
    assert [len(piece) for piece in pieces] == [MOST_CHARACTERS, MOST_CHARACTERS, 1]
    assert "".join(pieces) == text


def test_a_tool_is_noted_while_the_task_works() -> None:
    ((count, update),) = updates_of([[ToolCall("c", "f", "{}", is_own=True)]])
    status = update["statusUpdate"]["status"]
    assert (count, status["state"]) == ((1, 0), "TASK_STATE_WORKING")
    assert status["message"]["metadata"][TOOLS]["name"] == "f"


def test_the_last_status_has_what_was_used_and_signed_whenever_that_came() -> None:
    updates = updates_of([[Usage(1, 2, 3)], [Extension(RECEIPT, "eyJ")], [Done()]])
    metadata = updates[-1][1]["statusUpdate"]["metadata"]
    assert metadata[USAGE_URI] == {
        "tokensIn": 1,
        "tokensOut": 2,
        "cost": "0.000003",
        "currency": "credits",
    }
    assert metadata[RECEIPT_URI] == {"receipt": "eyJ"}
    assert metadata[CHAIN_URI] == {"run": "r", "turn": "u"}


def test_what_a_task_waits_for_is_asked_in_the_active_forms() -> None:
    ((_, update),) = updates_of([[Waiting((ASKED,))]])
    status = update["statusUpdate"]["status"]
    assert status["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert KAGENT_URI in status["message"]["metadata"]
    assert updates_of([[]]) == []


def test_tools_are_told_as_mentionable_does_to_who_wants_them() -> None:
    stream = TaskStream(FACTS, "c", currency="credits", extensions=(TOOL_EVENTS_URI,))
    events: list[Event] = [
        ToolCall("c1", "search", "{}", is_own=True),
        ToolResult("c1", "ok", 3),
        ToolResult("c9", "ok", 4),
    ]
    messages = [
        update["statusUpdate"]["status"]["message"]
        for event in events
        for _, update in stream.updates([event])
    ]
    assert [each["extensions"] for each in messages] == [[TOOL_EVENTS_URI]] * 3
    assert [each["parts"][0]["data"].get("toolName") for each in messages] == [
        "search",
        "search",
        None,
    ]
    assert [each["metadata"][TOOLS]["type"] for each in messages] == ["call", "result", "result"]


def test_what_a_reader_stays_with_is_told_when_it_is_asked_and_answered() -> None:
    events: list[list[Event]] = [
        [Interrupted(ASKED)],
        [Resolved("int_1", Resolution(outcome="accepted"))],
    ]
    (_, asks), (_, goes_on) = updates_of(events)
    assert asks["statusUpdate"]["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert goes_on["statusUpdate"]["status"] == {"state": "TASK_STATE_WORKING"}
