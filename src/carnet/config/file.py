"""From `carnet.toml` and the environment to `Settings`.

Law 1. What is loaded can be run: names, addresses and what each kind of agent needs were checked.
Law 2. Every refusal names the key, what it should be, and where the value came from; all are told
       at once, in the order of the file.
"""

import tomllib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from msgspec import structs

from carnet.config.dialogue.orchestrator import nowhere
from carnet.config.dialogue.participants import leads_elsewhere
from carnet.config.engine import (
    MODEL_NAME,
    EngineSettings,
    ModelSettings,
    chosen_model,
    no_model,
)
from carnet.config.limits import Limits, StoreSettings
from carnet.config.lines import KeyPath
from carnet.config.outbound import DIALECTS, OwnerSettings
from carnet.config.readers import one_of, whole
from carnet.config.sections.trusted import read_callers, read_payers, read_peers
from carnet.config.settings import (
    MOST_DEPTH,
    SECTIONS,
    AgentSettings,
    GatewaySettings,
    Settings,
    local_url,
)
from carnet.config.sources import Sources, dotted, nearest
from carnet.config.tools import BUILT_IN, FIND_TOOLS, OF_WAYS, TOOL_NAME, WAYS, ToolSettings
from carnet.config.trust.identity import IdentitySettings, same_issuers
from carnet.config.trust.payers import wrong_with_key
from carnet.core.people.address import check_local
from carnet.errors import AddressInvalid, ConfigInvalid

FILE_NAME: Final = "carnet.toml"
DEPTH_VARIABLE: Final = "CLI_BRIDGE_MAX_DEPTH"  # tangle: the limit of the process, by its old name
MOST_NAME: Final = 200
CONVERSATION: Final = "conversation"
ORCHESTRATOR: Final = "orchestrator"
CHECKED: Final = ("gateway", "store")  # sections whose values are held to one another
Kinds = Mapping[str, tuple[str, ...]]
NEEDS: Final[Kinds] = {
    "python": ("target",),
    "openai": ("url",),
    "tangle": ("url",),
    "samvad": ("url",),
    "a2a": ("url",),
    "agents_api": ("url",),
    "engine": (),
    "conversation": (),
    "orchestrator": (),
}


def find(start: Path) -> Path | None:
    """The nearest `carnet.toml` in a folder or above it."""
    start = start.resolve()
    for folder in (start, *start.parents):
        if (folder / FILE_NAME).is_file():
            return folder / FILE_NAME
    return None


def load(
    path: Path,
    env: Mapping[str, str],
    kinds: Kinds = NEEDS,
    dialects: Sequence[str] = DIALECTS,
) -> Settings:
    """Read, merge and check everything.

    `kinds` of agents have names, and keys that they need; peers are listed with one of the
    `dialects`.
    """
    path = path.absolute()
    text = _read_text(path)
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigInvalid(key=str(path), reason=f"is not valid TOML: {error}.") from None
    sources = Sources(tree, text, path.name, env)
    parts: dict[str, Any] = {
        name: sources.part(partial(sources.section, kind, (name,)))
        for name, kind in SECTIONS.items()
        if name not in CHECKED
    }
    parts["gateway"] = sources.part(lambda: _gateway(sources, env))
    parts["store"] = sources.part(lambda: _store(sources))
    parts["agents"] = sources.part(lambda: _agents(sources, parts["limits"] or Limits(), kinds))
    parts["peers"] = sources.part(lambda: read_peers(sources, dialects))
    parts["callers"] = sources.part(lambda: read_callers(sources))
    parts["payers"] = sources.part(lambda: read_payers(sources))
    parts["models"] = sources.part(lambda: _models(sources, parts["limits"] or Limits()))
    if None not in (parts["agents"], parts["models"], parts["engine"]):
        _check_models(sources, parts["engine"], parts["agents"], parts["models"])
    parts["tools"] = sources.part(lambda: _tools(sources))
    if None not in (parts["agents"], parts["engine"], parts["tools"]):
        _check_tools(sources, parts["engine"], parts["agents"])
    if None not in (parts["agents"], parts["owner"]):
        _check_owner(sources, parts["owner"], parts["agents"])
    if None not in (parts["gateway"], parts["identity"]):
        sources.part(lambda: _check_issuers(sources, parts["identity"], parts["gateway"].domain))
    sources.check()
    return Settings(**parts, source=path, base=path.parent, origins=sources.origins)


def _read_text(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError:
        raise ConfigInvalid(key=str(path), reason="is not UTF-8 text.") from None
    except OSError as error:
        why = (error.strerror or "unknown reason").lower()
        raise ConfigInvalid(
            key=str(path), reason=f"cannot be read: {why}. 'carnet init' writes one."
        ) from None


def _gateway(sources: Sources, env: Mapping[str, str]) -> GatewaySettings:
    gateway = sources.section(GatewaySettings, ("gateway",))
    if sources.origins["gateway.public_url"] == "default":
        gateway = structs.replace(gateway, public_url=local_url(gateway.host, gateway.port))
    if DEPTH_VARIABLE in env:
        depth = sources.override(
            ("gateway", "max_depth"), env[DEPTH_VARIABLE], DEPTH_VARIABLE, whole(1, MOST_DEPTH)
        )
        gateway = structs.replace(gateway, max_depth=depth)
    return gateway


def _store(sources: Sources) -> StoreSettings:
    store = sources.section(StoreSettings, ("store",))
    if store.secrets.file is None:
        sources.refuse(
            ("store", "secrets"), 'should be {file = "PATH"}: the gateway keeps its own keys there'
        )
    return store


def _agents(sources: Sources, limits: Limits, kinds: Kinds) -> dict[str, AgentSettings]:
    agents: dict[str, AgentSettings] = {}
    for name in sources.names("agents"):
        agent = sources.part(partial(_agent, sources, name, limits, kinds))
        if agent is not None:
            agents[name] = agent
    defaults = [name for name, agent in agents.items() if agent.default]
    if len(defaults) > 1:
        both = " and ".join(f"'{name}'" for name in defaults)
        sources.refuse(("agents", defaults[1], "default"), f"{both} are both the default; keep one")
    for name, agent in agents.items():
        if agent.kind == CONVERSATION:
            sources.part(partial(_check_conversation, sources, name, agent, agents))
        if agent.kind == ORCHESTRATOR:
            sources.part(partial(_check_orchestrator, sources, name, agent, agents))
    return agents


def _check_conversation(
    sources: Sources, name: str, agent: AgentSettings, agents: Mapping[str, AgentSettings]
) -> None:
    """Refuse a conversation that nobody defines, or twice, and names that lead nowhere."""
    path = ("agents", name)
    if (agent.target is None) == (agent.participants is None):
        sources.refuse((*path, "kind"), "a conversation needs 'participants' or 'target', not both")
    if agent.participants is not None and agent.max_turns is None:
        sources.refuse((*path, "kind"), "a conversation of 'participants' needs 'max_turns'")
    for each in agent.participants or ():
        others = () if each.on_failure in {"halt", "skip"} else (each.on_failure,)
        for named in (each.agent, *others):
            if not leads_elsewhere(named) and (named not in agents or named == name):
                hint = nearest(named, agents.keys() - {name})
                sources.refuse((*path, "participants"), f"'{named}' is no other agent here. {hint}")
        if each.auth is not None and agent.auth_source != "per-call":
            reason = "have an 'auth'; set auth_source = \"per-call\" for them to choose"
            sources.refuse((*path, "participants"), reason)


def _check_orchestrator(
    sources: Sources, name: str, agent: AgentSettings, agents: Mapping[str, AgentSettings]
) -> None:
    """Refuse names that lead nowhere, and more answers than there are agents."""
    path, asked = ("agents", name), agent.agents
    if (wrong := nowhere(asked or (), agent.join, agents, name)) is not None:
        key, named = wrong
        hint = nearest(named, agents.keys() - {name})
        sources.refuse((*path, key), f"'{named}' is no other agent here. {hint}")
    if asked is not None and agent.first is not None and agent.first > len(asked):
        sources.refuse((*path, "first"), f"is above the number of 'agents', {len(asked)}")


def _agent(sources: Sources, name: str, limits: Limits, kinds: Kinds) -> AgentSettings:
    path = ("agents", name)
    _check_name(sources, name)
    agent = sources.section(AgentSettings, path, {"kind": one_of(*kinds)})
    for key in kinds[agent.kind]:
        if getattr(agent, key) is None:
            sources.refuse((*path, "kind"), f"an agent of kind {agent.kind} needs '{key}'")
    if agent.system is not None and agent.system_file is not None:
        sources.refuse((*path, "system_file"), "stands beside 'system'; keep one of them")
    may, has_key = agent.may_forward_authorization, agent.api_key is not None
    wrong = wrong_with_key(agent.kind, agent.authorization, may_forward=may, has_key=has_key)
    if wrong is not None:
        sources.refuse((*path, "authorization"), wrong)
    if agent.retries > limits.retries:
        if sources.origins[dotted((*path, "retries"))] != "default":
            sources.refuse((*path, "retries"), f"is above [limits] retries = {limits.retries}")
        agent = structs.replace(agent, retries=limits.retries)
    return agent


def _check_owner(
    sources: Sources, owner: OwnerSettings, agents: Mapping[str, AgentSettings]
) -> None:
    """Refuse names of agents that are not here."""
    for key, name in (("agent", owner.agent), ("orchestrator", owner.orchestrator)):
        if name is not None and not leads_elsewhere(name) and name not in agents:
            reason = f"'{name}' is no agent here. {nearest(name, agents)}"
            sources.part(partial(sources.refuse, ("owner", key), reason))


def _models(sources: Sources, limits: Limits) -> dict[str, ModelSettings]:
    models: dict[str, ModelSettings] = {}
    for name in sources.names("models"):
        model = sources.part(partial(_model, sources, name, limits))
        if model is not None:
            models[name] = model
    for name, model in models.items():
        sources.part(partial(_check_fallbacks, sources, name, model, sources.names("models")))
    return models


def _model(sources: Sources, name: str, limits: Limits) -> ModelSettings:
    path = ("models", name)
    if not MODEL_NAME.fullmatch(name):
        sources.refuse(path, "is no name for a model: 1 to 64 letters, digits, '.', '_' and '-'")
    model = sources.section(ModelSettings, path)
    if model.retries > limits.retries:
        if sources.origins[dotted((*path, "retries"))] != "default":
            sources.refuse((*path, "retries"), f"is above [limits] retries = {limits.retries}")
        model = structs.replace(model, retries=limits.retries)
    return model


def _check_fallbacks(
    sources: Sources, name: str, model: ModelSettings, models: Sequence[str]
) -> None:
    path, known = ("models", name, "fallbacks"), set(models) - {name}
    for other in model.fallbacks:
        if other not in known:
            sources.refuse(path, f"'{other}' is no other one of [models]. {nearest(other, known)}")
    if len(set(model.fallbacks)) < len(model.fallbacks):
        sources.refuse(path, "names one of them twice")


def _check_models(
    sources: Sources,
    engine: EngineSettings,
    agents: Mapping[str, AgentSettings],
    models: Mapping[str, ModelSettings],
) -> None:
    """Refuse names of models that there are not, and loops that have none to ask.

    One whose section is wrong is there: its own error is the one to mend.
    """
    known = sources.names("models")
    sources.part(partial(_check_model, sources, ("engine", "model"), engine.model, known))
    for name, agent in agents.items():
        if agent.kind != "engine":
            continue
        path = ("agents", name)
        sources.part(partial(_check_model, sources, (*path, "model"), agent.model, known))
        if len(models) < len(known):
            continue
        if engine.is_in_process and chosen_model(agent.model, engine, models) is None:
            sources.part(partial(sources.refuse, (*path, "kind"), no_model(models)))


def _check_issuers(sources: Sources, identity: IdentitySettings, domain: str) -> None:
    """Refuse issuers whose users would be the same callers, and have the same accounts."""
    same = same_issuers(identity, domain)
    if same is not None:
        whose = "this gateway has" if same == domain else "another issuer has"
        sources.refuse(("identity",), f"has an issuer '{same[:60]}' with the name that {whose}")


def _check_model(sources: Sources, path: KeyPath, named: str | None, models: Sequence[str]) -> None:
    if named is not None and named not in models:
        hint = nearest(named, models) if models else "Write a section [models.NAME]."
        sources.refuse(path, f"'{named}' is none of [models]. {hint}")


def _check_name(sources: Sources, name: str) -> None:
    path = ("agents", name)
    if "/" in name:  # a path such as bridge/sandbox/researcher
        if not (name.isascii() and name.isprintable() and " " not in name):
            sources.refuse(path, "a path name is visible ASCII without spaces")
        if len(name) > MOST_NAME:
            sources.refuse(path, f"a path name has at most {MOST_NAME} characters")
        return
    try:
        check_local(name)
    except AddressInvalid as error:
        sources.refuse(path, f"is no name for an agent: {error.facts['reason']}")


def _tools(sources: Sources) -> dict[str, ToolSettings]:
    tools: dict[str, ToolSettings] = {}
    for name in sources.names("tools"):
        tool = sources.part(partial(_tool, sources, name))
        if tool is not None:
            tools[name] = tool
    return tools


def _tool(sources: Sources, name: str) -> ToolSettings:
    path = ("tools", name)
    if not TOOL_NAME.fullmatch(name) or name == FIND_TOOLS:
        reason = f"is no name for a tool: 1 to 64 letters, digits, '_' and '-', not '{FIND_TOOLS}'"
        sources.refuse(path, reason)
    tool = sources.section(ToolSettings, path)
    if not tool.way:
        sources.refuse(path, f"needs one of {', '.join(WAYS)}, and no more than one")
    if tool.way in {"command", "agent"} and tool.description is None:
        sources.refuse(path, f"with '{tool.way}' needs a 'description': what models are told")
    for key, ways in OF_WAYS.items():
        is_given = sources.origins[dotted((*path, key))] != "default"
        if is_given and tool.way not in ways:
            sources.refuse((*path, key), f"is for {' and '.join(ways)}, and this is '{tool.way}'")
    return tool


def _check_tools(
    sources: Sources, engine: EngineSettings, agents: Mapping[str, AgentSettings]
) -> None:
    """Refuse names of tools that there are not; one whose section is wrong is there."""
    tools = [*sources.names("tools"), *BUILT_IN]
    sources.part(partial(_check_named, sources, ("engine", "tools"), engine.tools, tools))
    for name, agent in agents.items():
        path = ("agents", name, "tools")
        sources.part(partial(_check_named, sources, path, agent.tools or (), tools))


def _check_named(
    sources: Sources, path: KeyPath, named: Sequence[str], tools: Sequence[str]
) -> None:
    for name in named:
        if ":" not in name and not name.startswith("@") and name not in tools:
            sources.refuse(path, f"'{name}' is none of [tools]. {nearest(name, tools)}")
