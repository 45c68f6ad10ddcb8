"""What the drawer shows of a call to another organisation is what that one has received."""

from collections.abc import Iterator
from html import unescape
from typing import Any, NamedTuple

import pytest

from tests.console.pages import an_admin
from tests.gateway.people.browser import Browser
from tests.support.federation import organisation
from tests.support.organisation import Organisation

RUN = "x-tangle-runid"
FOUND = {"x-tangle-forwarded-depth": "1"}
AGENTS = """
[agents.lead]
kind = "python"
target = "agents:lead"

[agents.by-samvad]
kind = "samvad"
url = "{url}/agents/open"

[agents.by-token]
kind = "tangle"
url = "{url}/v1"
model = "words"
token = {{file = "var/globex.token"}}

[peers."globex.example"]
url = "{url}"
"""
LEAD = """

async def lead(visit: carnet.Visit):
    async for event in visit.peer(visit.text)("hello"):
        yield event
"""


class Scene(NamedTuple):
    """Acme calls Globex in several dialects, and knows it by its key; each with its admin."""

    acme: Organisation
    ours: Browser
    theirs: Browser


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("sent")
    acme, globex = (organisation(folder / name, f"{name}.example") for name in ("acme", "globex"))
    globex.configure(
        '[agents.open]\ntarget = "agents:words"\ntrust = "public"\n'
        f'[peers."acme.example"]\nurl = "{acme.url}"\ncredit = "10"\n'
    )
    token = globex.new_token("acme", "--peer", "acme.example")
    (acme.folder / "var" / "globex.token").write_text(token)
    acme.configure(
        AGENTS.format(url=globex.url), agents=(acme.folder / "agents.py").read_text() + LEAD
    )
    acme.start()
    globex.start()
    yield Scene(acme, an_admin(acme).browser(), an_admin(globex).browser())
    assert (acme.stop(), globex.stop()) == (0, 0)


def called(pair: Scene, callee: str) -> tuple[dict[str, Any], dict[str, Any], str]:
    """What we show of a call to it, what the other side shows of what came, and our drawer."""
    reply = pair.ours.chat(callee, "lead")
    run = reply.headers[RUN]
    (root,) = pair.ours.send("GET", f"/runs/{run}?full=true").json["turns"]
    made = root["legs"] or [leg for child in root["children"] for leg in child["legs"]]
    (leg,) = made
    turn = root["turn"] if root["legs"] else root["children"][0]["turn"]
    (theirs,) = pair.theirs.send("GET", f"/runs/{run}?full=true").json["turns"]
    page = pair.ours.send("GET", f"/console/runs/{run}/wire?turn={turn}").body.decode()
    return leg, theirs, unescape(page)


@pytest.mark.parametrize("callee", ["@open@globex.example", "by-samvad"])
def test_what_we_signed_is_what_the_other_side_has_verified(pair: Scene, callee: str) -> None:
    leg, theirs, page = called(pair, callee)
    assert leg["signed"]["base"] == theirs["wire"]["base"]
    assert leg["signed"]["base"] in page
    assert leg["signed"]["digest"] in page
    assert "What we signed" in page


def test_a_call_with_a_token_shows_the_headers_that_came_and_no_token(pair: Scene) -> None:
    leg, theirs, page = called(pair, "by-token")
    wire = theirs["wire"]
    brought = {"depth", "run", "turn", "speaker"}
    assert (set(wire["tangle"]), leg["signed"]) == (brought, None)
    assert leg["headers"] == {
        "x-tangle-forwarded-depth": str(theirs["depth"]),
        RUN: leg["headers"][RUN],
        "x-tangle-turnid": theirs["turn"],
        "x-tangle-speaker": theirs["speaker"],
    }
    token = (pair.acme.folder / "var" / "globex.token").read_text()
    assert token not in page
    assert "It was not signed" in page


def test_of_a_call_that_never_left_no_header_is_shown(pair: Scene) -> None:
    reply = pair.ours.chat("@open@nowhere.example", "lead")
    run = reply.json["carnet"]["run"] if "carnet" in reply.json else reply.headers[RUN]
    (root,) = pair.ours.send("GET", f"/runs/{run}?full=true").json["turns"]
    assert [(leg["headers"], leg["signed"]) for leg in root["legs"]] == [(None, None)]


def test_a_travel_document_is_named_and_not_shown(pair: Scene) -> None:
    leg, _, page = called(pair, "@open@globex.example")
    assert '"carnet": ***' in leg["signed"]["base"]
    assert "eyJ" not in leg["signed"]["base"]
    assert FOUND.items() <= leg["headers"].items()
    assert page.count("x-tangle-runid") > 1
