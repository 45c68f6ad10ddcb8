"""The form for models without tool calling: its schema, and what they are shown."""

import json
from typing import Any

import jsonschema_rs

from carnet.core.messages.events import Link, Message, ToolCall
from carnet.core.messages.parameters import Tool
from carnet.engine.history import result_of
from carnet.engine.schema.form import form_of, shown

NAMED = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
READ = Tool("read_page", "Reads a page.", NAMED)
COUNT = Tool("count", "Counts.")
CALL = ToolCall("c1", "read_page", '{"name":"finances"}')


def fits(schema: dict[str, Any], value: object) -> bool:
    return jsonschema_rs.validator_for(schema).is_valid(value)


def texts(messages: tuple[Message, ...]) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in messages]


def test_an_answer_is_one_call_of_a_tool_that_is_offered_or_text() -> None:
    schema = form_of((READ, COUNT))
    assert fits(schema, {"tool": "read_page", "arguments": {"name": "a"}})
    assert fits(schema, {"tool": "count", "arguments": {}})
    assert fits(schema, {"answer": "It is 100."})
    for wrong in (
        {"tool": "other", "arguments": {}},
        {"tool": "read_page", "arguments": {}},
        {"tool": "read_page"},
        {"answer": 7},
        {"tool": "count", "arguments": {}, "answer": "both"},
        "text",
    ):
        assert not fits(schema, wrong), wrong


def test_where_a_tool_must_be_used_there_is_no_other_answer() -> None:
    schema = form_of((COUNT,), may_answer=False)
    assert fits(schema, {"tool": "count", "arguments": {}})
    assert not fits(schema, {"answer": "no"})


def test_an_answer_may_have_a_schema_of_its_own() -> None:
    schema = form_of((COUNT,), NAMED)
    assert fits(schema, {"answer": {"name": "a"}})
    assert not fits(schema, {"answer": "a"})


def test_a_schema_that_refers_to_its_parts_finds_them_within_the_form() -> None:
    tree = {
        "type": "object",
        "properties": {"root": {"$ref": "#/$defs/Node"}},
        "required": ["root"],
        "$defs": {
            "Node": {
                "type": "object",
                "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
                "required": ["kids"],
            }
        },
    }
    schema = form_of((COUNT, Tool("grow", "Grows.", tree)))
    root: dict[str, Any] = {"kids": [{"kids": []}]}
    assert fits(schema, {"tool": "grow", "arguments": {"root": root}})
    assert not fits(schema, {"tool": "grow", "arguments": {"root": {"kids": [1]}}})
    assert tree["properties"] == {"root": {"$ref": "#/$defs/Node"}}


def test_a_model_is_told_of_its_tools_after_what_it_is_instructed_with() -> None:
    system, *rest = shown((Message.system("Be brief."), Message.user("Hi")), (READ, COUNT))
    assert system.role == "system"
    assert system.text.startswith("Be brief.\n")
    assert '- read_page: Reads a page. Arguments: {"name":{"type":"string"}}' in system.text
    assert "- count: Counts. Arguments: {}" in system.text
    assert rest[-1] == Message.user("Hi")


def test_two_examples_of_a_tool_and_its_result_come_before_what_is_said() -> None:
    _, *rest = texts(shown((Message.user("Hi"),), (READ, COUNT)))
    assert [role for role, _ in rest] == ["user", "assistant"] * 4 + ["user"]
    answers = [json.loads(text) for role, text in rest if role == "assistant"]
    assert [[*answer] for answer in answers] == [["tool", "arguments"], ["answer"]] * 2
    tools = [Tool(answer["tool"]) for answer in answers if "tool" in answer]
    assert all(fits(form_of(tools), answer) for answer in answers)


def test_what_was_said_before_is_shown_in_the_form() -> None:
    messages = (
        Message.user("What is my goal?"),
        Message("assistant", ("",), tool_calls=(CALL,)),
        result_of(CALL, "Budget goal: 100"),
        Message.assistant("It is 100."),
        Message.user("And now?"),
    )
    assert texts(shown(messages, (READ,)))[-5:] == [
        ("user", "What is my goal?"),
        ("assistant", '{"tool":"read_page","arguments":{"name":"finances"}}'),
        ("user", "Result of read_page:\nBudget goal: 100"),
        ("assistant", '{"answer":"It is 100."}'),
        ("user", "And now?"),
    ]


def test_without_tools_calls_of_before_are_words_and_answers_are_plain() -> None:
    messages = (
        Message.user("What is my goal?"),
        Message("assistant", ("I look.",), tool_calls=(CALL,)),
        result_of(CALL, "100"),
        Message("tool", ("of nobody",), tool_call_id="c9"),
        Message.assistant("It is 100."),
    )
    assert texts(shown(messages)) == [
        ("user", "What is my goal?"),
        ("assistant", 'I look.\n{"tool":"read_page","arguments":{"name":"finances"}}'),
        ("user", "Result of read_page:\n100\nResult of a tool:\nof nobody"),
        ("assistant", "It is 100."),
    ]
    assert not any(each.tool_calls or each.tool_call_id for each in shown(messages))


def test_two_messages_of_one_side_are_one_with_all_their_parts() -> None:
    image = Link("https://x.example/a.png", media_type="image/*")
    messages = (result_of(CALL, "100"), Message.user("And this?", image))
    (only,) = shown(messages)
    assert only == Message.user("Result of a tool:\n100", "And this?", image)
