"""Chat requests: what is read, what is refused by name, what is sent on."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.call import Ask, Claim
from carnet.core.messages.events import Message, Role
from carnet.core.people.identity import Secret
from carnet.errors import InvalidRequest
from carnet.wire.dialects.openai import DIALECT, read_ask, request_digest, write_request
from carnet.wire.dialects.openai.request import read_chat, read_later
from carnet.wire.grammar import json
from tests.wire.dialects.scene import arrival

HELLO = [{"role": "user", "content": "hello"}]

OPTIONAL = ("model", "stream", "stream_options", "max_tokens", "max_completion_tokens", "n")

SMALLEST: dict[str, Any] = {"messages": HELLO}

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no messages": ({}, "messages"),
    "messages null": ({"messages": None}, "messages"),
    "messages an object": ({"messages": {"role": "user"}}, "messages"),
    "messages empty": ({"messages": []}, "messages"),
    "messages too many": ({"messages": HELLO * 1025}, "messages"),
    "message a string": ({"messages": ["hello"]}, "messages[0]"),
    "role absent": ({"messages": [*HELLO, *HELLO, {"content": "x"}]}, "messages[2].role"),
    "role unknown": ({"messages": [{"role": "root", "content": "x"}]}, "messages[0].role"),
    "role in capitals": ({"messages": [{"role": "User", "content": "x"}]}, "messages[0].role"),
    "role a list": ({"messages": [{"role": ["user"], "content": "x"}]}, "messages[0].role"),
    "content a number": ({"messages": [{"role": "user", "content": 7}]}, "messages[0].content"),
    "part a string": (
        {"messages": [{"role": "user", "content": ["x"]}]},
        "messages[0].content[0]",
    ),
    "part without a type": (
        {"messages": [{"role": "user", "content": [{"text": "x"}]}]},
        "messages[0].content[0].type",
    ),
    "text part without text": (
        {"messages": [*HELLO, {"role": "user", "content": [{"type": "x"}, {"type": "text"}]}]},
        "messages[1].content[1].text",
    ),
    "name a number": (
        {"messages": [{"role": "user", "content": "x", "name": 1}]},
        "messages[0].name",
    ),
    "model a number": ({**SMALLEST, "model": 4}, "model"),
    "model empty": ({**SMALLEST, "model": ""}, "model"),
    "model too long": ({**SMALLEST, "model": "m" * 257}, "model"),
    "model with a space": ({**SMALLEST, "model": "a b"}, "model"),
    "model with a line break": ({**SMALLEST, "model": "echo\n"}, "model"),
    "model beyond ASCII": ({**SMALLEST, "model": "échо"}, "model"),
    "stream a word": ({**SMALLEST, "stream": "true"}, "stream"),
    "stream a number": ({**SMALLEST, "stream": 1}, "stream"),
    "stream_options a list": ({**SMALLEST, "stream_options": []}, "stream_options"),
    "include_usage a word": (
        {**SMALLEST, "stream_options": {"include_usage": "yes"}},
        "stream_options.include_usage",
    ),
    "max_tokens zero": ({**SMALLEST, "max_tokens": 0}, "max_tokens"),
    "max_tokens true": ({**SMALLEST, "max_tokens": True}, "max_tokens"),
    "max_tokens a float": ({**SMALLEST, "max_tokens": 2.0}, "max_tokens"),
    "max_completion_tokens negative": (
        {**SMALLEST, "max_completion_tokens": -1},
        "max_completion_tokens",
    ),
    "n two": ({**SMALLEST, "n": 2}, "n"),
    "n zero": ({**SMALLEST, "n": 0}, "n"),
    "n true": ({**SMALLEST, "n": True}, "n"),
    "n a float": ({**SMALLEST, "n": 1.0}, "n"),
    "carnet no object": ({**SMALLEST, "carnet": "add"}, "carnet"),
    "carnet with more": ({**SMALLEST, "carnet": {"skill": "add", "more": 1}}, "carnet"),
    "skill missing": ({**SMALLEST, "carnet": {}}, "carnet.skill"),
    "skill empty": ({**SMALLEST, "carnet": {"skill": ""}}, "carnet.skill"),
    "skill with a NUL": ({**SMALLEST, "carnet": {"skill": "a\0"}}, "carnet.skill"),
    "skill of two lines": ({**SMALLEST, "carnet": {"skill": "a\nb"}}, "carnet.skill"),
    "skill too long": ({**SMALLEST, "carnet": {"skill": "x" * 65}}, "carnet.skill"),
    "payload no object": (
        {**SMALLEST, "carnet": {"skill": "add", "payload": [1]}},
        "carnet.payload",
    ),
}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
near_messages = st.fixed_dictionaries(
    {},
    optional={
        "role": st.sampled_from(["user", "tool"]) | json_values,
        "content": st.lists(
            st.fixed_dictionaries({}, optional={"type": st.just("text") | json_values})
            | st.fixed_dictionaries({"type": st.just("text"), "text": json_values})
            | json_values,
            max_size=3,
        )
        | json_values,
        "name": json_values,
    },
)
bodies = st.fixed_dictionaries(
    {"messages": st.lists(near_messages | json_values, max_size=3) | json_values},
    optional=dict.fromkeys(OPTIONAL, json_values),
)
roles = st.sampled_from(["system", "developer", "user", "assistant", "tool"])


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_field_is_refused_by_its_place(case: str) -> None:
    body, place = REFUSED[case]
    with pytest.raises(InvalidRequest) as refused:
        read_ask(body)
    assert refused.value.facts["field"] == place


def test_a_refusal_does_not_repeat_what_was_sent() -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_ask({"messages": [{"role": "sk-secret", "content": "x"}]})
    assert "sk-secret" not in str(refused.value)


def test_the_smallest_request_has_defaults_and_no_model() -> None:
    model, ask = read_ask(SMALLEST)
    assert model is None
    assert ask == Ask(messages=(Message("user", ("hello",)),), body=SMALLEST)
    assert (ask.stream, ask.include_usage, ask.max_tokens) == (False, False, None)


def test_every_field_we_act_on_is_read() -> None:
    body: dict[str, Any] = {
        "model": "@critic@globex.example",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "developer", "content": "In English."},
            {"role": "user", "content": "Is it true?", "name": "ada"},
            {"role": "assistant", "content": None, "tool_calls": []},
            {"role": "tool", "content": "yes", "tool_call_id": "c1"},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 10,
        "n": 1,
    }
    model, ask = read_ask(body)
    assert model == "@critic@globex.example"
    assert ask.messages == (
        Message("system", ("Be brief.",)),
        Message("developer", ("In English.",)),
        Message("user", ("Is it true?",), "ada"),
        Message("assistant", ()),
        Message("tool", ("yes",), tool_call_id="c1"),
    )
    assert ask.text == "Is it true?"
    assert (ask.stream, ask.include_usage, ask.max_tokens) == (True, True, 10)


def test_null_is_absent() -> None:
    body: dict[str, Any] = {**SMALLEST, **dict.fromkeys(OPTIONAL)}
    assert read_ask(body) == (None, Ask(messages=(Message("user", ("hello",)),), body=body))
    _, ask = read_ask({**SMALLEST, "stream_options": {"include_usage": None}})
    assert ask.include_usage is False


def test_the_newer_name_of_the_token_limit_wins() -> None:
    _, ask = read_ask({**SMALLEST, "max_tokens": 5, "max_completion_tokens": 7})
    assert ask.max_tokens == 7
    assert read_ask({**SMALLEST, "max_completion_tokens": 1})[1].max_tokens == 1


def test_text_parts_are_joined_by_lines_and_other_parts_stay_in_the_body() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    parts = [{"type": "text", "text": "What is"}, image, {"type": "text", "text": "this?"}]
    body: dict[str, Any] = {"messages": [{"role": "user", "content": parts}]}
    _, ask = read_ask(body)
    assert ask.text == "What is\nthis?"
    assert ask.body is not None
    assert ask.body["messages"][0]["content"][1] == image


def test_as_many_messages_as_allowed_and_the_longest_model_are_read() -> None:
    model, ask = read_ask({"messages": HELLO * 1024, "model": "~" * 256})
    assert len(ask.messages) == 1024
    assert model == "~" * 256


@given(st.dictionaries(st.text(), json_values, max_size=5))
def test_keys_that_we_do_not_know_are_kept(unknown: dict[str, Any]) -> None:
    body = {f"x_{key}": value for key, value in unknown.items()} | SMALLEST
    assert read_ask(body)[1].body == body


@given(bodies)
def test_whatever_is_sent_it_is_read_or_refused_as_an_invalid_request(body: dict[str, Any]) -> None:
    try:
        _, ask = read_ask(body)
    except InvalidRequest:
        return
    assert len(ask.messages) == len(body["messages"])


# ------------------------------------------------------------------ digest


def test_the_digest_is_of_the_value_and_not_of_its_spelling() -> None:
    one = json.read_object(b'{"model":"echo","messages":[{"role":"user","content":"\\u0041"}]}')
    two = json.read_object(b'{ "messages":[{"content":"A","role":"user"}], "model":"echo" }')
    assert digest(one) == digest(two)
    assert len(digest(one)) == 32


def test_the_digest_is_the_same_in_every_version() -> None:
    # Stored turns are compared with it: another value here would make every repeat a mismatch.
    assert digest(SMALLEST).hex() == (
        "483bc0874de4e0b6c4dabdc4b00615b51084f2739adbb96f6d8d071c503778e3"
    )


@pytest.mark.parametrize("change", [{"model": "x"}, {"temperature": 1}, {"user": None}])
def test_any_other_request_has_another_digest(change: dict[str, Any]) -> None:
    assert digest(SMALLEST | change) != digest(SMALLEST)


@pytest.mark.parametrize("form", [{"stream": True}, {"stream_options": {"include_usage": True}}])
def test_the_form_of_the_answer_is_no_part_of_the_digest(form: dict[str, Any]) -> None:
    assert digest(SMALLEST | form) == digest(SMALLEST)


def digest(body: dict[str, Any]) -> bytes:
    return request_digest(body, json.canonical(body))


# ------------------------------------------------------------------ sending


def sent(ask: Ask, *, stream: bool) -> dict[str, Any]:
    return json.read_object(write_request(ask, model="upstream", stream=stream))


def test_a_request_of_this_dialect_is_sent_on_with_our_model_and_the_usage_asked_for() -> None:
    body: dict[str, Any] = {
        **SMALLEST,
        "model": "echo",
        "temperature": 0.5,
        "stream": False,
        "stream_options": {"include_usage": False, "include_obfuscation": False},
    }
    _, ask = read_ask(body)
    assert sent(ask, stream=True) == {
        "model": "upstream",
        "messages": HELLO,
        "temperature": 0.5,
        "stream": True,
        "stream_options": {"include_usage": True, "include_obfuscation": False},
    }


def test_stream_options_are_not_sent_with_a_request_that_does_not_stream() -> None:
    _, ask = read_ask({**SMALLEST, "stream": True, "stream_options": {"include_usage": True}})
    assert sent(ask, stream=False) == {"model": "upstream", "messages": HELLO, "stream": False}


def test_sending_leaves_the_request_as_it_was() -> None:
    body: dict[str, Any] = {**SMALLEST, "stream_options": {"include_usage": False}}
    _, ask = read_ask(body)
    write_request(ask, model="upstream", stream=True)
    assert body == {**SMALLEST, "stream_options": {"include_usage": False}}


def test_a_request_of_another_dialect_is_made_of_its_messages() -> None:
    ask = Ask(messages=(Message("system", ("s",)), Message("user", ("u",), "ada")), max_tokens=9)
    assert sent(ask, stream=True) == {
        "model": "upstream",
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": "u", "name": "ada"},
        ],
        "max_tokens": 9,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_no_token_limit_is_invented() -> None:
    assert "max_tokens" not in sent(Ask(messages=(Message("user", ("u",)),)), stream=False)


@given(
    messages=st.lists(st.tuples(roles, st.text(), st.none() | st.text()), min_size=1, max_size=4),
    max_tokens=st.none() | st.integers(1, 2**40),
    stream=st.booleans(),
)
def test_what_is_sent_is_read_as_what_was_asked(
    messages: list[tuple[Role, str, str | None]], max_tokens: int | None, *, stream: bool
) -> None:
    chat = tuple([Message(role, (text,), name) for role, text, name in messages])
    ask = Ask(messages=chat, max_tokens=max_tokens)
    model, read = read_ask(json.read_object(write_request(ask, model="m", stream=stream)))
    assert model == "m"
    assert read.messages == ask.messages
    assert (read.max_tokens, read.stream, read.include_usage) == (max_tokens, stream, stream)


@pytest.mark.parametrize("given", [{}, {"payload": None}, {"payload": {}}])
def test_a_skill_without_a_payload_is_given_an_empty_one(given: dict[str, Any]) -> None:
    _, ask = read_ask({**SMALLEST, "carnet": {"skill": "add", **given}})
    assert (ask.skill, ask.payload) == ("add", {})


def test_what_is_asked_for_by_name_is_read_and_not_sent_on() -> None:
    wanted = {"skill": "x" * 64, "payload": {"a": [1]}}
    _, ask = read_ask({**SMALLEST, "carnet": wanted})
    assert {"skill": ask.skill, "payload": ask.payload} == wanted
    assert "carnet" not in json.read_object(write_request(ask, model="m", stream=False))
    assert read_ask({**SMALLEST, "carnet": None})[1].skill is None


def test_a_skill_that_was_asked_for_without_words_is_passed_on_with_a_message() -> None:
    ask = Ask(messages=(), skill="book", payload={"seats": 4})
    sent = json.read_object(write_request(ask, model="m", stream=False, with_skill=True))
    assert sent["carnet"] == {"skill": "book", "payload": {"seats": 4}}
    assert sent["messages"] == [{"role": "user", "content": '{"seats":4}'}]


# ------------------------------------------------------------------ the whole request


def later(**members: object) -> Claim:
    return read_later(arrival(DIALECT, "task", body=json.write({**SMALLEST, **members})))


def test_a_chat_is_claimed_with_what_its_headers_say() -> None:
    body = json.write({**SMALLEST, "model": "echo"})
    fields = {
        "authorization": "Bearer ck_alice",
        "x-tangle-runid": "conv_1",
        "traceparent": f"00-{'a' * 32}-{'b' * 16}-01",
    }
    found = read_chat(arrival(DIALECT, "chat", body=body, fields=fields))
    assert (found.dialect, found.agent, found.ask.text) == ("openai", "echo", "hello")
    assert found.authorization == Secret("Bearer ck_alice")
    assert [mark.run for mark in found.marks] == ["conv_1"]
    assert found.trace is not None
    assert found.trace.trace_id == "a" * 32
    assert (found.is_task, found.proof) == (False, None)


def test_the_agent_of_a_chat_is_the_one_of_the_path_then_the_model_then_the_default_one() -> None:
    named, bare = json.write({**SMALLEST, "model": "echo"}), json.write(SMALLEST)
    for body, path, agent in (
        *((named, "critic", "critic"), (named, None, "echo"), (bare, None, "")),
        (named, "", ""),
    ):
        found = read_chat(arrival(DIALECT, "chat", body=body, agent=path))
        assert (found.agent, found.authorization) == (agent, None)


def test_a_task_is_another_call_than_the_same_chat_and_its_callback_is_no_part_of_it() -> None:
    chat = read_chat(arrival(DIALECT, "chat", body=json.write(SMALLEST)))
    silent, notified = later(), later(callback="https://receiver.example/x")
    assert (notified.is_task, notified.callback, silent.callback) == (
        *(True, "https://receiver.example/x", None),
    )
    assert silent.digest == notified.digest != chat.digest
    assert silent.request == notified.request == chat.request


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"callback": 7}, "callback"),
        ({"callback": "https://x.example/a b"}, "callback"),
        ({"callback": "x" * 2049}, "callback"),
        ({"stream": True}, "stream"),
        ({"callback_url": "https://x.example"}, "callback_url"),
        ({"Webhook-URL": "https://x.example"}, "Webhook-URL"),
        ({"payload": {}}, "payload"),
        ({"traceId": "x"}, "traceId"),
    ],
)
def test_a_task_is_refused_by_the_member_that_would_do_nothing(
    members: dict[str, object], field: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        later(**members)
    assert caught.value.public_facts() == {"field": field}


def test_a_task_keeps_members_that_some_model_may_know() -> None:
    members = {"temperature": 0, "skill-of-the-provider-x": 1}
    assert (later(**members).ask.body or {}).items() >= members.items()
