"""Who is known elsewhere, why it is trusted, and how calls to its agents went."""

from collections.abc import Iterator
from typing import Any

import pytest

from carnet.gateway.partners.directory import (
    Directory,
    KnownCard,
    Partner,
    PartnerAgent,
    SectionElsewhere,
    agent_page,
    partner_page,
)
from carnet.ports.trust.trust import Peer
from carnet.ports.world.records import CallOut
from carnet.testing.wait import until
from tests.console.pages import a_viewer, an_admin
from tests.gateway.people.browser import Browser, Somebody
from tests.support.federation import introduce, organisation
from tests.support.organisation import Organisation

URL = "https://globex.example/api"
GLOBEX = Peer(domain="globex.example", url=URL, from_file=True)


def call(to: str, *, took: int | None = 10, state: str = "done", began: int = 1) -> CallOut:
    return CallOut(to=to, state=state, code=None, cost=5, began=began, took=took)


def card(url: str) -> KnownCard:
    return KnownCard(url=url, dialect="A2A", name="Critic", description="", skills=("chat",))


def test_what_is_known_is_sorted_by_whose_it_is() -> None:
    away = SectionElsewhere(name="away", dialect="samvad", url=f"{URL}/agents/critic")
    lone = SectionElsewhere(name="lone", dialect="tangle", url="https://other.example:8443/v1")
    directory = Directory([Partner("globex.example", URL, peer=GLOBEX)], [away, lone])
    directory.take_card(card(f"{URL}/agents/critic/.well-known/agent-card.json"))
    directory.take_card(card(f"{URL}/.well-known/agent-card.json"))
    directory.take_card(card("https://globex.example:8443/api/agents/x"))  # another gateway
    for section in (away, lone):
        directory.take_section(section)
    for to in ("away", "@critic@globex.example", "agent://critic.globex.example", "lone"):
        directory.take_call(call(to))
    directory.take_call(call("agent://stranger.example"))
    directory.take_call(call("gone"))  # an agent that was ours once
    groups = directory.groups()
    found = {group.domain: [each.address for each in group.callees()] for group in groups}
    assert groups[0].domain == "globex.example"  # a peer stands before the others
    assert set(found["globex.example"]) >= {
        "away",
        "@critic@globex.example",
        "@globex.example",
        "agent://critic.globex.example",
    }
    assert found["globex.example:8443"] == ["@x@globex.example:8443"]
    assert found["other.example:8443"] == ["lone"]
    assert found["stranger.example"] == ["agent://stranger.example"]
    assert "gone" not in str(found)


def test_how_long_calls_take_is_of_those_that_ended_well() -> None:
    callee = PartnerAgent("@critic@globex.example")
    callee.calls = [call("x", took=took, began=100 - took) for took in range(1, 101)]
    callee.calls += [call("x", took=9999, state="failed"), call("x", took=None, state="refused")]
    page = agent_page(callee)
    assert (page["p50"], page["p95"]) == (51, 96)
    assert (page["calls"], page["failed"], page["cost"]) == (102, 2, "0.000005")
    assert agent_page(PartnerAgent("x"))["p95"] is None


@pytest.mark.parametrize(
    ("upstream", "state"), [(f"{URL}/v1", "open"), ("https://globex.example/apis", "closed")]
)
def test_the_breaker_of_a_partner_is_that_of_its_own_addresses(upstream: str, state: str) -> None:
    circuits = [{"upstream": upstream, "state": "open", "failures": 5}]
    page = partner_page(Partner("globex.example", URL, peer=GLOBEX), circuits, None)
    assert page["circuit"]["state"] == state
    assert page["trust"] is None


# ------------------------------------------------------------------ at a real gateway


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    """It calls Globex, which was listed by a command, has a pinned key, and then stops."""
    folder = tmp_path_factory.mktemp("directory")
    acme, globex = (organisation(folder / name, f"{name}.example") for name in ("acme", "globex"))
    introduce(acme, globex)
    globex.start()
    key = globex.json("keys", "list")["keys"][0]
    acme.carnet("peers", "add", "agent://globex.example", "--key", key["key"])
    acme.start()
    browser = Somebody(acme).browser()
    assert browser.chat("hello", "@words@globex.example").status == 200
    assert globex.stop() == 0
    until(lambda: browser.chat("hello", "@words@globex.example").status >= 500)
    yield acme
    assert acme.stop() == 0


def partner(browser: Browser) -> dict[str, Any]:
    (found,) = browser.send("GET", "/partners").json["partners"]
    assert isinstance(found, dict)
    return found


def test_a_partner_is_told_with_its_agents_and_why_it_is_trusted(acme: Organisation) -> None:
    found = partner(an_admin(acme).browser())
    (agent,) = found["agents"]
    assert (found["domain"], found["is_peer"]) == ("globex.example", True)
    assert found["trust"]["how"] in {"file", "store"}
    assert found["trust"]["known_by"] == ["our token"]
    (pin,) = found["trust"]["pinned"]
    assert (pin["sender"], pin["state"]) == ("agent://globex.example", "live")
    assert agent["address"] == "@words@globex.example"
    assert (agent["calls"] - agent["failed"], agent["code"]) == (1, "provider_unavailable")
    assert 0 < agent["p50"] <= agent["p95"]
    assert agent["last"] == found["last"]


def test_an_operator_is_told_how_calls_went_and_not_whom_we_trust(acme: Organisation) -> None:
    operator = Somebody(acme)
    options = ("--person", operator.name, "--scope", "metrics", "--scope", "run:read")
    watching = Browser(acme)
    assert watching.by_token(acme.new_token(f"{operator.name}-sees", *options)).status == 201
    found = partner(watching)
    assert found["trust"] is None
    assert found["agents"][0]["calls"] > 1  # those that were tried again are counted
    page = watching.send("GET", "/console/agents").body.decode()
    assert ("@words@globex.example" in page, "Trusted because" in page) == (True, False)


def test_who_only_looks_is_told_of_no_partner(acme: Organisation) -> None:
    viewer = a_viewer(acme).browser()
    assert viewer.send("GET", "/partners").status == 403
    assert viewer.send("GET", "/console/agents.json").json["elsewhere"] is None
