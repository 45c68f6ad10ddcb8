"""From settings to an agent loop: its model, its tools, what one answer may take."""

from carnet.assembly.agents.functions import load
from carnet.assembly.agents.models import build_model
from carnet.config import Settings
from carnet.config.engine import chosen_model, no_model
from carnet.engine.loop import AgentLoop, LoopBounds
from carnet.errors import ConfigInvalid
from carnet.ports.engine.tools import LoopTool
from carnet.ports.world.clock import Ids
from carnet.ports.world.http_client import HttpClient
from carnet.runtime.tools.function import FunctionTool
from carnet.wire.dialects.openai.members import EVERY


def build_loop(settings: Settings, agent: str | None, http: HttpClient, ids: Ids) -> AgentLoop:
    """The loop that answers for an agent; None, or one that is not there: as [engine] says."""
    engine, own = settings.engine, settings.agents.get(agent or "")
    name = chosen_model(None if own is None else own.model, engine, settings.models)
    if name is None:
        raise ConfigInvalid(key="engine.model", reason=no_model(settings.models))
    bounds = LoopBounds(
        max_iterations=(own and own.max_iterations) or engine.max_iterations,
        max_tokens=(own and own.max_tokens) or engine.max_tokens,
    )
    model = build_model(settings, name, http, ids)
    return AgentLoop(model, build_tools(settings), bounds=bounds)


def build_tools(settings: Settings) -> list[LoopTool]:
    """The tools of the configuration, each used by who may."""
    key = "engine.tools"
    ask_before = frozenset(settings.engine.ask_before)
    tools = [
        _tool(load(target, settings.base, key=key), ask_before) for target in settings.engine.tools
    ]
    names = [tool.definition.name for tool in tools]
    if len(set(names)) < len(names):
        raise ConfigInvalid(key=key, reason="names two tools alike; a model tells them by name")
    unknown = ask_before - {*names, EVERY}
    if unknown:
        reason = f"names no tool: {', '.join(sorted(unknown))}"
        raise ConfigInvalid(key="engine.ask_before", reason=reason)
    return tools


def _tool(found: object, ask_before: frozenset[str]) -> LoopTool:
    if not callable(found):
        raise ConfigInvalid(key="engine.tools", reason=f"{found!r} is not a function")
    try:
        function = FunctionTool(found)
    except TypeError as error:
        raise ConfigInvalid(key="engine.tools", reason=str(error)) from None
    definition = function.definition
    return LoopTool(
        definition=definition,
        use=function,
        permission=f"tool:{definition.name}",
        approval="always" if {definition.name, EVERY} & ask_before else "never",
    )
