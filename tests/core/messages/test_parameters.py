"""Parameters have their types both ways, and what is wrong with one says what it should be."""

from typing import Any

import pytest

from carnet.core.messages.parameters import Tool, read_parameters, write_parameters
from carnet.errors import InvalidRequest

GOOD: dict[str, Any] = {
    "temperature": 1,
    "top_p": 0.5,
    "max_tokens": 7,
    "logprobs": True,
    "user": "ann",
    "stop": ["a", "b"],
    "tool_choice": {"type": "function"},
    "response_format": {"type": "json_object"},
    "modalities": ["text"],
    "tools": [{"type": "function", "function": {"name": "f"}}],
}
BAD: dict[str, tuple[Any, str]] = {
    "temperature": ("hot", "must be a number"),
    "top_p": (True, "must be a number"),
    "max_tokens": (0, "must be a whole number of at least 1"),
    "seed": (1.5, "must be a whole number"),
    "logprobs": ("yes", "must be true or false"),
    "user": (3, "must be text"),
    "stop": ([1], "must be text or a list of texts"),
    "tool_choice": (3, "must be text or an object"),
    "response_format": ("json", "must be an object"),
    "modalities": ("text", "must be a list of texts"),
    "tools": (["f"], "must be a list of objects"),
    "presence_penalty": (float("nan"), "must be a number"),
}


def test_what_is_known_is_read_and_written_as_it_is() -> None:
    assert read_parameters(GOOD) == GOOD
    assert write_parameters(GOOD) == GOOD
    assert write_parameters({"stop": "x", "seed": None}) == {"stop": "x"}


def test_what_is_no_parameter_is_left_and_what_is_not_known_is_kept_by_itself() -> None:
    body = {"messages": [], "model": "x", "stream": True, "seed": None, "top_a": 1}
    assert read_parameters(body) == {"extra_body": {"top_a": 1}}
    assert write_parameters({"extra_body": {"top_a": 1}, "seed": 2}) == {"top_a": 1, "seed": 2}
    again = read_parameters({"extra_body": {"seed": 1}})
    assert write_parameters(again) == {"extra_body": {"seed": 1}}


@pytest.mark.parametrize("name", BAD)
def test_another_type_is_refused_with_the_name_and_the_rule(name: str) -> None:
    value, rule = BAD[name]
    with pytest.raises(TypeError, match=f"^'{name}' {rule}$"):
        write_parameters({name: value})
    with pytest.raises(InvalidRequest) as refused:
        read_parameters({name: value})
    assert refused.value.safe_text == f"The field '{name}' {rule}."


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"temprature": 1}, "did you mean 'temperature'?"),
        ({"zzz": 1}, "what only a model knows goes into extra_body={}"),
        ({"model": "x"}, "the agent is chosen by visit.peer"),
        ({"n": 2}, "an agent gives one answer"),
        ({"extra_body": {"stream": True}}, "'extra_body' holds 'stream': leave it out"),
        ({"extra_body": {"seed": 1}}, "'extra_body' holds 'seed': give it by its own name"),
    ],
)
def test_what_is_no_parameter_is_refused_with_what_was_meant(
    given: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError) as refused:
        write_parameters(given)
    assert message in str(refused.value)


def test_a_tool_is_written_as_it_was_offered() -> None:
    offered = {"type": "function", "function": {"name": "f", "strict": True}}
    tool = Tool.of(offered)
    assert (tool.name, tool.description, tool.parameters) == ("f", "", {})
    assert tool.written() == offered
    assert write_parameters({"tools": (tool,)}) == {"tools": [offered]}
    assert Tool.of({"type": "web_search"}).name == "web_search"
    assert Tool.of({"function": {}}).name == ""
    made = Tool("f", "Does it.", {"type": "object"})
    assert Tool.of(made.written()).parameters == {"type": "object"}
    assert Tool("g").written() == {"type": "function", "function": {"name": "g"}}
