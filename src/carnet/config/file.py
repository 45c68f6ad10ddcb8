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

from carnet.config.limits import Limits
from carnet.config.readers import one_of, whole
from carnet.config.settings import (
    DIALECTS,
    LATER_DIALECTS,
    LATER_KINDS,
    MOST_DEPTH,
    SECTIONS,
    AgentSettings,
    GatewaySettings,
    PeerSettings,
    Settings,
    StoreSettings,
    local_url,
)
from carnet.config.sources import Sources, dotted
from carnet.core.people.address import check_domain, check_local
from carnet.errors import AddressInvalid, ConfigInvalid

FILE_NAME: Final = "carnet.toml"
DEPTH_VARIABLE: Final = "CLI_BRIDGE_MAX_DEPTH"  # tangle: the limit of the process, by its old name
MOST_NAME: Final = 200
CHECKED: Final = ("gateway", "store")  # sections whose values are held to one another
Kinds = Mapping[str, tuple[str, ...]]
NEEDS: Final[Kinds] = {
    "python": ("target",),
    "openai": ("url",),
    "tangle": ("url",),
    "samvad": ("url",),
    "engine": (),
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
    for name, agent in (parts["agents"] or {}).items():
        engine = parts["engine"]
        if agent.kind == "engine" and engine and engine.is_in_process and not engine.url:
            sources.part(partial(_refuse_engine, sources, name))
    parts["peers"] = sources.part(lambda: _peers(sources, dialects))
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
    return agents


def _agent(sources: Sources, name: str, limits: Limits, kinds: Kinds) -> AgentSettings:
    path = ("agents", name)
    _check_name(sources, name)
    agent = sources.section(AgentSettings, path, {"kind": one_of(*kinds, later=LATER_KINDS)})
    for key in kinds[agent.kind]:
        if getattr(agent, key) is None:
            sources.refuse((*path, "kind"), f"an agent of kind {agent.kind} needs '{key}'")
    if agent.retries > limits.retries:
        if sources.origins[dotted((*path, "retries"))] != "default":
            sources.refuse((*path, "retries"), f"is above [limits] retries = {limits.retries}")
        agent = structs.replace(agent, retries=limits.retries)
    return agent


def _refuse_engine(sources: Sources, name: str) -> None:
    reason = "an agent of kind engine needs 'url' in [engine]: the model that its loop asks"
    sources.refuse(("agents", name, "kind"), reason)


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


def _peers(sources: Sources, dialects: Sequence[str]) -> dict[str, PeerSettings]:
    peers: dict[str, PeerSettings] = {}
    for domain in sources.names("peers"):
        peer = sources.part(partial(_peer, sources, domain, dialects))
        if peer is not None:
            peers[domain] = peer
    return peers


def _peer(sources: Sources, domain: str, dialects: Sequence[str]) -> PeerSettings:
    try:
        check_domain(domain)
    except AddressInvalid as error:
        sources.refuse(("peers", domain), f"is no peer's domain: {error.facts['reason']}")
    readers = {"dialect": one_of(*dialects, later=LATER_DIALECTS)}
    return sources.section(PeerSettings, ("peers", domain), readers)
