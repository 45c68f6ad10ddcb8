"""A whole answer, there and back."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from carnet.core.messages.events import (
    RESULT,
    Data,
    Done,
    Event,
    Extension,
    Failed,
    Text,
    ToolCall,
    Usage,
)
from carnet.errors import (
    AgentFailed,
    CarnetError,
    Internal,
    PeerRefused,
    ProviderError,
    RateLimited,
)
from carnet.wire.dialects.samvad import read_answer, result_of, span_from, span_of, write_answer
from carnet.wire.grammar import json
from tests.wire.dialects.samvad.scene import TURN, encoded

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def answer(*events: Event) -> dict[str, Any]:
    return json.read_object(write_answer(TURN, events, trace_id="trace-1"))


def result(*events: Event) -> Any:
    return answer(*events, Done())["result"]


# ------------------------------------------------------------------ writing


def test_an_answer_has_the_four_fields_of_the_protocol() -> None:
    body = write_answer(TURN, [Text("hi"), Done()], trace_id="trace-1", span_id="span-9")
    assert body == (b'{"traceId":"trace-1","spanId":"span-9","status":"ok","result":{"text":"hi"}}')


def test_an_answer_is_shaped_as_the_worked_example_of_the_text() -> None:
    example = {"issues": [], "summary": "No issues found"}
    body = answer(Extension(RESULT, example), Done())
    assert body == {
        "traceId": "trace-1",
        "spanId": span_of(TURN),
        "status": "ok",
        "result": example,
    }


def test_the_text_of_an_agent_is_joined() -> None:
    assert result(Text("Hel"), Text("lo")) == {"text": "Hello"}
    assert result() == {"text": ""}


def test_what_a_skill_gives_is_its_result_whatever_it_said_before() -> None:
    assert result(Text("thinking"), Data({"n": 1}), Extension(RESULT, {"a": 1})) == {"a": 1}


def test_a_result_that_is_no_object_is_wrapped() -> None:
    assert result(Extension(RESULT, [1, 2])) == {"result": [1, 2]}


def test_structured_output_alone_is_told_as_text() -> None:
    assert result(Data({"a": 1}), Data([2])) == {"text": '{"a":1}\n[2]'}
    assert result(Data({"a": 1}), Text("so")) == {"text": "so"}


def test_what_the_dialect_cannot_carry_is_left_out() -> None:
    silent: list[Event] = [
        ToolCall("1", "f", "{}"),
        Usage(1, 2, 3),
        Extension("carnet.other", {"x": 1}),
    ]
    assert result(*silent, Text("hi")) == {"text": "hi"}


def test_a_turn_that_failed_has_no_answer() -> None:
    with pytest.raises(AgentFailed):
        answer(Text("hi"), Failed.of(AgentFailed("raw")))
    with pytest.raises(Internal):
        answer(Text("hi"))


def test_the_span_of_an_answer_is_new_to_the_caller_and_the_same_for_a_repeat() -> None:
    assert UUID.fullmatch(span_of(TURN))
    assert span_of(TURN) == span_of(replace(TURN, state="done", cost=7, ended=9))
    assert span_of(TURN) != TURN.turn
    others = [replace(TURN, attempt=2), replace(TURN, turn="span-2"), replace(TURN, run="trace-2")]
    assert len({span_of(turn) for turn in [TURN, *others]}) == 1 + len(others)
    assert span_from("a", "bc") != span_from("ab", "c")


def test_callers_in_python_get_the_same_result() -> None:
    assert result_of([Text("a"), Text("b"), Done()]) == {"text": "ab"}
    assert result_of([Extension(RESULT, {"n": 1}), Done()]) == {"n": 1}
    with pytest.raises(RateLimited):
        result_of([Failed.of(RateLimited(retry_after=1))])


# ------------------------------------------------------------------ reading


def test_a_text_is_told_as_text_and_anything_else_as_a_result() -> None:
    for given_, events in (
        ({"text": "hi"}, [Text("hi"), Done()]),
        ({"text": ""}, [Done()]),
        ({"text": "hi", "n": 1}, [Extension(RESULT, {"text": "hi", "n": 1}), Done()]),
        ({"text": 7}, [Extension(RESULT, {"text": 7}), Done()]),
        ({}, [Extension(RESULT, {}), Done()]),
    ):
        assert read_answer(encoded({"status": "ok", "result": given_})) == events


def test_a_result_may_be_as_deep_as_can_be_written_again() -> None:
    body = b'{"status":"ok","result":' + b'{"a":' * 64 + b"1" + b"}" * 65
    [result, _] = read_answer(body)
    assert isinstance(result, Extension)
    assert json.write({"status": "ok", "result": result.payload}) == body


def test_fields_that_we_do_not_know_pass() -> None:
    body = {"traceId": "", "spanId": "s", "status": "ok", "result": {"text": "x"}, "more": 1}
    assert read_answer(encoded(body)) == [Text("x"), Done()]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'"hush-hush"',
        b'{"status":"ok","result":[1]}',
        b'{"status":"hush-hush","result":{}}',
        b'{"status":"error"}',
        b'{"status":"error","error":{"code":"hush-hush"}}',
        b'{"status":"ok","result":' + b'{"a":' * 100_000,
        b'{"status":"ok","result":' + b'{"a":' * 65 + b"1" + b"}" * 66,
        b"\xff",
    ],
)
def test_what_is_no_answer_is_refused_without_repeating_it(body: bytes) -> None:
    with pytest.raises(ProviderError) as caught:
        read_answer(body)
    assert "hush-hush" not in caught.value.safe_text


def test_an_error_in_an_answer_keeps_the_word_of_the_protocol() -> None:
    error = {"code": "SKILL_NOT_FOUND", "message": "hush-hush"}
    with pytest.raises(PeerRefused) as caught:
        read_answer(encoded({"traceId": "t", "spanId": "s", "status": "error", "error": error}))
    assert caught.value.facts == {"peer_status": 404, "peer_code": "SKILL_NOT_FOUND"}


@given(st.binary(max_size=200))
def test_any_bytes_are_an_answer_or_refused(body: bytes) -> None:
    with pytest.raises(CarnetError):
        read_answer(body)


RESULTS = st.dictionaries(
    st.sampled_from(["text", "a", "b"]),
    st.text(st.characters(exclude_categories=["Cs"])) | st.integers(-9, 9) | st.none(),
)


@given(RESULTS)
def test_a_result_is_read_as_it_was_written(given_: dict[str, Any]) -> None:
    body = write_answer(TURN, [Extension(RESULT, given_), Done()], trace_id="t")
    assert result_of(read_answer(body)) == given_


@pytest.mark.parametrize("body", [b'{"status":"ok"}', b'{"status":"ok","result":null}'])
def test_an_answer_without_a_result_has_an_empty_one(body: bytes) -> None:
    assert read_answer(body) == [Done()]
