"""R6 at an A2A agent: tenants of one gateway who chose the same ids are not one caller to it."""

from collections.abc import Iterator

import pytest

from tests.interop.a2a_client.scene import Scene, beside_gateway
from tests.interop.test_tenants_abroad import ids, tenants_of


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with beside_gateway(tmp_path_factory.mktemp("sdk")) as scene:
        yield scene


@pytest.fixture(scope="module")
def tenants(scene: Scene) -> tuple[str, str]:
    return tenants_of(scene.gateway)


@pytest.mark.parametrize("relayed", [False, True], ids=["straight", "by an agent"])
@pytest.mark.parametrize("agent", ["rpc", "plain-rest", "old-rpc"])
def test_each_tenant_has_messages_and_tasks_of_its_own(
    scene: Scene, tenants: tuple[str, str], agent: str, *, relayed: bool
) -> None:
    run, text = f"run-{agent}-{relayed}", f"make {agent} {relayed}"
    for token in tenants:
        words, to = (f"{agent} {text}", "relay") if relayed else (text, agent)
        reply = scene.gateway.chat(words, to, token=token, headers=ids(run))
        assert (reply.status, text in reply.text) == (200, True)
        again = scene.gateway.chat(words, to, token=token, headers=ids(run))
        assert again.body == reply.body  # its own repeat is one
    asked = scene.asked(text=text)
    assert len(asked) == 2
    assert len({each["message"]["messageId"] for each in asked}) == 2
    assert len({each["task"] for each in asked}) == 2
    assert {each["headers"]["x-tangle-runid"] for each in asked} == {run}


def test_a_tenant_cannot_answer_what_another_one_is_asked(
    scene: Scene, tenants: tuple[str, str]
) -> None:
    alice, mallory = tenants
    run, text = "run-answers", "ask whom"
    waits = scene.gateway.chat(text, "rpc", token=alice, headers=ids(run))
    state = waits.json["error"]["interrupt"]["state"]
    brought = ("carnet-resolution", f"{state};outcome=accepted")
    before = len(scene.asked())
    stolen = scene.gateway.chat(text, "rpc", token=mallory, headers=[*ids(run), brought])
    assert stolen.status == 409
    assert len(scene.asked()) == before
    done = scene.gateway.chat(text, "rpc", token=alice, headers=[*ids(run), brought])
    assert (done.status, done.text) == (200, "first accepted")
