"""The `[tools.NAME]` sections: what models may use, for whom, and who must say yes before."""

import re
import tomllib
from typing import Annotated, Any, Final, Literal

from msgspec import Struct

from carnet.config import readers as read
from carnet.config.readers import SecretRef, ValueReader, Wrong
from carnet.core.people.address import parse_handle
from carnet.core.people.permissions import is_permission
from carnet.errors import AddressInvalid

TOOL_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)  # as models' interfaces have it
WAYS: Final = ("target", "command", "mcp", "mcp_url", "agent")  # a tool has one of them
FIND_TOOLS: Final = "find_tools"  # what the loop itself calls one
PAST_SEARCH: Final = "search_conversations"
MEMORY_TOOLS: Final = ("read_file", "list_files", "search_files", "write_file")
# Words that stand for tools of ours, and the tools; named without a section. A section comes first.
TOOL_WORDS: Final = {
    "memory": MEMORY_TOOLS,
    "schedules": ("add_schedule", "list_schedules", "delete_schedule"),
    "hooks": ("add_hook", "list_hooks", "delete_hook"),
}
_OF_WORDS: Final = tuple(name for names in TOOL_WORDS.values() for name in names)
BUILT_IN: Final = (*TOOL_WORDS, *_OF_WORDS, PAST_SEARCH)
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
HERE: Final = (
    "holds '{value}' without a domain: write \"{value}@DOMAIN\"; "
    "that of agents here is [gateway] domain"
)
PARAMETER_TYPES: Final = ("string", "integer", "number", "boolean")


def tool_names() -> ValueReader:
    """Names of `[tools]` or of ours, functions as `module:function`, agents as `@name@domain`."""

    def check(value: str) -> str:
        if value.startswith("@"):
            try:
                return str(parse_handle(value))
            except AddressInvalid:
                if "@" not in value[1:]:
                    raise Wrong(HERE.format(value=value)) from None
                raise ValueError from None
        if not (read.TARGET if ":" in value else TOOL_NAME).fullmatch(value):
            raise ValueError
        return value

    expects = 'names of [tools], functions or agents, such as "tools:read_page" or "@x@b.example"'
    return read.many(expects, check)


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


def _address() -> ValueReader:
    def check(value: str) -> str:
        try:
            return str(parse_handle(value))
        except AddressInvalid:
            raise ValueError from None

    return read.text_reader("the address of an agent, such as @clerk@globex.example", check)


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
        str | None, _address(), "Another agent by its address, such as @clerk@globex.example."
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
    timeout: Annotated[
        float | None,
        read.seconds(),
        "Seconds that one use may take; by default 30, agent: as long as a call may.",
    ] = None
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
