"""One gateway for all tests of this folder, and the SDK of A2A as its caller in both bindings."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from a2a.client import Client, ClientConfig, ClientFactory
from a2a.types import AgentCapabilities, AgentCard, AgentInterface

from carnet.testing.stage import Organisation, Stage
from tests.support.a2a.wire import Line
from tests.support.webhooks.receivers import Receivers, receiving

AGENTS = """
import asyncio

import carnet


@carnet.agent("asks")
async def asks(visit):
    answer = await visit.interrupt(input="Which city?")
    if not answer.accepted:
        yield "then not"
        return
    yield f"weather of {answer.value}"


@carnet.agent("approves")
async def approves(visit):
    answer = await visit.interrupt(approval="May I?")
    yield "granted" if answer.accepted else "left alone"


@carnet.agent("slow")
async def slow(visit):
    for number in range(600):
        yield f"{number} "
        await asyncio.sleep(0.1)


@carnet.agent("files")
async def files(visit):
    yield "see: "
    yield carnet.File("aGVsbG8=", "hello.txt", "text/plain")
    yield carnet.Link("https://example.com/a.pdf", "a.pdf", "application/pdf")
    yield carnet.Data({"rows": [1, 2]})


@carnet.agent("draws")
async def draws(visit):
    yield "see: "
    yield carnet.File("aGVsbG8=", "hello.txt", "text/plain")
    answer = await visit.interrupt(input="In which colour?")
    yield f"in {answer.value}"


@carnet.agent("parts")
async def parts(visit):
    kinds = [type(part).__name__ for part in visit.parts]
    yield " ".join(kinds)


@carnet.agent("signs")
async def signs(visit):
    answer = await visit.interrupt(sign_in="https://login.example/start", message="Sign in there")
    yield "signed in" if answer.accepted else "not signed in"


@carnet.agent("greets")
async def greets(visit):
    yield carnet.Message("assistant", ("good day",))


@carnet.agent("refers")
async def refers(visit):
    said = visit.messages[-1].metadata or {}
    yield " ".join(said.get("referenceTaskIds", []))


@carnet.agent("rejects")
async def rejects(visit):
    raise carnet.TaskRejected


@carnet.agent("fails")
async def fails(visit):
    yield "so far"
    raise RuntimeError("a secret detail")
"""

NAMES = (
    *("asks", "approves", "slow", "files", "parts", "signs", "greets", "refers", "rejects"),
    *("fails", "draws"),
)


def sections(names: tuple[str, ...] = NAMES) -> str:
    """The configuration of the agents above."""
    return "\n".join(
        f'[agents.{name}]\nkind = "python"\ntarget = "agents:{name}"' for name in names
    )


@pytest.fixture(scope="module")
def receivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receivers]:
    with receiving(tmp_path_factory.mktemp("received"), "well") as started:
        yield started


@pytest.fixture(scope="module")
def gateway(
    tmp_path_factory: pytest.TempPathFactory, receivers: Receivers
) -> Iterator[Organisation]:
    folder: Path = tmp_path_factory.mktemp("a2a")
    allowed = f'[egress]\nallow = ["127.0.0.1:{receivers.ports["well"]}"]\n'
    with Stage(folder) as stage:
        made = stage.organisation("acme.example", config=allowed + sections(), agents=AGENTS)
        made.start()
        yield made


@pytest.fixture(scope="module")
def lines(gateway: Organisation) -> dict[str, Line]:
    """A caller of each agent, by its name."""
    url, token = gateway.url, gateway.new_token("liner")
    return {name: Line(url, token, name) for name in ("echo", *NAMES)}


def card_of(gateway: Organisation, agent: str, binding: str) -> AgentCard:
    """What the SDK must know to call an agent."""
    url = f"http://127.0.0.1:{gateway.port}/agents/{agent}/a2a"
    return AgentCard(
        name=agent,
        version="1",
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding=binding, protocol_version="1.0")
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=True),
    )


@asynccontextmanager
async def calling(
    gateway: Organisation,
    agent: str,
    binding: str,
    *,
    token: str | None = None,
    streaming: bool = False,
) -> AsyncIterator[Client]:
    """The SDK as a caller of an agent."""
    fields = {"authorization": f"Bearer {token or gateway.token}"}
    async with httpx.AsyncClient(headers=fields, timeout=30) as line:
        config = ClientConfig(
            streaming=streaming,
            httpx_client=line,
            supported_protocol_bindings=[binding],
        )
        yield ClientFactory(config).create(card_of(gateway, agent, binding))
