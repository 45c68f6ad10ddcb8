"""All dialects in one list: names of their own, and no words for what they are not asked."""

import pytest

from carnet.errors import RouteNotFound
from carnet.http.refusal import Refusing
from carnet.wire.dialects import DIALECTS, a2a, agents_api, by_peer, openai, samvad
from carnet.wire.dialects.dialect import (
    AgentList,
    AgentView,
    GatewayFacts,
    QuestionResult,
    TaskList,
)

GATEWAY = GatewayFacts(domain="acme.example", currency="credits")
AGENT = AgentView(
    id="agent://acme.example",
    name="echo",
    version="1.0.0",
    description="It echoes.",
    url="https://acme.example",
    skills=(),
    keys=(),
    requests_per_minute=1,
    requests_per_sender=1,
)


def test_each_has_a_name_and_routes_of_its_own() -> None:
    assert len({dialect.name for dialect in DIALECTS}) == len(DIALECTS)
    routes = [(way.method, way.path) for dialect in DIALECTS for way in dialect.ways]
    assert len(set(routes)) == len(routes)


def test_what_a_dialect_has_no_words_for_is_not_found() -> None:
    with pytest.raises(RouteNotFound):
        openai.DIALECT.tell("chat", AGENT)
    lists: tuple[QuestionResult, ...] = (TaskList(tasks=()), AgentList(names=(), gateway=GATEWAY))
    for result in lists:
        with pytest.raises(RouteNotFound):
            samvad.DIALECT.tell("show", result)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (b"/agent/message", "samvad"),
        (b"/agent/no/such/path", "samvad"),
        (b"/agents/echo/agent/task/1", "samvad"),
        (b"/.well-known/agent.json", "samvad"),
        (b"/agents/echo/.well-known/agent.json", "samvad"),
        (b"/agents-api/v1/agent/echo", "agents_api"),
        (b"/agents-api/v1/chat", "agents_api_http"),
        (b"/agents-api/no/such/path", "agents_api_http"),
        (b"/.well-known/agent.json/x", "openai"),
        (b"/agentless", "openai"),
        (b"/v1/chat/completions", "openai"),
        (b"/", "openai"),
    ],
)
def test_the_path_says_in_whose_words_a_request_is_refused(path: bytes, name: str) -> None:
    assert Refusing(DIALECTS).speaks(path).name == name


def test_peers_are_listed_by_the_name_of_what_they_read() -> None:
    assert by_peer() == {
        "tangle": openai.DIALECT,
        "samvad": samvad.DIALECT,
        "a2a": a2a.DIALECT,
        "agents_api": agents_api.DIALECT,
    }
    assert by_peer([samvad.DIALECT]) == {"samvad": samvad.DIALECT}
