"""What strangers may read of an agent: its card, its introduction, that it lives. Nothing else."""

import pytest

from tests.security.support.scene import UPSTREAM_TOKEN, Scene, nothing_done, seen
from tests.support.http import request

PAGES = ["/.well-known/agent.json", "/agent/intro", "/agent/health"]
# The default one, a public one, one with a price, and three that others answer for.
AGENTS = ["", "/agents/speaker", "/agents/vendor", "/agents/model", "/agents/answer"]


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_of_an_agent_tells_nothing_of_the_house(scene: Scene, agent: str, page: str) -> None:
    """A70: neither folders, nor where an agent really is, nor who is known here."""
    with nothing_done(scene):
        reply = request("GET", scene.acme.url + agent + page)
    assert reply.status == 200
    text = seen(reply)
    hidden = [str(scene.acme.folder), scene.hostile.url, UPSTREAM_TOKEN, "globex", "client-alice"]
    for word in (*hidden, "sqlite", "uvicorn", "agents:echo"):
        assert word.encode() not in text


def test_the_pages_of_nobody_are_not_there(scene: Scene) -> None:
    """A70: and the answer says no name back."""
    for page in PAGES:
        reply = request("GET", f"{scene.acme.url}/agents/nobody.at.all{page}")
        assert (reply.status, reply.headers["carnet-code"]) == (404, "agent_not_found")
        assert b"nobody.at.all" not in seen(reply)


def test_the_keys_that_are_published_are_public_ones(scene: Scene) -> None:
    """A71: one page says which keys sign; whoever reads it can sign with none of them."""
    keys = request("GET", scene.acme.url + "/.well-known/carnet.json").json["keys"]
    card = request("GET", scene.acme.url + "/.well-known/agent.json").json["publicKeys"]
    assert {key["kid"]: key["key"] for key in keys} == {key["kid"]: key["key"] for key in card}
    assert all(set(key) <= {"kid", "key", "active", "not_after"} for key in (*keys, *card))
