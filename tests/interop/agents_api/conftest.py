"""One gateway for all tests of this folder, asked by a client that knows agents-api alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from carnet.testing.stage import Organisation, Stage
from tests.support.agents_api.client import Client

AGENTS = """
import asyncio
import json

import carnet

RUNS = []


@carnet.agent("tells")
async def tells(visit):
    found = []
    for each in visit.messages:
        calls = [[call.id, call.name, call.arguments] for call in each.tool_calls]
        parts = [type(part).__name__ for part in each.parts]
        found.append([each.role, each.text, parts, calls, each.tool_call_id])
    last = [each.metadata for each in visit.messages if each.metadata]
    yield json.dumps({"messages": found, "metadata": last})


@carnet.agent("counts")
async def counts(visit):
    RUNS.append(visit.text)
    yield str(RUNS.count(visit.text))


@carnet.agent("approves")
async def approves(visit):
    answer = await visit.interrupt(approval="May I publish?", expires=3600)
    yield "granted" if answer.accepted else "left alone"


@carnet.agent("asks")
async def asks(visit):
    answer = await visit.interrupt(input="Which city?")
    yield f"weather of {answer.value}" if answer.accepted else "then not"


@carnet.agent("twice")
async def twice(visit):
    first = await visit.interrupt(approval="First?")
    second = await visit.interrupt(approval="Second?")
    yield f"{first.outcome} {second.outcome}"


@carnet.agent("streams")
async def streams(visit):
    yield "one "
    yield carnet.ToolCall("tc1", "search", '{"q":1}', index=2, is_own=True)
    yield carnet.ToolResult("tc1", "ok", {"hits": 3})
    yield "two"


@carnet.agent("wants")
async def wants(visit):
    if any(each.role == "tool" for each in visit.messages):
        yield "thank you"
        return
    yield carnet.ToolCall("tc9", "lookup", '{"key":"k"}')


@carnet.agent("files")
async def files(visit):
    yield "see: "
    yield carnet.File("aGVsbG8=", "hello.txt", "text/plain")
    yield carnet.Link("https://example.com/a.pdf", "a.pdf", "application/pdf")
    yield carnet.Data({"rows": [1, 2]})


@carnet.agent("fails")
async def fails(visit):
    yield "so far"
    raise RuntimeError("a secret detail")


@carnet.agent("slow")
async def slow(visit):
    yield "begun"
    await asyncio.sleep(600)
"""

NAMES = (
    *("tells", "counts", "approves", "asks", "twice", "streams", "wants", "files", "fails"),
    "slow",
)


def sections(names: tuple[str, ...] = NAMES) -> str:
    """The configuration of the agents above."""
    return "\n".join(
        f'[agents.{name}]\nkind = "python"\ntarget = "agents:{name}"' for name in names
    )


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    folder: Path = tmp_path_factory.mktemp("agents_api")
    with Stage(folder) as stage:
        made = stage.organisation("acme.example", config=sections(), agents=AGENTS)
        made.start()
        yield made


@pytest.fixture(scope="module")
def client(gateway: Organisation) -> Client:
    return Client(gateway.url, gateway.new_token("site"))


@pytest.fixture(scope="module")
def other(gateway: Organisation) -> Client:
    """Somebody else with a token."""
    return Client(gateway.url, gateway.new_token("stranger"))
