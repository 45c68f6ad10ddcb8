"""What a chat is asked with beside its messages: the tools that are offered, and how to answer.

The names are those of OpenAI's interface, which every dialect here that has any borrows.

Law 1. A parameter that is known has its type, on its way in and on its way out; nothing is coerced.
       None is absent.
Law 2. What is wrong is told with the name and what it should be, never with the value: to a caller
       as InvalidRequest, to whoever wrote an agent as TypeError.
Law 3. What is not known is kept by itself (`extra_body`), for whichever model knows it.
"""

import difflib
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypedDict, cast, get_type_hints

import msgspec
from msgspec import Struct

from carnet.errors import InvalidRequest

EXTRA: Final = "extra_body"
TOOLS: Final = "tools"

Words = str | Sequence[str]
Chosen = str | Mapping[str, Any]


class Tool(Struct, frozen=True):
    """A function that the caller offers: an agent has it called by a `ToolCall` of its name."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}  # what it takes, as a JSON Schema
    definition: dict[str, Any] | None = None  # as it was offered, with all that it says

    @classmethod
    def of(cls, definition: Mapping[str, Any]) -> "Tool":
        """A tool as it was offered; one that is no function is named by its kind."""
        kind = definition.get("type", "")
        inner = definition.get(kind) if isinstance(kind, str) else None
        given = inner if isinstance(inner, Mapping) else {}
        words = [given.get(name) for name in ("name", "description")]
        schema = given.get("parameters")
        return cls(
            words[0] if isinstance(words[0], str) else str(kind),
            words[1] if isinstance(words[1], str) else "",
            schema if isinstance(schema, dict) else {},
            dict(definition),
        )

    def written(self) -> dict[str, Any]:
        """The tool as it is offered to others."""
        if self.definition is not None:
            return self.definition
        function: dict[str, Any] = {"name": self.name}
        if self.description:
            function["description"] = self.description
        if self.parameters:
            function["parameters"] = self.parameters
        return {"type": "function", "function": function}


class Parameters(TypedDict, total=False):
    """What a chat may be asked with, each by its name."""

    audio: Mapping[str, Any]
    frequency_penalty: float
    function_call: Chosen
    functions: Sequence[Mapping[str, Any]]
    logit_bias: Mapping[str, Any]
    logprobs: bool
    max_completion_tokens: int
    max_tokens: int
    metadata: Mapping[str, Any]
    min_p: float
    modalities: Sequence[str]
    parallel_tool_calls: bool
    prediction: Mapping[str, Any]
    presence_penalty: float
    prompt_cache_key: str
    reasoning_effort: str
    repetition_penalty: float
    response_format: Mapping[str, Any]
    safety_identifier: str
    seed: int
    service_tier: str
    stop: Words
    store: bool
    temperature: float
    tool_choice: Chosen
    tools: Sequence[Mapping[str, Any] | Tool]
    top_k: int
    top_logprobs: int
    top_p: float
    user: str
    verbosity: str
    web_search_options: Mapping[str, Any]
    extra_body: Mapping[str, Any]  # what only some model knows


_HINTS: Final[dict[str, Any]] = {
    **get_type_hints(Parameters),
    TOOLS: Sequence[Mapping[str, Any]],  # a `Tool` is written before it is judged
}
_WORDS: Final[dict[object, str]] = {
    float: "a number",
    int: "a whole number",
    bool: "true or false",
    str: "text",
    Mapping[str, Any]: "an object",
    Sequence[str]: "a list of texts",
    Sequence[Mapping[str, Any]]: "a list of objects",
    Words: "text or a list of texts",
    Chosen: "text or an object",
}
_COUNTS: Final = frozenset({"max_tokens", "max_completion_tokens"})  # of at least 1
# Members of a request that are no parameters: what is said, to whom, and how it is answered.
_OURS: Final = frozenset({"messages", "model", "n", "stream", "stream_options", "carnet"})
_ELSEWHERE: Final = {
    "messages": "give the messages first, without a name",
    "model": "the agent is chosen by visit.peer(...)",
    "n": "an agent gives one answer",
    "stream_options": "what was used is always counted",
    "carnet": "a skill is asked for with .skill(...)",
}


def read_parameters(body: Mapping[str, Any]) -> Parameters:
    """The parameters of a request; InvalidRequest for one that has another type."""
    found: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for name, value in body.items():
        if value is None or name in _OURS:
            continue
        if name == EXTRA or name not in _HINTS:
            extra[name] = value
            continue
        rule = _broken(name, value)
        if rule:
            raise InvalidRequest(name, rule)
        found[name] = value
    if extra:
        found[EXTRA] = extra
    return cast(Parameters, found)


def write_parameters(given: Mapping[str, Any]) -> dict[str, Any]:
    """The members of a request; TypeError, in words for whoever wrote the agent."""
    members: dict[str, Any] = {}
    for name, offered in given.items():
        if name not in _HINTS:
            raise TypeError(_unknown(name))
        if offered is None:
            continue
        value = _written(offered) if name == TOOLS else offered
        rule = _broken(name, value)
        if rule:
            raise TypeError(f"'{name}' {rule}")
        members[name] = value
    return {**_extra(members.pop(EXTRA, {})), **members}


def _written(tools: object) -> object:
    if isinstance(tools, str) or not isinstance(tools, Sequence):
        return tools
    return [tool.written() if isinstance(tool, Tool) else tool for tool in tools]


def _broken(name: str, value: object) -> str:
    """The rule that a value breaks; empty if it breaks none."""
    hint = _HINTS[name]
    rule = f"must be {_WORDS[hint]}"
    try:
        msgspec.convert(value, hint)
    except msgspec.ValidationError:
        return rule
    if name in _COUNTS and isinstance(value, int) and value < 1:
        return f"{rule} of at least 1"
    return "" if not isinstance(value, float) or math.isfinite(value) else rule


def _extra(given: Mapping[str, Any]) -> dict[str, Any]:
    for name in given:
        if name in _OURS:
            raise TypeError(f"'{EXTRA}' holds '{name}': {_ELSEWHERE.get(name, 'leave it out')}")
        if name in _HINTS and name != EXTRA:
            raise TypeError(f"'{EXTRA}' holds '{name}': give it by its own name")
    return dict(given)


def _unknown(name: str) -> str:
    if name in _ELSEWHERE:
        return f"'{name}' is no parameter: {_ELSEWHERE[name]}"
    near = difflib.get_close_matches(name, [*_HINTS], n=1)
    asked = f"did you mean '{near[0]}'?" if near else ""
    return f"'{name}' is no parameter: {asked or f'what only a model knows goes into {EXTRA}={{}}'}"
