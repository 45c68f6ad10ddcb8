"""From settings to an agent loop: its model, its tools, what one answer may take.

One engine answers several agents, each by the loop that the configuration gives it.
"""

from collections.abc import Mapping
from typing import Final

from carnet.assembly.agents.functions import load
from carnet.assembly.agents.peers import bounds_of
from carnet.config import Settings, resolve_secret
from carnet.core.messages.events import Done, Waiting
from carnet.core.messages.output import Sink
from carnet.engine.loop import AgentLoop, LoopBounds
from carnet.errors import AgentNotFound, ConfigInvalid
from carnet.ports.engine.loop import Engine, LoopTurn
from carnet.ports.engine.model import LanguageModel
from carnet.ports.engine.tools import LoopTool
from carnet.ports.world.clock import Ids
from carnet.ports.world.http_client import HttpClient
from carnet.runtime.agents.chat_model import ChatModel
from carnet.runtime.agents.remote import RemoteEndpoint
from carnet.runtime.tools.agent import SECONDS, AgentTool
from carnet.runtime.tools.function import FunctionTool
from carnet.wire.dialects.openai import COMPLETIONS, MODEL
from carnet.wire.dialects.openai.members import EVERY

ENGINE: Final = "engine"  # the kind of agents that a loop answers


class NamedLoops:
    """The loops of one engine: that of the agent which is asked, or the one of `[engine]`."""

    def __init__(self, default: Engine, named: Mapping[str, Engine]) -> None:
        """`named` are those of agents."""
        self._default = default
        self._named = named

    async def __call__(self, turn: LoopTurn, sink: Sink, /) -> Done | Waiting:
        """Have the right one answer; an agent that is not known here has none."""
        loop = self._named.get(turn.agent) if turn.agent else self._default
        if loop is None:
            raise AgentNotFound(f"{turn.agent!r} is no agent of this engine")
        return await loop(turn, sink)


def build_loops(settings: Settings, http: HttpClient, ids: Ids) -> NamedLoops:
    """A loop for each agent of the kind `engine`, and the one for requests that name none."""
    names = [name for name, agent in settings.agents.items() if agent.kind == ENGINE]
    named = {name: build_loop(settings, http, ids, name) for name in names}
    return NamedLoops(build_loop(settings, http, ids), named)


def build_loop(settings: Settings, http: HttpClient, ids: Ids, agent: str = "") -> AgentLoop:
    """The loop of an agent, or that of the `[engine]` section."""
    del agent  # all have what the section says
    engine = settings.engine
    bounds = LoopBounds(max_iterations=engine.max_iterations, max_tokens=engine.max_tokens)
    return AgentLoop(build_model(settings, http, ids), build_tools(settings), bounds=bounds)


def build_model(settings: Settings, http: HttpClient, ids: Ids) -> LanguageModel:
    """The model of the configuration; ConfigInvalid where there is none."""
    engine = settings.engine
    if engine.url is None:
        reason = "is missing: the loop needs a model to ask, such as 'http://127.0.0.1:8080/v1'"
        raise ConfigInvalid(key="engine.url", reason=reason)
    endpoint = RemoteEndpoint(
        url=engine.url.rstrip("/") + COMPLETIONS,
        model=engine.model or "default",
        token=None
        if engine.api_key is None
        else resolve_secret(engine.api_key, settings.base, key="engine.api_key"),
        currency=settings.ledger.currency,
        bounds=bounds_of(engine.timeout),
        codec=MODEL,
    )
    return ChatModel(http, endpoint, retries=engine.retries, fraction=ids.fraction)


def build_tools(settings: Settings) -> list[LoopTool]:
    """The tools of the configuration, each used by who may."""
    key = "engine.tools"
    ask_before = frozenset(settings.engine.ask_before)
    tools = [
        agent_tool(target, ask_before)
        if target.startswith("@")
        else _tool(load(target, settings.base, key=key), ask_before)
        for target in settings.engine.tools
    ]
    names = [tool.definition.name for tool in tools]
    if len(set(names)) < len(names):
        raise ConfigInvalid(key=key, reason="names two tools alike; a model tells them by name")
    unknown = ask_before - {*names, EVERY}
    if unknown:
        reason = f"names no tool: {', '.join(sorted(unknown))}"
        raise ConfigInvalid(key="engine.ask_before", reason=reason)
    return tools


def agent_tool(
    address: str, ask_before: frozenset[str], description: str = "", name: str = ""
) -> LoopTool:
    """Another agent as a tool, under its own name or another."""
    agent = AgentTool(address, description, name)
    name = agent.definition.name
    return LoopTool(
        definition=agent.definition,
        use=agent,
        permission=f"tool:{name}",
        approval="always" if {name, EVERY} & ask_before else "never",
        seconds=SECONDS,
        calls_agent=True,
    )


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
