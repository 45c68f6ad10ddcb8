"""From settings to an agent loop: its model, its tools, what one answer may take."""

from carnet.assembly.agents.functions import load
from carnet.assembly.agents.peers import bounds_of
from carnet.config import Settings, resolve_secret
from carnet.engine.loop import AgentLoop, LoopBounds
from carnet.errors import ConfigInvalid
from carnet.ports.engine.model import LanguageModel
from carnet.ports.engine.tools import LoopTool
from carnet.ports.world.clock import Ids
from carnet.ports.world.http_client import HttpClient
from carnet.runtime.agents.chat_model import ChatModel
from carnet.runtime.agents.remote import RemoteEndpoint
from carnet.runtime.tools.function import FunctionTool
from carnet.wire.dialects.openai import COMPLETIONS, MODEL
from carnet.wire.dialects.openai.members import EVERY


def build_loop(settings: Settings, http: HttpClient, ids: Ids) -> AgentLoop:
    """The loop of the `[engine]` section."""
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
