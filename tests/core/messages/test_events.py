"""Events: what is journaled is what was said."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from carnet.core.messages.events import (
    PIECE_BYTES,
    Data,
    DataPart,
    Done,
    End,
    Event,
    Extension,
    Failed,
    Interrupted,
    Link,
    Message,
    Resolved,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    Waiting,
    is_terminal,
    join_events,
    joined_text,
    journaled,
    read_events,
    read_in_pieces,
    state_of,
    write_event,
    write_events,
)
from carnet.core.messages.interrupt import Interrupt, Resolution
from carnet.errors import (
    AgentNotFound,
    DepthExceeded,
    Internal,
    ProviderTimeout,
    RateLimited,
    leaves,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
COUNTS = st.none() | st.integers(0, 2**53)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
INTERRUPTS = st.builds(
    Interrupt,
    id=TEXTS,
    state=TEXTS,
    kind=st.sampled_from(["approval", "payment", "carrier_pigeon"]),
    message=st.just("please"),
    url=st.none() | TEXTS,
    amount=COUNTS,
)
RESOLUTIONS = st.builds(
    Resolution, outcome=st.sampled_from(["accepted", "rejected"]), proof=st.none() | TEXTS
)
EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(Text, TEXTS),
    st.builds(ToolCall, TEXTS, TEXTS, TEXTS, st.integers(0, 9)),
    st.builds(ToolResult, TEXTS, st.sampled_from(["ok", "error", "denied"]), JSON),
    st.builds(Data, JSON),
    st.builds(Interrupted, INTERRUPTS),
    st.builds(Resolved, TEXTS, RESOLUTIONS),
    st.builds(Usage, COUNTS, COUNTS, COUNTS, COUNTS, st.none() | TEXTS),
    st.builds(Done, TEXTS),
    st.builds(Failed, TEXTS, st.dictionaries(TEXTS, st.none() | st.integers(0, 9) | TEXTS)),
    st.builds(Extension, TEXTS, JSON),
)


@given(events=st.lists(EVENTS, max_size=6))
def test_a_batch_is_read_as_it_was_written(events: list[Event]) -> None:
    assert read_events(write_events(events)) == events


@given(event=EVENTS)
def test_done_and_failed_alone_end_a_stream(event: Event) -> None:
    assert is_terminal(event) is isinstance(event, Done | Failed)


def test_the_text_of_an_answer_is_its_pieces_in_order() -> None:
    assert joined_text([Text("a"), Usage(), Text("b"), Data("c"), Done()]) == "ab"
    assert joined_text([]) == ""


@pytest.mark.parametrize("kind", list(leaves()))
def test_every_error_can_be_recorded_and_told_again(kind: type[Any]) -> None:
    failed = Failed(kind.code)
    assert failed.retryable is kind.retryable
    assert type(failed.error()) is kind
    assert failed.error().safe_text


def test_an_error_comes_back_with_its_facts_and_without_its_detail() -> None:
    failed = Failed.of(DepthExceeded(observed=4, limit=4))
    again = failed.error()
    assert isinstance(again, DepthExceeded)
    assert again.safe_text == DepthExceeded(observed=4, limit=4).safe_text
    assert "secret path" not in str(Failed.of(ProviderTimeout("secret path")).error())
    near = AgentNotFound("ech", suggestion="echo")
    assert Failed.of(near).error().safe_text == near.safe_text


def test_a_recorded_failure_of_a_code_we_do_not_know_is_an_internal_error() -> None:
    failed = Failed("of_a_later_version", {"x": 1})
    assert failed.retryable
    assert isinstance(failed.error(), Internal)
    assert "of_a_later_version" not in failed.error().safe_text


def test_a_failure_recorded_without_its_facts_can_still_be_told() -> None:
    assert "unknown" in Failed(RateLimited.code).error().safe_text


def test_every_end_has_its_state_and_nothing_else_is_one() -> None:
    ask = Interrupt(id="i1", state="s", kind="approval", message="may I?")
    ends: dict[str, End] = {
        "done": Done(),
        "failed": Failed("internal"),
        "waiting": Waiting((ask,)),
    }
    for state, end in ends.items():
        assert state_of(end) == state
        assert is_terminal(end)
        assert read_events(write_events([end])) == [end]
    with pytest.raises(TypeError, match="not with None"):
        state_of(None)  # type: ignore[arg-type]  # as an agent of the former shape would
    with pytest.raises(ValueError, match="what for"):
        Waiting(())


def test_what_a_turn_waits_for_is_told_apart_by_its_id() -> None:
    ask = Interrupt(id="i1", state="s", kind="approval", message="may I?")
    with pytest.raises(ValueError, match="the same id"):
        Waiting((ask, replace(ask, state="other")))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *[(name, "a\x00b") for name in ("id", "state", "kind", "message", "url", "origin")],
        *[(name, "\ud800") for name in ("message", "currency", "expires_at")],
        ("amount", -1),
        ("amount", 1 << 53),
        ("retry_after", 1 << 63),
    ],
)
def test_an_agent_waits_for_nothing_that_a_store_cannot_hold(field: str, value: object) -> None:
    ask = Interrupt(id="i1", state="s", kind="approval", message="may I?")
    with pytest.raises(ValueError, match=f"the {field} of an interrupt cannot be kept"):
        Waiting((replace(ask, **{field: value}),))


def test_a_batch_can_be_joined_from_events_that_were_encoded_one_by_one() -> None:
    batch: list[Event] = [Text("a"), Done()]
    assert join_events([write_event(event) for event in batch]) == write_events(batch)


@pytest.mark.parametrize("size", [1, 100, PIECE_BYTES // 8, PIECE_BYTES])
def test_a_long_batch_is_read_whole_and_in_order_some_events_at_a_time(size: int) -> None:
    count = 2 * PIECE_BYTES // size
    batch: list[Event] = [Text(f"{number}" + "ü" * size) for number in range(count)]
    batch += [Data({"a": [1, None]}), Done()]
    pieces = list(read_in_pieces(write_events(batch)))
    assert [event for piece in pieces for event in piece] == batch
    assert len(pieces) > 1
    assert all(len(write_events(piece)) < PIECE_BYTES + 2 * size for piece in pieces)


def test_a_short_batch_is_one_piece() -> None:
    batch: list[Event] = [Text("a"), Done()]
    assert list(read_in_pieces(write_events(batch))) == [batch]


def test_what_is_waited_for_is_journaled_without_its_secret() -> None:
    ask = Interrupt(id="i1", state="secret", kind="approval", message="may I?")
    end = journaled(Waiting((ask,)))
    assert end == Waiting((replace(ask, state=""),))
    assert b"secret" not in write_event(end)
    assert journaled(Failed("internal")) == Failed("internal")


@pytest.mark.parametrize(
    ("kind", "shown", "code"),
    [
        ("approval", "approval", "approval_required"),
        ("sign_in", "sign_in", "sign_in_required"),
        ("legal", "legal", "input_required"),
        ("pigeon", "input", "input_required"),
    ],
)
def test_who_cannot_answer_is_told_of_what_kind_the_first_question_is(
    kind: str, shown: str, code: str
) -> None:
    ask = Interrupt(id="i1", state="s", kind=kind, message="may I?")
    later = Interrupt(id="i2", state="s", kind="payment", message="who pays?")
    error = Waiting((ask, later)).error()
    assert error.code == code
    assert error.facts == {"kind": shown}


def test_the_text_of_a_message_is_its_text_parts_a_line_each() -> None:
    assert Message("user", ("only",)).text == "only"
    assert Message("user", ("first", DataPart({"n": 1}), "second")).text == "first\nsecond"
    assert Message("user", (Link("https://x.example"),)).text == ""


def test_a_message_is_plain_if_it_holds_text_and_no_tool_is_meant() -> None:
    assert Message("user", ("first", "second")).is_plain
    assert not Message("user", ("first", Link("https://x.example"))).is_plain
    assert not Message("assistant", (), tool_calls=(ToolCall("c1", "find", "{}"),)).is_plain
    assert not Message("tool", ("found",), tool_call_id="c1").is_plain
