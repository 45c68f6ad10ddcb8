"""R6 at real peers: tenants of one gateway who chose the same ids are not one caller to anybody."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.interop.samvad.sdk_scene import beside_gateway
from tests.support.federation import organisation
from tests.support.http import HeaderList
from tests.support.organisation import Organisation
from tests.support.served import executions

SERVER = Path(__file__).with_name("sdk_ids_server.py")


class Scene(NamedTuple):
    """Two gateways that know one another by their keys, and two tenants of the first."""

    acme: Organisation
    globex: Organisation
    tenants: tuple[str, str]


def tenants_of(gateway: Organisation) -> tuple[str, str]:
    return gateway.new_token("alice"), gateway.new_token("mallory")


def ids(run: str) -> HeaderList:
    """The same names for a turn, whoever sends them."""
    return [("x-tangle-runid", run), ("x-tangle-turnid", f"{run}.t0.x")]


@pytest.fixture(scope="module", params=["tangle", "samvad"])
def scene(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp(request.param)
    acme, globex = (organisation(folder / name, f"{name}.example") for name in ("acme", "globex"))
    listed = ("peers", "add", "globex.example", "--url", globex.url)
    acme.carnet(*listed, "--dialect", request.param)
    globex.carnet("peers", "add", "acme.example", "--url", acme.url)
    acme.start()
    globex.start()
    yield Scene(acme, globex, tenants_of(acme))
    acme.stop()
    globex.stop()


@pytest.mark.parametrize("relayed", [False, True], ids=["straight", "by an agent"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_real_carnet_answers_each_tenant_anew(
    scene: Scene, *, relayed: bool, stream: bool
) -> None:
    """The second one neither gets what the first was told, nor is refused for asking otherwise."""
    run, far = f"run-{relayed}-{stream}", "@words@globex.example"
    before = len(executions(scene.globex.folder, "words"))
    for token, text in zip(scene.tenants, ("first", "second"), strict=True):
        asked, agent = (f"{far} {text}", "relay") if relayed else (text, far)
        reply = scene.acme.chat(asked, agent, token=token, headers=ids(run), stream=stream)
        assert reply.status == 200
        words = [word for word in ("first", "second") if word in reply.body.decode()]
        assert words == [text]
        again = scene.acme.chat(asked, agent, token=token, headers=ids(run), stream=stream)
        assert again.body == reply.body  # its own repeat is one
    ran = executions(scene.globex.folder, "words")[before:]
    assert len(ran) == len(set(ran)) == 2
    there = scene.globex.json("run", "show", run)["turns"]
    assert {turn["actor"] for turn in there} == {"peer:acme.example"}
    assert sorted(turn["turn"] for turn in there) == sorted(ran)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_the_real_server_of_the_sdk_sees_a_span_of_its_own_for_each_tenant(
    tmp_path: Path, *, stream: bool
) -> None:
    with beside_gateway(SERVER, tmp_path) as scene:
        tenants, seen = tenants_of(scene.gateway), []
        for agent in ("sdk", "agent://globex.example"):
            for token in tenants:
                reply = scene.gateway.chat(
                    "hi", agent, token=token, headers=ids("run-1"), stream=stream
                )
                assert reply.status == 200
                again = scene.gateway.chat(
                    "hi", agent, token=token, headers=ids("run-1"), stream=stream
                )
                assert again.body == reply.body
                seen.append(caller_in(reply.body))
    assert {(sender, trace) for sender, trace, _ in seen} == {("agent://acme.example", "run-1")}
    assert len({span for _, _, span in seen}) == len(seen) == 4


def caller_in(body: bytes) -> tuple[str, str, str]:
    """Who called, within which trace and span, as the server says in its answer."""
    start = body.index(b"hi agent://")
    _, sender, trace, span = body[start : body.index(b'"', start)].decode().split()
    return sender, trace, span
