"""From settings to an agent loop: its model, its tools, what one answer may take.

One engine answers several agents, each by the loop that the configuration gives it.
"""

from collections.abc import Mapping
from typing import Final

from carnet.assembly.agents.models import build_model
from carnet.assembly.agents.tools import NamedTools, ToolServers, build_tools
from carnet.config import Settings
from carnet.config.engine import chosen_model, no_model
from carnet.core.chain.carnet import Carnet
from carnet.core.messages.events import Done, Waiting
from carnet.core.messages.output import Sink
from carnet.engine.loop import AgentLoop, LoopBounds
from carnet.errors import AgentNotFound, ConfigInvalid
from carnet.ports.engine.loop import Engine, LoopTurn
from carnet.ports.engine.tools import HiddenSeal
from carnet.ports.world.clock import Ids
from carnet.ports.world.http_client import HttpClient
from carnet.runtime.chain.call_chain import CHAIN, InboundChain
from carnet.runtime.system import SystemClock

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
        if not turn.is_final:
            return await loop(turn, sink)
        before = CHAIN.set(_last_hop(turn))  # of its chain a bearer says no more than that
        try:
            return await loop(turn, sink)
        finally:
            CHAIN.reset(before)


def _last_hop(turn: LoopTurn) -> InboundChain:
    """What keeps functions from dialling out that are tools of a turn without a hop left."""
    carnet = Carnet(run=turn.name, turn=turn.name, last_depth=0, bound_by="tangle")
    return InboundChain(carnet, None, last_depth=0, clock=SystemClock())


def build_loops(
    settings: Settings,
    http: HttpClient,
    ids: Ids,
    servers: ToolServers,
    *,
    seal: HiddenSeal | None = None,
) -> NamedLoops:
    """A loop for each agent of the kind `engine`, and the one for requests that name none."""
    names = [name for name, agent in settings.agents.items() if agent.kind == ENGINE]
    named = {name: build_loop(settings, name, http, ids, servers, seal=seal) for name in names}
    return NamedLoops(build_loop(settings, None, http, ids, servers, seal=seal), named)


def build_loop(
    settings: Settings,
    agent: str | None,
    http: HttpClient,
    ids: Ids,
    servers: ToolServers,
    *,
    seal: HiddenSeal | None = None,
) -> AgentLoop:
    """The loop that answers for an agent; None, or one that is not there: as [engine] says."""
    engine, own = settings.engine, settings.agents.get(agent or "")
    name = chosen_model(None if own is None else own.model, engine, settings.models)
    if name is None:
        raise ConfigInvalid(key="engine.model", reason=no_model(settings.models))
    bounds = LoopBounds(
        max_iterations=(own and own.max_iterations) or engine.max_iterations,
        max_tokens=(own and own.max_tokens) or engine.max_tokens,
        budgets=() if own is None else own.budgets,
    )
    model = build_model(settings, name, http, ids)
    tools = None if own is None else own.tools
    named = None if tools is None else NamedTools(tools, f"agents.{agent}.tools")
    used = build_tools(settings, http, servers, named)
    return AgentLoop(model, used.tools, sources=used.sources, bounds=bounds, seal=seal)
