"""Denial of wallet: an agent that calls itself, wide and deep, is bounded by depth and number."""

from collections.abc import Iterator

import pytest

from tests.support.organisation import Organisation
from tests.support.served import executions

MOST_CALLS = 40
DEPTH = 4

AGENTS = '''
import asyncio
from pathlib import Path

import carnet

RAN = Path(__file__).parent / "ran.txt"


async def hydra(visit):
    """Call itself eight times, each of which does the same; go on whatever is refused."""
    with RAN.open("a") as trace:
        trace.write(f"hydra {visit.carnet.turn} {visit.carnet.depth}\\n")
    told = []
    for _ in range(8):
        try:
            told.append(await visit.peer(visit.text).ask(visit.text))
        except Exception as refused:
            told.append(getattr(refused, "code", "odd"))
    return " ".join(sorted({word for text in told for word in text.split()}))


async def herd(visit):
    """The same at once."""
    with RAN.open("a") as trace:
        trace.write(f"herd {visit.carnet.turn} {visit.carnet.depth}\\n")
    peers = [visit.peer("herd").ask("x") for _ in range(8)]
    told = await asyncio.gather(*peers, return_exceptions=True)
    return str(sum(isinstance(one, str) for one in told))
'''

CONFIG = """
[agents.hydra]
kind = "python"
target = "agents:hydra"
price = "0.01"
reentry = true

[agents.herd]
kind = "python"
target = "agents:herd"
reentry = true

[agents.mirror]
kind = "tangle"
url = "{url}/agents/hydra/v1"
model = "hydra"
token = {{file = "var/starter.token"}}
max_cost = "1"

[limits]
run_calls = {calls}
"""


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    gateway = Organisation(tmp_path_factory.mktemp("wallet"), "wallet.example")
    text = CONFIG.format(url=gateway.url, calls=MOST_CALLS)
    gateway.configure(text, agents=AGENTS + "\n\nasync def echo(visit):\n    return visit.text\n")
    gateway.start()
    yield gateway
    assert gateway.stop() == 0


@pytest.mark.parametrize("agent", ["hydra", "herd"])
def test_a_tree_that_is_wide_and_deep_is_cut_at_the_calls_of_its_run(
    house: Organisation, agent: str
) -> None:
    """A69: 585 calls are wanted, and as many are made as a run may make."""
    before = len(executions(house.folder, agent))
    reply = house.chat(agent, agent)
    assert reply.status == 200
    ran = len(executions(house.folder, agent)) - before
    assert MOST_CALLS // 2 <= ran <= MOST_CALLS
    run = house.get(f"/runs/{reply.headers['x-tangle-runid']}").json
    assert run["depth"] <= DEPTH - 1


def test_an_agent_that_calls_itself_over_the_network_is_cut_as_well(house: Organisation) -> None:
    """A69: each hop is a request of its own, and the run is the same."""
    before = len(executions(house.folder, "hydra"))
    reply = house.chat("mirror", "mirror")
    assert reply.status == 200
    assert len(executions(house.folder, "hydra")) - before <= MOST_CALLS


def test_a_spending_limit_bounds_the_whole_tree(house: Organisation) -> None:
    """A69: whatever else would still be allowed."""
    before = len(executions(house.folder, "hydra"))
    token = house.new_token("thrifty", "--limit", "0.05")
    house.chat("hydra", "hydra", token=token)
    assert len(executions(house.folder, "hydra")) - before <= 5
