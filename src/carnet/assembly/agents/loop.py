"""From settings to an agent loop: its model, its tools, what one answer may take."""

from carnet.assembly.agents.peers import bounds_of
from carnet.assembly.agents.tools import NamedTools, ToolServers, build_tools
from carnet.config import Settings, resolve_secret
from carnet.engine.loop import AgentLoop, LoopBounds
from carnet.errors import ConfigInvalid
from carnet.ports.engine.model import LanguageModel
from carnet.ports.engine.tools import HiddenSeal
from carnet.ports.world.clock import Ids
from carnet.ports.world.http_client import HttpClient
from carnet.runtime.agents.chat_model import ChatModel
from carnet.runtime.agents.remote import RemoteEndpoint
from carnet.wire.dialects.openai import COMPLETIONS, MODEL


def build_loop(
    settings: Settings,
    http: HttpClient,
    ids: Ids,
    servers: ToolServers,
    *,
    tools: NamedTools | None = None,
    seal: HiddenSeal | None = None,
) -> AgentLoop:
    """The loop of the `[engine]` section, with the tools of an agent where it names its own."""
    engine = settings.engine
    bounds = LoopBounds(max_iterations=engine.max_iterations, max_tokens=engine.max_tokens)
    model, used = build_model(settings, http, ids), build_tools(settings, http, servers, tools)
    return AgentLoop(model, used.tools, sources=used.sources, bounds=bounds, seal=seal)


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
