"""The `[engine]` section: the agent loop, where it is served, and the model that it asks.

And the `[tools.NAME]` sections: what that model may use, for whom, and who must say yes before.
"""

import re
import tomllib
from typing import Annotated, Any, Final, Literal

from msgspec import Struct

from carnet.config import readers as read
from carnet.config.readers import SecretRef, ValueReader, Wrong
from carnet.core.people.permissions import is_permission

IN_PROCESS = "inprocess"
TOOL_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)  # as models' interfaces have it
WAYS: Final = ("target", "command", "mcp", "mcp_url", "agent")  # a tool has one of them
FIND_TOOLS: Final = "find_tools"  # what the loop itself calls one
_SERVERS: Final = ("mcp", "mcp_url")
OF_WAYS: Final = {  # keys that only some of them have
    "description": ("command", "agent"),
    "parameters": ("command",),
    "folder": ("command", "mcp"),
    "environment": ("command", "mcp"),
    "token": ("mcp_url",),
    "only": _SERVERS,
    "trust_annotations": _SERVERS,
}
PARAMETER_TYPES: Final = ("string", "integer", "number", "boolean")
# Members that say how a model answers, and nothing of where, by whom or on whose account.
DEFAULT_MEMBERS: Final = (
    *("frequency_penalty", "function_call", "functions", "logit_bias", "logprobs"),
    *("max_completion_tokens", "max_tokens", "min_p", "n", "parallel_tool_calls"),
    *("presence_penalty", "reasoning_effort", "repetition_penalty", "response_format", "seed"),
    *("stop", "temperature", "tool_choice", "tools", "top_k", "top_logprobs", "top_p"),
    "verbosity",
)


_ADDRESS: Final = re.compile(r"http://(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\]):[0-9]{1,5}", re.ASCII)


def _listening() -> ValueReader:
    """Where to listen: http://HOST:PORT, or nowhere."""

    def check(value: str) -> str:
        if value != IN_PROCESS and not _ADDRESS.fullmatch(value):
            raise ValueError
        return value

    return read.text_reader(f'an address such as "http://127.0.0.1:8701", or {IN_PROCESS}', check)


def tool_names() -> ValueReader:
    """Names of `[tools]`, and functions as `module:function`."""

    def check(value: str) -> str:
        if not (read.TARGET if ":" in value else TOOL_NAME).fullmatch(value):
            raise ValueError
        return value

    return read.many('names of [tools], or functions such as "tools:read_page"', check)


class EngineSettings(Struct, frozen=True, kw_only=True):
    """The `[engine]` section."""

    listen: Annotated[
        str,
        _listening(),
        "Where 'carnet engine' listens, such as http://127.0.0.1:8701; inprocess for nowhere.",
    ] = IN_PROCESS
    url: Annotated[str | None, read.url(), "The model's provider, such as .../v1."] = None
    model: Annotated[str | None, read.text(), "The model to ask for there."] = None
    api_key: Annotated[SecretRef | None, read.secret(), "How we authenticate to it."] = None
    timeout: Annotated[float, read.seconds(), "Seconds that one answer of it may take."] = 600.0
    retries: Annotated[
        int, read.whole(0, 3), "How many further requests one answer of it may need."
    ] = 2
    tools: Annotated[
        tuple[str, ...],
        tool_names(),
        "What the model may use: names of [tools]; module:function is a function by itself.",
    ] = ()
    ask_before: Annotated[
        tuple[str, ...],
        read.members(),
        'The tools that somebody must approve before each use; ["*"] is all of them.',
    ] = ()
    max_iterations: Annotated[
        int | None,
        read.whole(1),
        "How often the model is asked in one answer; by default until it has ended.",
    ] = None
    max_tokens: Annotated[
        int | None,
        read.whole(1, 2**53 - 1),
        "Tokens, in and out, after which an answer ends; by default no bound.",
    ] = None


def _program() -> ValueReader:
    """A program and its arguments, each by itself: there is no shell."""
    listed = read.many('a program and its arguments, such as ["git", "log"]', _without_zero)

    def given(value: tuple[str, ...]) -> tuple[str, ...]:
        if not value or not value[0].strip():
            raise Wrong(f"should be {listed.expects}, but names no program")
        return value

    return ValueReader(
        listed.expects,
        lambda value: given(listed.read(value)),
        lambda value: given(listed.read_text(value)),
    )


def _without_zero(value: str) -> str:
    if "\0" in value:
        raise ValueError
    return value


def _variables() -> ValueReader:
    def check(value: str) -> str:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value, re.ASCII):
            raise ValueError
        return value

    return read.many('names of environment variables, such as "LANG"', check)


def _words(expects: str) -> ValueReader:
    def check(value: str) -> str:
        if not value.strip():
            raise ValueError
        return value

    return read.many(expects, check)


def _permission() -> ValueReader:
    def check(value: str) -> str:
        if not is_permission(value):
            raise ValueError
        return value

    return read.text_reader('a permission that can be granted, such as "tool:read_page"', check)


def _parameters() -> ValueReader:
    """What a tool takes: a JSON Schema of an object, or the types of its parameters by name."""
    expects = 'types by name, such as { count = "integer" }, or a JSON Schema of an object'

    def check(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise Wrong(f"should be {expects}")
        if value.get("type") == "object":
            return value
        wrong = [name for name, kind in value.items() if kind not in PARAMETER_TYPES]
        if wrong or not all(name.isidentifier() for name in value):
            raise Wrong(f"should be {expects}; the types are {', '.join(PARAMETER_TYPES)}")
        return {
            "type": "object",
            "properties": {name: {"type": kind} for name, kind in value.items()},
            "required": list(value),
            "additionalProperties": False,
        }

    def read_text(value: str) -> dict[str, Any]:
        try:
            return check(tomllib.loads(f"value = {value}")["value"])
        except tomllib.TOMLDecodeError:
            raise Wrong(f"should be {expects}") from None

    return ValueReader(expects, check, read_text)


class ToolSettings(Struct, frozen=True, kw_only=True):
    """One `[tools.NAME]` section: a tool, or a server that has several."""

    target: Annotated[
        str | None, read.target(), "A function: module:function, found beside carnet.toml."
    ] = None
    command: Annotated[
        tuple[str, ...],
        _program(),
        "A program and its arguments, with {name} where a parameter stands; never a shell.",
    ] = ()
    mcp: Annotated[
        tuple[str, ...],
        _program(),
        "A program that is an MCP server on its standard streams; its tools are NAME_tool.",
    ] = ()
    mcp_url: Annotated[
        str | None, read.url(), "An MCP server over streamable HTTP; its tools are NAME_tool."
    ] = None
    agent: Annotated[
        str | None, read.text(), "An agent by its address; not yet: it is refused at start."
    ] = None
    description: Annotated[
        str | None, read.text(), "command, agent: what models are told that it does; needed there."
    ] = None
    parameters: Annotated[
        dict[str, Any] | None,
        _parameters(),
        'command: what it takes, as { count = "integer" } or a JSON Schema; by default texts.',
    ] = None
    folder: Annotated[
        str | None,
        read.text(),
        "command, mcp: where it runs, beside carnet.toml; by default that folder.",
    ] = None
    environment: Annotated[
        tuple[str, ...],
        _variables(),
        "command, mcp: variables of ours that it is given; by default PATH, HOME and the like.",
    ] = ()
    token: Annotated[SecretRef | None, read.secret(), "mcp_url: the bearer token that we send."] = (
        None
    )
    only: Annotated[
        tuple[str, ...],
        _words('names of its tools, such as "read_file"'),
        "mcp, mcp_url: which of its tools there are; by default all of them.",
    ] = ()
    permission: Annotated[
        str | None, _permission(), "What who acts must be allowed; by default tool:NAME."
    ] = None
    approval: Annotated[
        Literal["never", "always", "write"],
        read.one_of("never", "always", "write"),
        "When somebody must approve a use: never, always, or where it changes something.",
    ] = "never"
    writes: Annotated[
        bool, read.truth(), 'Whether it changes something, for approval = "write".'
    ] = True
    trust_annotations: Annotated[
        bool,
        read.truth(),
        "mcp, mcp_url: whether its word is taken that a tool changes nothing (readOnlyHint).",
    ] = False
    timeout: Annotated[float, read.seconds(), "Seconds that one use may take."] = 30.0
    label: Annotated[
        str | None, read.text(), 'What people are shown of a use, such as "Reading {name}".'
    ] = None
    redact: Annotated[
        tuple[str, ...],
        _words('names of arguments, such as "password"'),
        "Arguments that are hidden in events, approvals and logs.",
    ] = ()
    always_send: Annotated[
        bool, read.truth(), "Whether models are always told of it; else they find it: find_tools."
    ] = True

    @property
    def way(self) -> str:
        """Which kind of tool it is; empty where its section does not say one."""
        found = [name for name in WAYS if getattr(self, name)]
        return found[0] if len(found) == 1 else ""
