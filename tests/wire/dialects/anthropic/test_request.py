"""What a model is asked over Anthropic's messages."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from carnet.core.call import Ask
from carnet.core.messages.events import ECHO, DataPart, File, Link, Message, ToolCall
from carnet.errors import ModelRefused, SkillNotFound
from carnet.wire.dialects.anthropic.request import DEFAULT_TOKENS, write_request

HI = Message.user("Hi")
READ = {
    "type": "function",
    "function": {
        "name": "read",
        "description": "Reads.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
    },
}
BARE = {"type": "function", "function": {"name": "look"}}


def written(*messages: Message, **members: Any) -> dict[str, Any]:
    ask = Ask(messages=messages or (HI,), stream=True, body={"messages": [], **members})
    body = write_request(ask, model="claude-x", stream=True, with_skill=False)
    found: dict[str, Any] = json.loads(body)
    return found


def test_the_least_that_is_asked() -> None:
    ask = Ask(messages=(HI,))
    body = json.loads(write_request(ask, model="claude-x", stream=False, with_skill=False))
    assert body == {
        "model": "claude-x",
        "max_tokens": DEFAULT_TOKENS,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
    }
    assert written()["stream"] is True


def test_what_instructs_it_stands_at_the_top() -> None:
    body = written(Message.system("Be brief."), HI, Message("developer", ("Be kind.",)))
    assert body["system"] == "Be brief.\n\nBe kind."
    assert [turn["role"] for turn in body["messages"]] == ["user"]


def test_results_are_the_users_right_behind_the_calls_and_sides_take_turns() -> None:
    calls = (ToolCall("c1", "read", '{"path":"/a"}'), ToolCall("c2", "read", "no json"))
    body = written(
        HI,
        Message("assistant", ("I look.",), tool_calls=calls),
        Message("tool", ("one",), tool_call_id="c1"),
        Message("tool", ("",), tool_call_id="c2"),
        Message.user("And?"),
        Message.assistant("Well."),
        Message.assistant("Yes."),
    )
    assert body["messages"][1:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "/a"}},
                {"type": "tool_use", "id": "c2", "name": "read", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "one"},
                {"type": "tool_result", "tool_use_id": "c2", "content": ""},
                {"type": "text", "text": "And?"},
            ],
        },
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "Well."}, {"type": "text", "text": "Yes."}],
        },
    ]


def test_what_has_no_words_is_left_out() -> None:
    body = written(HI, Message.assistant(" \n"), Message("assistant", ("",)))
    assert len(body["messages"]) == 1


def test_an_answer_that_was_kept_is_sent_back_as_it_came_if_its_calls_are_the_same() -> None:
    blocks = [
        {"type": "thinking", "thinking": "Hm.", "signature": "x"},
        {"type": "tool_use", "id": "c1", "name": "read", "input": {}},
    ]
    kept = Message(
        "assistant", ("",), tool_calls=(ToolCall("c1", "read", "{}"),), metadata={ECHO: blocks}
    )
    assert written(HI, kept)["messages"][1]["content"] == blocks
    other = replace(kept, tool_calls=(ToolCall("c2", "read", "{}"),))
    (call,) = written(HI, other)["messages"][1]["content"]
    assert (call["type"], call["id"]) == ("tool_use", "c2")


def test_the_id_of_a_call_that_would_be_refused_has_another_one_in_both_places() -> None:
    body = written(
        HI,
        Message("assistant", ("",), tool_calls=(ToolCall("ä b", "read", "{}"),)),
        Message("tool", ("x",), tool_call_id="ä b"),
    )
    (use,), (result,) = body["messages"][1]["content"], body["messages"][2]["content"]
    assert use["id"] == result["tool_use_id"]
    assert use["id"].startswith("call_")
    assert use["id"].isascii()


def test_images_documents_and_values_have_blocks() -> None:
    parts = (
        "See:",
        Link("https://a.example/x.png", media_type="image/png"),
        Link("data:image/png;base64,AAAA", media_type="image/png"),
        File("BBBB", media_type="application/pdf"),
        File("data:image/gif;base64,CCCC"),
        DataPart({"a": 1}),
    )
    (turn,) = written(Message("user", parts))["messages"]
    inline = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    assert turn["content"] == [
        {"type": "text", "text": "See:"},
        {"type": "image", "source": {"type": "url", "url": "https://a.example/x.png"}},
        {"type": "image", "source": inline},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "BBBB"},
        },
        {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/gif", "data": "CCCC"},
        },
        {"type": "text", "text": '{"a":1}'},
    ]


def test_a_file_that_it_cannot_read_is_refused_before_anything_leaves() -> None:
    with pytest.raises(ModelRefused, match="audio/mp3"):
        written(Message("user", (File("AAAA", media_type="audio/mp3"),)))


def test_tools_have_their_schema_and_one_without_any_takes_nothing() -> None:
    body = written(tools=[READ, BARE])
    assert body["tools"] == [
        {
            "name": "read",
            "description": "Reads.",
            "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
        },
        {"name": "look", "input_schema": {"type": "object", "properties": {}}},
    ]
    assert "tool_choice" not in body


@pytest.mark.parametrize(
    ("members", "choice"),
    [
        ({"tool_choice": "auto"}, {"type": "auto"}),
        ({"tool_choice": "none"}, {"type": "none"}),
        ({"tool_choice": "required"}, {"type": "any"}),
        (
            {"tool_choice": {"type": "function", "function": {"name": "read"}}},
            {"type": "tool", "name": "read"},
        ),
        ({"parallel_tool_calls": False}, {"type": "auto", "disable_parallel_tool_use": True}),
        (
            {"tool_choice": "required", "parallel_tool_calls": False},
            {"type": "any", "disable_parallel_tool_use": True},
        ),
        ({"tool_choice": "none", "parallel_tool_calls": False}, {"type": "none"}),
        ({"tool_choice": "sometimes"}, None),
    ],
)
def test_which_tool_it_is_to_use_is_told_in_its_own_words(
    members: dict[str, Any], choice: dict[str, Any] | None
) -> None:
    assert written(tools=[READ], **members).get("tool_choice") == choice
    assert "tool_choice" not in written(**members)


def test_how_it_is_to_answer_is_told_in_its_own_words_and_the_rest_left_out() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    body = written(
        temperature=0.2,
        top_p=0.9,
        top_k=4,
        stop="END",
        max_tokens=7,
        max_completion_tokens=9,
        response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema}},
        seed=3,
        frequency_penalty=1,
        thinking={"type": "disabled"},
        n=1,
    )
    del body["messages"]
    assert body == {
        "model": "claude-x",
        "stream": True,
        "stop_sequences": ["END"],
        "max_tokens": 9,
        "output_config": {"format": {"type": "json_schema", "schema": schema}},
        "thinking": {"type": "disabled"},
    }
    assert written(stop=["A", "B"])["stop_sequences"] == ["A", "B"]
    assert "output_config" not in written(response_format={"type": "json_object"})


def test_a_model_has_no_skills() -> None:
    with pytest.raises(SkillNotFound):
        write_request(Ask(messages=(HI,)), model="x", stream=False, with_skill=True)
