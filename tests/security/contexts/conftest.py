"""A gateway whose agents tell who called them, that lists hosts and knows its proxies."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.stores import move_to
from tests.selection import STORES
from tests.stores.support import servers
from tests.support.organisation import Organisation
from tests.support.served import AGENTS, CONFIG

AGENTS_HERE = (
    AGENTS
    + '''

import json
import time

import msgspec

from carnet.errors import PolicyDenied


async def about(visit: carnet.Visit) -> str:
    """Who called, as this agent is told."""
    note(visit)
    context, acts_as = visit.context, visit.acts_as
    owner = acts_as.owner
    return json.dumps(
        {
            "context": msgspec.to_builtins(context),
            "cross_site": context.is_cross_site(),
            "safe": acts_as.safe(),
            "owner": None if owner is None else [owner.type, owner.key],
            "token": acts_as.token,
            "pay": acts_as.may("pay"),
        }
    )


async def about_below(visit: carnet.Visit) -> str:
    """What an agent is told that another one calls."""
    note(visit)
    return await visit.peer("about").ask("hi")


async def denied_below(visit: carnet.Visit) -> str:
    """How many calls are left before and after one that is denied."""
    before = visit.budget.calls
    try:
        await visit.peer("refused").ask("hi")
    except PolicyDenied:
        return f"{before} {visit.budget.calls}"
    return "it was made"


async def peek(what: str) -> str:
    """Look at something."""
    with RAN.open("a") as trace:
        trace.write(f"peek {what} 0\\n")
    return "seen"


async def wipe(what: str) -> str:
    """Remove something."""
    with RAN.open("a") as trace:
        trace.write(f"wipe {what} 0\\n")
    return "gone"


def hang():
    """Block until the test has been answered all the same."""
    while not (Path(__file__).parent / "answered").exists():
        time.sleep(0.01)


def judge(principal, context, action):
    """A policy: the words of the agent's name say what it does."""
    with (Path(__file__).parent / "asked.txt").open("a") as asked:
        words = [action.kind, action.agent, action.tool or "-", str(context), principal.auth_source]
        asked.write(" ".join(words) + "\\n")
    if context.agent == "intruder" or action.agent == "refused" or action.tool == "wipe":
        return "because the operator says so"
    if action.agent == "raises":
        raise RuntimeError("canary-in-a-policy")
    if action.agent == "odd":
        return 7
    if action.agent == "late":
        hang()
    return None


async def ajudge(principal, context, action):
    """The same as a coroutine, that blocks where it should not."""
    if action.agent == "late":
        hang()
    return action.agent != "refused"
'''
)

CONFIG_HERE = (
    CONFIG
    + """
[agents.about]
kind = "python"
target = "agents:about"

[agents.about_below]
kind = "python"
target = "agents:about_below"

[agents.near]
kind = "python"
target = "agents:about"
chain_depth = 3

[agents.starts]
kind = "python"
target = "agents:relay"
chain_depth = 1

[callers."https://written.example"]
key = {file = "var/written.key"}
metadata = {team = "docs"}
calls_per_minute = 1000

[callers."https://certified.example"]
certificate = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
"""
)

WRITTEN_KEY = "cck_written-in-the-file"


@contextmanager
def served(
    folder: Path,
    config: str,
    store: str | None = None,
    *,
    before: Callable[[Organisation], object] = id,
) -> Iterator[Organisation]:
    """A started gateway behind a proxy on this machine; `before` is called before it starts."""
    gateway = Organisation(folder, "acme.example")
    if store is not None:
        move_to(gateway, store)
    gateway.configure(config, agents=AGENTS_HERE)
    file = gateway.folder / "carnet.toml"
    proxied = '[gateway]\ntrusted_proxies = ["127.0.0.1"]\ncertificate_header = "client-cert"\n'
    file.write_text(file.read_text().replace("[gateway]\n", proxied, 1))
    (gateway.folder / "var" / "written.key").write_text(WRITTEN_KEY)
    (gateway.folder / "var" / "written.key").chmod(0o600)
    before(gateway)
    gateway.start()
    yield gateway
    assert gateway.stop() == 0


@pytest.fixture(scope="session", params=STORES)
def site(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Organisation]:
    store = None
    if request.param == "postgres":
        server: servers.Server = request.getfixturevalue("server")
        store = server.create()
    with served(tmp_path_factory.mktemp("site"), CONFIG_HERE, store) as gateway:
        yield gateway
