"""What we show of ourselves: a credential for each request, and evidence for each recipient."""

import json
import secrets
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import Struct

from tests.faults.stores import move_to
from tests.interop.conftest import Databases
from tests.interop.identity.scene import AGENTS
from tests.support.organisation import Organisation

CALLER = """
@carnet.agent("front")
async def front(visit):
    yield await visit.peer("@who@globex.example").ask(visit.text)


@carnet.agent("both")
async def both(visit):
    answers = await visit.fan_out(["@who@globex.example", "@other@globex.example"], visit.text)
    yield json.dumps([json.loads(each.text) for each in answers])


@carnet.agent("far")
async def far(visit):
    yield await visit.peer("front").ask(visit.text)
"""
OWN = """
[agents.{name}]
kind = "python"
target = "agents:{name}"
"""
AT_ACME = """
[identity]
names = "mailto"

[peers."globex.example"]
url = "{url}"
dialect = "a2a"
auth = "jwt"

[agents.direct]
kind = "a2a"
url = "{url}/agents/who"
auth = "jwt"
"""
AT_GLOBEX = """
[peers."acme.example"]
url = "{url}"
credit = "5"

[agents.who]
kind = "python"
target = "agents:who"

[agents.other]
kind = "python"
target = "agents:who"
"""


class Pair(Struct, frozen=True):
    """Acme calls Globex, and is known there by credentials."""

    acme: Organisation
    globex: Organisation

    def ask(self, agent: str, *, token: str | None = None) -> Any:
        """What is said of the caller at the other end."""
        reply = self.acme.chat("hello", agent, token=token)
        assert reply.status == 200, reply
        return json.loads(reply.text)


@pytest.fixture(scope="module")
def pair(database: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("pair")
    made = []
    for domain in ("acme.example", "globex.example"):
        (folder / domain).mkdir()
        gateway = Organisation(folder / domain, domain)
        url = database()
        if url:
            move_to(gateway, url)
        made.append(gateway)
    acme, globex = made
    own = "".join(OWN.format(name=name) for name in ("front", "both", "far"))
    starter = (acme.folder / "agents.py").read_text()
    acme.configure(AT_ACME.format(url=globex.url) + own, agents=f"{starter}\n{AGENTS}{CALLER}")
    globex.configure(AT_GLOBEX.format(url=acme.url), agents=f"{starter}\n{AGENTS}")
    for each in made:
        each.start()
    yield Pair(acme, globex)
    for each in made:
        each.stop()


def test_an_agent_of_ours_is_known_by_its_address_and_whom_it_acts_for(pair: Pair) -> None:
    """mentionable:evidence:on-behalf-of: the immediate caller first."""
    found = pair.ask("front")
    assert (found["how"], found["address"]) == ("a2a-jwt", "@front@acme.example")
    (evidence,) = found["evidence"]
    assert evidence[:2] == ["@front@acme.example", ["@owner@acme.example"]]
    assert found["behalf"] == ["@owner@acme.example"]


def test_a_person_is_named_by_mail_where_that_was_verified(pair: Pair) -> None:
    """The worked example of the seed."""
    pair.acme.carnet("people", "add", "uma", "--address", "mailto:u@example.com")
    pair.acme.carnet("people", "link", "uma", "--address", "mailto:u@example.com", "--verified")
    token = pair.acme.new_token("uma-1", "--person", "uma")
    found = pair.ask("front", token=token)
    assert found["evidence"][0][:2] == ["@front@acme.example", ["mailto:u@example.com"]]


def test_one_within_another_stands_before_the_person(pair: Pair) -> None:
    found = pair.ask("far")
    assert found["evidence"][0][:2] == [
        "@front@acme.example",
        ["@far@acme.example", "@owner@acme.example"],
    ]


def test_each_sibling_is_given_evidence_of_its_own(pair: Pair) -> None:
    """The row mentionable:evidence:rebound."""
    for found in pair.ask("both"):
        assert found["evidence"][0][:2] == ["@both@acme.example", ["@owner@acme.example"]]


def test_an_agent_that_stands_before_another_calls_as_itself(pair: Pair) -> None:
    found = pair.ask("direct")
    assert (found["how"], found["address"]) == ("a2a-jwt", "@direct@acme.example")


def test_both_sides_record_who_pays_and_how_it_was_known(pair: Pair) -> None:
    run = f"run-{secrets.token_hex(4)}"
    reply = pair.acme.chat("hello", "front", headers=[("x-tangle-runid", run)])
    assert reply.status == 200
    turns = pair.globex.json("explain", run)["turns"]
    grounds = {each["guard"]: each["found"] for each in turns[0]["grounds"]}
    assert "a2a-jwt" in grounds["in time"]
    assert grounds["paying"].startswith("acme.example@acme.example")
    (out,) = [
        each
        for each in pair.acme.json("explain", run)["turns"]
        if each["agent"] == "@who@globex.example"
    ]
    assert out["turn"] == turns[0]["turn"]
    paying = {each["guard"]: each["found"] for each in out["grounds"]}["paying"]
    assert paying.startswith("starter@acme.example")


def test_nothing_of_a_credential_is_written_anywhere(pair: Pair) -> None:
    pair.ask("front")
    for gateway in (pair.acme, pair.globex):
        assert b"eyJhbGciOiJFZERTQSIs" not in gateway.written()
