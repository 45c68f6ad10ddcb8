"""Carnets that call one another over A2A: by a token, by their keys, over two hops."""

from collections.abc import Iterator

import pytest

from tests.interop.conftest import Databases
from tests.interop.interrupts.scene import (
    AT_GLOBEX,
    Scene,
    answer,
    resolution,
    state_of,
    three,
)
from tests.interop.test_tenants_abroad import ids, tenants_of
from tests.support.served import executions


@pytest.fixture(scope="module")
def scene(database: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Acme calls Globex, and Globex calls Initech, over A2A and known by their keys."""
    scene = three(tmp_path_factory.mktemp("three"), database, dialect="a2a")
    for gateway in scene:
        gateway.start()
    yield scene
    scene.stop()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_peer_that_is_listed_with_a2a_is_called_in_it(scene: Scene, *, stream: bool) -> None:
    run = f"run-listed-{stream}"
    reply = scene.acme.chat(
        "hello", "@words@globex.example", headers=[("x-tangle-runid", run)], stream=stream
    )
    assert reply.status == 200
    assert b"hello" in reply.body
    (here,) = scene.acme.get(f"/runs/{run}").json["turns"]
    (there,) = scene.globex.json("run", "show", run)["turns"]
    assert (there["actor"], there["depth"]) == ("peer:acme.example", 1)
    (leg,) = here["legs"]
    assert leg["turn"] == there["turn"]


def test_what_an_agent_two_hops_away_asks_for_is_answered_at_the_first(scene: Scene) -> None:
    waits = scene.ask(AT_GLOBEX)
    assert (waits.status, waits.code) == (402, "payment_required")
    asked = waits.json["error"]["interrupt"]
    assert (asked["amount"], asked["message"]) == ("0.02", "The archive costs two cents.")
    done = scene.again(waits, resolution(asked["state"]))
    assert (done.status, done.text) == (200, "sold hi")
    assert scene.again(waits).body == done.body


def test_a_person_approves_in_her_inbox_and_all_three_were_restarted(scene: Scene) -> None:
    text = "@relay@globex.example @guard@initech.example hi"
    waits = scene.ask(text)
    for gateway in scene:
        gateway.kill()
        gateway.start()
    assert answer(scene.acme, waits.json["error"]["interrupt"]["id"]).status == 200
    second = scene.again(waits, text=text)
    assert second.json["error"]["interrupt"]["kind"] == "consent"
    done = scene.again(waits, resolution(state_of(second), "rejected"), text=text)
    assert (done.status, done.text) == (200, "accepted rejected")


def test_each_tenant_is_a_caller_of_its_own(scene: Scene) -> None:
    """R6 at a Carnet that is called over A2A."""
    run = "run-tenants"
    before = len(executions(scene.globex.folder, "words"))
    for token, text in zip(tenants_of(scene.acme), ("first", "second"), strict=True):
        reply = scene.acme.chat(text, "@words@globex.example", token=token, headers=ids(run))
        assert (reply.status, text in reply.text) == (200, True)
    ran = executions(scene.globex.folder, "words")[before:]
    assert len(ran) == len(set(ran)) == 2


def test_a_chain_that_is_too_deep_is_refused_by_the_other_side(scene: Scene) -> None:
    deep = [("x-tangle-runid", "run-deep"), ("x-tangle-forwarded-depth", "2")]
    reply = scene.acme.chat(AT_GLOBEX, "relay", headers=deep)
    assert (reply.status, reply.code) == (429, "bridge_depth_exceeded")
