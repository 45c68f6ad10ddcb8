"""From `[tools]` to what a loop may use: functions, programs, and servers that have several.

Law 1. Each kind of tool is a row of `BUILDERS`. What is wrong is refused at start, by its key.
Law 2. A server belongs to all loops of a gateway: it is started once, whichever agent needs it, and
       ended with the gateway.
"""

import importlib.util
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from difflib import get_close_matches
from functools import partial
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from carnet.assembly.agents.functions import load
from carnet.config import Settings, ToolSettings, resolve_secret
from carnet.config.tools import MEMORY_TOOLS, PAST_SEARCH, TOOL_WORDS
from carnet.core.messages.parameters import Tool
from carnet.engine.tools.memory import memory_tool
from carnet.engine.tools.past import PAST_TOOL
from carnet.engine.tools.triggers import TRIGGER_TOOLS
from carnet.errors import ConfigInvalid
from carnet.ports.engine.tools import DEFAULT_SECONDS, LoopTool, ToolSource, ToolUse
from carnet.ports.world.http_client import HttpClient
from carnet.runtime.tools.agent import SECONDS, AgentTool
from carnet.runtime.tools.command import CommandTool, Template, schema_of
from carnet.runtime.tools.function import FunctionTool
from carnet.runtime.tools.mcp import McpServer, ServerSession
from carnet.runtime.tools.process import Launch, environment_of, find_program
from carnet.wire.dialects.openai.members import EVERY


class ToolServers(Struct, frozen=True, eq=False):
    """The servers of a gateway, each by the name of its section."""

    by_name: dict[str, McpServer] = field(default_factory=dict)

    async def close(self) -> None:
        """End them."""
        for server in self.by_name.values():
            await server.close()


class ToolParts(Struct, frozen=True, kw_only=True, eq=False):
    """What tools are built from."""

    settings: Settings
    http: HttpClient
    servers: ToolServers
    ask_before: frozenset[str]


class LoopTools(Struct, frozen=True, eq=False):
    """What one loop may use."""

    tools: tuple[LoopTool, ...]
    sources: tuple[ToolSource, ...]


Builder = Callable[[ToolParts, str, ToolSettings], LoopTool | ToolSource]


class NamedTools(Struct, frozen=True):
    """The tools that an agent names, and where."""

    names: Sequence[str]
    key: str


def build_tools(
    settings: Settings, http: HttpClient, servers: ToolServers, named: NamedTools | None = None
) -> LoopTools:
    """The tools that are named, or those of `[engine]`; each is used by who may."""
    ask_before = frozenset(settings.engine.ask_before)
    parts = ToolParts(settings=settings, http=http, servers=servers, ask_before=ask_before)
    given = named or NamedTools(settings.engine.tools, "engine.tools")
    wanted, key = _spelled(settings, given.names), given.key
    built = [_built(parts, name, key) for name in wanted]
    tools = tuple([each for each in built if isinstance(each, LoopTool)])
    names = [tool.definition.name for tool in tools]
    if len(set(names)) < len(names) or len(set(wanted)) < len(wanted):
        raise ConfigInvalid(key=key, reason="names two tools alike; a model tells them by name")
    _check_asked(parts, names)
    return LoopTools(tools, tuple([each for each in built if not isinstance(each, LoopTool)]))


def _spelled(settings: Settings, names: Sequence[str]) -> list[str]:
    """The names that are asked for; `memory`, `schedules` and `hooks` stand for all of theirs."""
    ours = {name: tools for name, tools in TOOL_WORDS.items() if name not in settings.tools}
    return [each for name in names for each in ours.get(name, (name,))]


def _check_asked(parts: ToolParts, names: Collection[str]) -> None:
    """Refuse names of tools that no loop has; those of servers are known by them alone.

    `names` are the tools of one loop. What it has not, another one may have.
    """
    tools = parts.settings.tools
    servers = tuple(f"{name}_" for name, tool in tools.items() if "mcp" in tool.way)
    asked = parts.ask_before - {*names, *tools, EVERY}
    unknown = {name for name in asked if not (servers and name.startswith(servers))}
    known = {*names, *tools, *_names_elsewhere(parts)} if unknown else set()
    if unknown - known:
        reason = f"names no tool: {', '.join(_with_nearest(sorted(unknown - known), known))}"
        raise ConfigInvalid(key="engine.ask_before", reason=reason)


def _names_elsewhere(parts: ToolParts) -> Iterator[str]:
    """The names of the tools of all loops, as models are told them."""
    settings = parts.settings
    named = {f"agents.{name}.tools": agent.tools for name, agent in settings.agents.items()}
    for key, names in {"engine.tools": settings.engine.tools, **named}.items():
        for name in _spelled(settings, names or ()):
            if name.startswith("@"):
                yield AgentTool(name).definition.name
            else:
                is_bare = ":" in name
                yield _function(parts, name, key)["definition"].name if is_bare else name


def _with_nearest(unknown: Sequence[str], known: Collection[str]) -> Iterator[str]:
    """Each name with the one that was meant, where one is near."""
    for name in unknown:
        near = get_close_matches(name, known, n=1)
        yield f"{name} (did you mean '{near[0]}'?)" if near else name


def _built(parts: ToolParts, name: str, key: str) -> LoopTool | ToolSource:
    if name.startswith("@"):
        return _agent(parts, AgentTool(name))
    if ":" in name:
        return _asked(parts, LoopTool(**_function(parts, name, key)))
    tool = parts.settings.tools.get(name)
    if tool is None and (own := _own(parts, name)) is not None:
        return _asked(parts, own)
    if tool is None:  # read again: what names it needs a restart, and it does not
        raise ConfigInvalid(key=key, reason=f"'{name}' is none of [tools] any more")
    return BUILDERS[tool.way](parts, name, tool)


def _own(parts: ToolParts, name: str) -> LoopTool | None:
    """A tool of ours, which has no section."""
    if name in MEMORY_TOOLS:
        return memory_tool(name, parts.settings.engine.memory_approval)
    return PAST_TOOL if name == PAST_SEARCH else TRIGGER_TOOLS.get(name)


def _asked(parts: ToolParts, tool: LoopTool) -> LoopTool:
    """The same with its permission, and an approval where `ask_before` wants one."""
    name = tool.definition.name
    is_asked = bool({name, EVERY} & parts.ask_before)
    return replace(
        tool,
        permission=tool.permission or f"tool:{name}",
        approval="always" if is_asked else tool.approval,
    )


def _ruled(parts: ToolParts, tool: ToolSettings, **more: Any) -> LoopTool:
    """A tool with the rules of its section."""
    return _asked(
        parts,
        LoopTool(
            permission=tool.permission,
            approval=tool.approval,
            writes=tool.writes,
            seconds=tool.timeout or (SECONDS if tool.agent else DEFAULT_SECONDS),
            label=tool.label or "",
            hidden=frozenset(tool.redact),
            is_always_sent=tool.always_send,
            **more,
        ),
    )


# ------------------------------------------------------------------ functions and programs


def _function(parts: ToolParts, target: str, key: str) -> dict[str, Any]:
    found = load(target, parts.settings.base, key=key)
    if not callable(found):
        raise ConfigInvalid(key=key, reason=f"{found!r} is not a function")
    try:
        function = FunctionTool(found)
    except TypeError as error:
        raise ConfigInvalid(key=key, reason=str(error)) from None
    return {"definition": function.definition, "use": function}


def _of_function(parts: ToolParts, name: str, tool: ToolSettings) -> LoopTool:
    found = _function(parts, tool.target or "", f"tools.{name}.target")
    found["definition"] = replace(found["definition"], name=name)
    return _ruled(parts, tool, **found)


def _of_command(parts: ToolParts, name: str, tool: ToolSettings) -> LoopTool:
    key = f"tools.{name}.command"
    try:
        template = Template(tool.command)
    except ValueError as error:
        raise ConfigInvalid(key=key, reason=str(error)) from None
    schema = schema_of(template, tool.parameters, key=f"tools.{name}.parameters")
    launch = _launch(parts, tool, tool.command[:1], key)
    try:
        use = CommandTool(launch, template, schema)
    except ConfigInvalid as error:
        reason = str(error.facts["reason"])
        raise ConfigInvalid(key=f"tools.{name}.parameters", reason=reason) from None
    definition = Tool(name, tool.description or "", schema)
    return _ruled(parts, tool, definition=definition, use=use)


def _launch(parts: ToolParts, tool: ToolSettings, program: tuple[str, ...], key: str) -> Launch:
    base = parts.settings.base
    folder = base if tool.folder is None else base / tool.folder
    environment = environment_of(os.environ, tool.environment)
    found = find_program(program[0], base, environment)
    if found is None:
        reason = f"there is no program '{program[0]}'; install it, or write where it is"
        raise ConfigInvalid(key=key, reason=reason)
    if not folder.is_dir():
        raise ConfigInvalid(key=key, reason=f"there is no folder {folder} to run it in")
    return Launch(program=(found, *program[1:]), folder=folder, environment=environment)


# ------------------------------------------------------------------ servers


def _of_process(parts: ToolParts, name: str, tool: ToolSettings) -> ToolSource:
    def connect(launch: Launch) -> AbstractAsyncContextManager[ServerSession]:
        from carnet.runtime.tools.mcp_client import connect_process  # noqa: PLC0415  an extra

        return connect_process(launch)

    launch = _launch(parts, tool, tool.mcp, f"tools.{name}.mcp")
    return _server(parts, name, tool, partial(connect, launch))


def _of_url(parts: ToolParts, name: str, tool: ToolSettings) -> ToolSource:
    key = f"tools.{name}.token"
    token = None if tool.token is None else resolve_secret(tool.token, parts.settings.base, key=key)

    def connect(url: str) -> AbstractAsyncContextManager[ServerSession]:
        from carnet.runtime.tools.mcp_client import connect_url  # noqa: PLC0415  an extra

        return connect_url(parts.http, url, token, tool.timeout or DEFAULT_SECONDS)

    return _server(parts, name, tool, partial(connect, tool.mcp_url or ""))


def _server(
    parts: ToolParts,
    name: str,
    tool: ToolSettings,
    connect: Callable[[], AbstractAsyncContextManager[ServerSession]],
) -> ToolSource:
    if importlib.util.find_spec("mcp") is None:
        reason = "needs the 'mcp' package: install carnet[mcp]"
        raise ConfigInvalid(key=f"tools.{name}.{tool.way}", reason=reason)
    known = parts.servers.by_name
    if name not in known:
        rules = _ruled(parts, tool, definition=Tool(name), use=_unused)
        rules = replace(rules, permission=tool.permission)
        known[name] = McpServer(
            name,
            connect,
            rules,
            only=tool.only,
            ask_before=parts.ask_before,
            trusts=tool.trust_annotations,
        )
    return known[name]


async def _unused(use: ToolUse, /) -> object:
    raise AssertionError(f"{use.call} is for no tool of a server")


# ------------------------------------------------------------------ agents


def _of_agent(parts: ToolParts, name: str, tool: ToolSettings) -> LoopTool:
    agent = AgentTool(tool.agent or "", tool.description or "", name)
    return _ruled(parts, tool, definition=agent.definition, use=agent, calls_agent=True)


def _agent(parts: ToolParts, agent: AgentTool) -> LoopTool:
    """An agent that has no section, under the name that it has itself."""
    tool = LoopTool(definition=agent.definition, use=agent, seconds=SECONDS, calls_agent=True)
    return _asked(parts, tool)


BUILDERS: Final[Mapping[str, Builder]] = {
    "target": _of_function,
    "command": _of_command,
    "mcp": _of_process,
    "mcp_url": _of_url,
    "agent": _of_agent,
}
