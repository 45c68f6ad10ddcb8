"""Whole answers: events into a chat completion, a peer's completion into events."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from openai.types import Model
from openai.types.chat import ChatCompletion

from carnet.core.chain.turn import Turn
from carnet.core.messages.events import (
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
    joined_text,
)
from carnet.core.messages.interrupt import Interrupt, Resolution
from carnet.core.people.identity import Account
from carnet.errors import DepthExceeded, Internal, ProviderError
from carnet.wire.dialects.openai import read_answer, write_answer, write_models
from carnet.wire.grammar import json

TURN = Turn(
    n=7,
    agent="echo",
    run="conv_abc",
    turn="conv_abc.t0.echo",
    payer=Account("token:ada", "ada"),
    created=1_700_000_000_999_999,
)

WORDS = ["stop", "length", "tool_calls", "content_filter", "function_call"]

amounts = st.none() | st.integers(0, 10**15)
counts = st.integers(0, 10**12)
names = st.text(min_size=1)
answers = st.tuples(
    st.lists(st.builds(Text, st.text()), max_size=4),
    st.lists(st.builds(ToolCall, names, names, st.text()), max_size=3),
    st.builds(Usage, counts, counts, amounts, amounts, st.just("credits")),
    st.builds(Done, st.sampled_from(WORDS)),
)


def written(*events: Event, turn: Turn = TURN) -> dict[str, Any]:
    return json.read_object(write_answer(turn, events, model="echo", currency="credits"))


def message_of(*events: Event) -> dict[str, Any]:
    message: dict[str, Any] = written(*events)["choices"][0]["message"]
    return message


def completion(**changes: object) -> bytes:
    """A peer's answer with some members changed."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "hi"},
        "finish_reason": "stop",
    }
    return json.write({"id": "x", "object": "chat.completion", "choices": [choice]} | changes)


def answered(message: object, reason: object = "stop") -> bytes:
    return completion(choices=[{"index": 0, "message": message, "finish_reason": reason}])


def read(body: bytes) -> list[Event]:
    return read_answer(body, currency="credits")


# ------------------------------------------------------------------ writing


def test_an_answer_has_the_fields_of_a_chat_completion() -> None:
    answer = written(Text("Hel"), Text("lo"), Usage(3, 4, 200, 1_500_000, "credits"), Done())
    assert answer.pop("id").startswith("chatcmpl-")
    assert answer == {
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "echo",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hello"},
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 3,
            "completion_tokens": 4,
            "total_tokens": 7,
            "cost": "0.0002",
            "currency": "credits",
            "run_cost": "1.5",
        },
    }


def test_tool_calls_stand_beside_a_null_content() -> None:
    call = ToolCall("c1", "look_up", '{"q": 1}')
    assert message_of(call, Done("tool_calls")) == {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "look_up", "arguments": '{"q": 1}'},
            }
        ],
    }
    assert message_of(Text("I will look."), call, Done("tool_calls"))["content"] == "I will look."


def test_an_answer_without_anything_has_an_empty_content() -> None:
    assert message_of(Done()) == {"role": "assistant", "content": ""}


def test_structured_output_is_the_content_only_where_there_is_no_text() -> None:
    assert message_of(Data({"a": 1}), Data([2]), Done())["content"] == '{"a":1}\n[2]'
    assert message_of(Data({"a": 1}), Text(""), Done())["content"] == '{"a":1}'
    assert message_of(Data({"a": 1}), Text("one"), Done())["content"] == "one"
    assert message_of(Data(None), ToolCall("c", "f", ""), Done())["content"] == "null"


def test_the_result_of_a_skill_stands_by_itself_and_is_the_content_where_there_is_no_text() -> None:
    result = Extension(RESULT, {"total": 5})
    assert written(Data(1), result, Done())["carnet"] == {"result": {"total": 5}}
    assert message_of(Data(1), result, Done())["content"] == '{"total":5}'
    assert message_of(Text("one"), result, Done())["content"] == "one"
    assert "carnet" not in written(Text("one"), Done())


def test_what_this_dialect_cannot_carry_is_left_out() -> None:
    others: list[Event] = [
        ToolResult("c1", "ok", "out"),
        Interrupted(Interrupt(id="i", state="s", kind="approval", message="May I?")),
        Resolved("i", Resolution(outcome="accepted")),
        Extension("carnet.leg", {"to": "x"}),
    ]
    assert written(Text("a"), *others, Done()) == written(Text("a"), Done())


def test_unknown_tokens_are_zero_and_an_unknown_cost_is_null() -> None:
    unknown = {
        "prompt_tokens": 0,
        "completion_tokens": 0,
        "total_tokens": 0,
        "cost": None,
        "currency": "credits",
        "run_cost": None,
    }
    assert written(Done())["usage"] == unknown
    assert written(Usage(), Done())["usage"] == unknown
    assert written(Usage(cost=0, run_cost=0), Done())["usage"]["cost"] == "0"


def test_a_reason_that_clients_do_not_know_is_told_as_stop() -> None:
    assert written(Done("max_turns"))["choices"][0]["finish_reason"] == "stop"


def test_a_failed_turn_raises_its_error_instead_of_an_answer() -> None:
    failed = Failed.of(DepthExceeded(observed=4, limit=4))
    with pytest.raises(DepthExceeded) as raised:
        written(Text("partial"), failed)
    assert raised.value.facts == {"observed": 4, "limit": 4}


def test_an_answer_without_its_terminal_event_is_not_written() -> None:
    with pytest.raises(Internal):
        written(Text("partial"))


def test_the_id_is_the_turns_own() -> None:
    first = written(Text("a"), Done())["id"]
    assert written(Text("b"), Done())["id"] == first
    again = structs.replace(TURN, state="done", attempt=2, fence=3, ended=1, cost=5, run_cost=6)
    assert written(Text("a"), Done(), turn=again)["id"] == first
    assert written(Text("a"), Done(), turn=structs.replace(TURN, n=8))["id"] != first


@given(answers)
def test_the_real_client_reads_what_we_write(
    answer: tuple[list[Text], list[ToolCall], Usage, Done],
) -> None:
    texts, calls, usage, done = answer
    body = write_answer(TURN, [*texts, *calls, usage, done], model="echo", currency="credits")
    read_by_client = ChatCompletion.model_validate(json.read(body), strict=True)
    choice = read_by_client.choices[0]
    assert choice.finish_reason == done.reason
    assert (choice.message.content or "") == joined_text(texts)
    assert len(choice.message.tool_calls or []) == len(calls)


@given(answers)
def test_our_own_reader_reads_back_what_we_write(
    answer: tuple[list[Text], list[ToolCall], Usage, Done],
) -> None:
    texts, calls, usage, done = answer
    body = write_answer(TURN, [*texts, *calls, usage, done], model="echo", currency="credits")
    text = joined_text(texts)
    assert read(body) == [
        *([Text(text)] if text else []),
        *[structs.replace(call, index=index) for index, call in enumerate(calls)],
        usage,
        done,
    ]


def test_the_agents_are_listed_as_models() -> None:
    listed = json.read_object(write_models(["echo", "critic"], owner="acme.example", created=17))
    assert listed["object"] == "list"
    data = listed["data"]
    assert isinstance(data, list)
    models = [Model.model_validate(entry, strict=True) for entry in data]
    assert [(m.id, m.owned_by, m.created) for m in models] == [
        ("echo", "acme.example", 17),
        ("critic", "acme.example", 17),
    ]
    assert json.read(write_models([], owner="acme.example", created=0)) == {
        "object": "list",
        "data": [],
    }


# ------------------------------------------------------------------ reading


def test_a_peers_answer_with_fields_we_do_not_know_is_read() -> None:
    body = completion(
        usage={"prompt_tokens": 1, "completion_tokens": 2, "prompt_tokens_details": {"x": []}},
        service_tier="default",
    )
    assert read(body) == [Text("hi"), Usage(1, 2), Done("stop")]


def test_usage_that_was_not_reported_is_not_invented() -> None:
    assert read(completion()) == [Text("hi"), Done("stop")]
    assert read(completion(usage=None)) == [Text("hi"), Done("stop")]
    assert read(completion(usage={})) == [Text("hi"), Usage(), Done("stop")]


@pytest.mark.parametrize("currency", ["USD", "Credits", "", None, 1, ["credits"]])
def test_a_cost_in_another_currency_is_unknown(currency: object) -> None:
    usage = {"prompt_tokens": 1, "cost": "5", "run_cost": "6", "currency": currency}
    assert read(completion(usage=usage))[1] == Usage(1)


@pytest.mark.parametrize("cost", [0.5, 5, "-1", "1e3", "0.0000001", " 1", "١", "9" * 13, None, {}])
def test_a_cost_that_is_not_a_decimal_text_is_unknown(cost: object) -> None:
    usage = {"cost": cost, "run_cost": "1", "currency": "credits"}
    assert read(completion(usage=usage))[1] == Usage(None, None, None, 1_000_000, "credits")


def test_as_many_tokens_as_a_bill_can_hold_are_read() -> None:
    usage = {"prompt_tokens": 10**12, "completion_tokens": 10**12}
    assert read(completion(usage=usage))[1] == Usage(10**12, 10**12)


def test_an_answer_may_leave_out_why_it_ended() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    assert read(answered({"content": "hi"}, None)) == [Text("hi"), Done("stop")]
    assert read(answered({"content": None, "tool_calls": [call]}, None)) == [
        ToolCall("c", "f", "{}"),
        Done("tool_calls"),
    ]


def test_a_reason_of_the_peers_own_is_read_as_stop() -> None:
    assert read(answered({"content": "hi"}, "eos_token")) == [Text("hi"), Done("stop")]


CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}

NOT_AN_ANSWER = {
    "nothing": b"",
    "html": b"<html>secret path /srv/app</html>",
    "a list": b"[]",
    "an error with status 200": b'{"error":{"message":"boom"}}',
    "choices missing": b"{}",
    "choices null": completion(choices=None),
    "choices empty": completion(choices=[]),
    "message missing": completion(choices=[{"finish_reason": "stop"}]),
    "content a number": answered({"content": 7}),
    "content a list": answered({"content": [{"type": "text", "text": "x"}]}),
    "reason a number": answered({"content": "x"}, 1),
    "ended in an error": answered({"content": "x"}, "error"),
    "aborted": answered({"content": "x"}, "abort"),
    "call without an id": answered({"tool_calls": [CALL | {"id": ""}]}),
    "call without a function": answered({"tool_calls": [{"id": "c"}]}),
    "call with an object for arguments": answered(
        {"tool_calls": [CALL | {"function": {"name": "f", "arguments": {}}}]}
    ),
    "too many calls": answered({"tool_calls": [CALL] * 129}),
    "negative tokens": completion(usage={"prompt_tokens": -1}),
    "more tokens than there are": completion(usage={"completion_tokens": 10**12 + 1}),
    "tokens up to 2^53": completion(usage={"prompt_tokens": 2**53 - 1}),
    "tokens a float": completion(usage={"completion_tokens": 1.5}),
    "not UTF-8": completion().replace(b"hi", b"h\xff"),
    "half a surrogate pair": completion().replace(b"hi", b"\\ud800"),
    "cut off": completion()[:-2],
    "two documents": completion() * 2,
    "a tower": b'{"choices":' + b"[" * 100_000,
    "a tower in a field we skip": b'{"x":' + b"[" * 100_000,
}


@pytest.mark.parametrize("case", NOT_AN_ANSWER)
def test_what_is_not_an_answer_is_a_providers_error(case: str) -> None:
    with pytest.raises(ProviderError) as raised:
        read(NOT_AN_ANSWER[case])
    assert raised.value.detail
    assert "secret" not in str(raised.value)


def test_as_many_tool_calls_as_allowed_are_read() -> None:
    events = read(answered({"tool_calls": [CALL] * 128}, "tool_calls"))
    assert [event.index for event in events if isinstance(event, ToolCall)] == list(range(128))


@given(st.binary(max_size=200))
def test_whatever_bytes_come_they_are_events_or_a_providers_error(body: bytes) -> None:
    try:
        events = read(body)
    except ProviderError:
        return
    assert isinstance(events[-1], Done)
