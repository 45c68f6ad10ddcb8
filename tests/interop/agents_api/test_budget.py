"""A budget `chain_depth` toward another Carnet in this dialect: by default it is 16 deep."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from carnet.testing.stage import Organisation, Stage
from tests.support.http import HeaderList, Reply, chat_body, request

AGENTS = """
import carnet


@carnet.agent("deep")
async def deep(visit):
    return f"{visit.chain.hop} of {visit.chain.cap}"


@carnet.agent("passes")
async def passes(visit):
    return await visit.peer("@deep@globex.example").ask("hi")
"""
CONFIG = """
[agents.deep]
kind = "python"
target = "agents:deep"

[agents.passes]
kind = "python"
target = "agents:passes"

[agents.near]
kind = "python"
target = "agents:passes"
chain_depth = 6
"""


class Two(NamedTuple):
    """Who calls, and who is called and knows the other by its key."""

    acme: Organisation
    globex: Organisation

    def ask(self, agent: str, token: str, fields: HeaderList = ()) -> Reply:
        own = [("authorization", f"Bearer {token}"), ("content-type", "application/json")]
        url = f"{self.acme.url}/v1/chat/completions"
        return request("POST", url, [*own, *fields], chat_body("hi", agent))


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    with Stage(tmp_path_factory.mktemp("budget")) as stage:
        globex = stage.organisation("globex.example", config=CONFIG, agents=AGENTS)
        acme = stage.organisation("acme.example", config=CONFIG, agents=AGENTS)
        there = ("--url", globex.url, "--dialect", "agents_api")
        acme.carnet("peers", "add", "globex.example", *there)
        globex.carnet("peers", "add", "acme.example", "--url", acme.url)
        globex.start()
        acme.start()
        yield Two(acme, globex)


FAR = "@deep@globex.example"


@pytest.mark.parametrize("agent", [FAR, "passes"])
def test_without_a_budget_its_chains_are_as_deep_as_the_dialect_says(two: Two, agent: str) -> None:
    assert two.ask(agent, two.acme.token).text == "1 of 16"


@pytest.mark.parametrize("agent", [FAR, "passes"])
def test_a_budget_of_the_token_above_tangles_default_holds_there(two: Two, agent: str) -> None:
    token = two.acme.new_token(f"eight-{agent.strip('@')[:4]}", "--chain-depth", "8")
    assert two.ask(agent, token).text == "1 of 7"


def test_a_budget_of_the_agent_above_it_holds_there(two: Two) -> None:
    assert two.ask("near", two.acme.token).text == "1 of 5"


def test_one_above_the_default_of_the_dialect_raises_nothing(two: Two) -> None:
    token = two.acme.new_token("forty", "--chain-depth", "40")
    assert two.ask(FAR, token).text == "1 of 16"


def test_the_lower_of_two_budgets_holds(two: Two) -> None:
    token = two.acme.new_token("nine", "--chain-depth", "9")
    assert two.ask("near", token).text == "1 of 5"
    token = two.acme.new_token("five", "--chain-depth", "5")
    assert two.ask("near", token).text == "1 of 4"


def test_a_chain_that_came_in_this_dialect_is_held_to_it_too(two: Two) -> None:
    token = two.acme.new_token("seven", "--chain-depth", "7")
    fields = [
        ("x-agents-api-caller-agent", "source"),
        ("x-agents-api-caller-host", "https://source.example"),
        ("x-agents-api-chain-depth", "5"),
        ("x-agents-api-chain-root", "root-1"),
    ]
    assert two.ask(FAR, token, fields).text == "6 of 6"
    fields[2] = ("x-agents-api-chain-depth", "6")
    refused = two.ask(FAR, token, fields)
    assert (refused.status, refused.code) == (429, "bridge_depth_exceeded")
    assert refused.json["error"]["stamp"] == "chain_depth"
