"""What a configuration names and `load` does not look at: functions, secrets, keys, the store.

Law 1. Agents are read and not run (`cli.source`), unless that is asked for (`load`).
Law 2. Then they are imported as the gateway would, and what that brought into this process leaves
       it.
"""

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from math import inf
from pathlib import Path
from shlex import quote

from carnet.cli.source import Sight, look, module_file
from carnet.config import SecretRef, Settings, resolve_secret, secret_path
from carnet.config.engine import read_system
from carnet.config.file import CONVERSATION, ORCHESTRATOR
from carnet.config.sources import all_of, dotted
from carnet.core.people.identity import CHAT
from carnet.errors import ConfigInvalid


def resolve(settings: Settings, *, load: bool) -> dict[str, Sight]:
    """Look everything up; all that cannot be used is refused by its key, in the file's order.

    What can be seen of the agents.
    """
    from carnet.stores.secrets import secrets_file

    seen: dict[str, Sight] = {}
    wrong: list[ConfigInvalid] = []

    def try_to(look_up: Callable[[], object]) -> None:
        try:
            look_up()
        except ConfigInvalid as error:
            wrong.append(error)

    def see(name: str) -> None:
        seen[name] = look_at(settings, name, load=load)

    for name in settings.agents:
        try_to(partial(see, name))
    for key, ref in references(settings):
        try_to(partial(resolve_secret, ref, settings.base, key=key))
    try_to(lambda: secrets_file.load(secret_path(settings.store.secrets, settings.base)))
    try_to(lambda: check_files(settings))
    try_to(lambda: look_at_policy(settings, load=load))
    if wrong:
        raise all_of(sorted(wrong, key=lambda error: _line(settings, str(error.facts["key"]))))
    return seen


def _line(settings: Settings, key: str) -> float:
    """The line of a key in the file; what does not stand there comes last."""
    line = settings.origins.get(key, "").rpartition(":")[2]
    return int(line) if line.isdigit() else inf


def references(settings: Settings) -> Iterator[tuple[str, SecretRef]]:
    """Every secret that the file names, by its key; not the gateway's own."""
    for name, agent in settings.agents.items():
        for key, ref in (("api_key", agent.api_key), ("token", agent.token)):
            if ref is not None:
                yield f"agents.{name}.{key}", ref
    for name, model in settings.models.items():
        if model.api_key is not None:
            yield dotted(("models", name, "api_key")), model.api_key
    tokens = [(f'peers."{domain}"', peer.token) for domain, peer in settings.peers.items()]
    tokens += [(f"tools.{name}", tool.token) for name, tool in settings.tools.items()]
    shared = [(f'callers."{url}".key', caller.key) for url, caller in settings.callers.items()]
    for key, token in [*((f"{section}.token", token) for section, token in tokens), *shared]:
        if token is not None:
            yield key, token


def own_sources(settings: Settings) -> Iterator[Path]:
    """The files beside carnet.toml that its functions are in."""
    targets = [agent.target for agent in settings.agents.values()]
    targets += [tool.target for tool in settings.tools.values()]
    lists = [settings.engine.tools, *(agent.tools or () for agent in settings.agents.values())]
    targets += [name for names in lists for name in names if ":" in name]
    for target in (*targets, settings.gateway.injection_classifier, settings.policy.target):
        path = None if target is None else module_file(target.partition(":")[0], settings.base)
        if path is not None:
            yield path


def look_at_policy(settings: Settings, *, load: bool) -> None:
    """Refuse a policy that cannot be asked."""
    target, key = settings.policy.target, "policy.target"
    if target is None:
        return
    if not load:
        look(target, settings.base, key=key)
        return
    from carnet.assembly.agents.functions import load_policy

    with own_modules(settings.base):
        load_policy(target, settings.base, key=key)


def look_at(settings: Settings, name: str, *, load: bool) -> Sight:
    """What can be seen of an agent; imported and with its schemas compiled if `load` says so."""
    agent = settings.agents[name]
    read_system(agent.system, agent.system_file, settings.base, key=f"agents.{name}.system_file")
    if agent.kind == "engine" and load:
        _build_tools(settings, name)
    if agent.kind == CONVERSATION:
        return _look_at_conversation(settings, name, load=load)
    if agent.target is None:
        return Sight(skills=(CHAT.id,) if agent.kind in {"openai", ORCHESTRATOR} else ())
    key = f"agents.{name}.target"
    if not load:
        return look(agent.target, settings.base, key=key)
    from carnet.assembly.agents.functions import load_agent
    from carnet.runtime.skills.schemas import CompiledSchemas

    with own_modules(settings.base):
        loaded = load_agent(agent.target, settings.base, key=key)
        CompiledSchemas().compile(name, loaded.skills)
    return Sight(skills=tuple(skill.id for skill in loaded.skills))


def _build_tools(settings: Settings, name: str) -> None:
    """Refuse tools of an agent loop that cannot be built; no server of them is started."""
    from carnet.assembly.agents.tools import NamedTools, ToolServers, build_tools
    from carnet.runtime.egress.client import EgressClient

    tools = settings.agents[name].tools
    named = None if tools is None else NamedTools(tools, f"agents.{name}.tools")
    with own_modules(settings.base):
        build_tools(settings, EgressClient(), ToolServers(), named)


def _look_at_conversation(settings: Settings, name: str, *, load: bool) -> Sight:
    """The same of a conversation, which chats."""
    if load:
        from carnet.assembly.agents.dialogues import build_conversation

        with own_modules(settings.base):
            build_conversation(settings, name, settings.agents[name])
    return Sight(skills=(CHAT.id,))


@contextmanager
def own_modules(base: Path) -> Iterator[None]:
    """Import modules of a folder; afterwards they are gone again."""
    path, known = list(sys.path), set(sys.modules)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:] = path
        for name in sys.modules.keys() - known:
            if _is_beside(name.partition(".")[0], base):
                del sys.modules[name]


def _is_beside(name: str, base: Path) -> bool:
    """Whether a module or package stands beside carnet.toml; an environment there is not meant."""
    return (base / f"{name}.py").exists() or (base / name / "__init__.py").exists()


def check_files(settings: Settings) -> None:
    """Refuse a store whose folder or files cannot be written; a database elsewhere is not asked."""
    from carnet.stores.open import database_path, is_postgres

    url = settings.store.url
    if is_postgres(url):
        return
    path = database_path(url, settings.base)
    if not path.parent.is_dir():
        make = f"mkdir -p {quote(str(path.parent))}"
        reason = f"the folder {path.parent} does not exist; create it with: {make}"
        raise ConfigInvalid(key="store.url", reason=reason)
    beside = [path.with_name(path.name + end) for end in ("", "-wal", "-shm")]
    for file in (path.parent, *beside):
        if file.exists() and not os.access(file, os.W_OK):
            reason = f"{file} cannot be written by this user; run: chmod u+w {quote(str(file))}"
            raise ConfigInvalid(key="store.url", reason=reason)
