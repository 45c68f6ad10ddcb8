"""Two Carnets that list one another, each in its own way: what their operators type, and get."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import carnet
from carnet.runtime.client.key import ClientKey, load_key
from tests.support.federation import organisation
from tests.support.http import request
from tests.support.organisation import Organisation
from tests.support.plain import saying_only

CLERK = """

from collections.abc import AsyncIterator
from typing import Any

clerk = carnet.agent("clerk")


@clerk
async def talk(visit):
    return visit.text


@clerk.skill("add")
async def add(a: int, b: int) -> dict[str, Any]:
    return {"total": a + b}


@clerk.skill("recite")
async def recite(lines: list[str]) -> AsyncIterator[Any]:
    for line in lines:
        yield line
    yield carnet.Result({"count": len(lines)})
"""

RELAY = """

relay_add = carnet.agent("relay_add")


@relay_add.skill("add")
async def passed_on(a: int, b: int, visit: carnet.Visit) -> dict:
    return await visit.peer("@clerk@globex.example").skill("add", {"a": a, "b": b})
"""

ADD = ("skill=add", "a:=2", "b:=3")


class Scene(NamedTuple):
    """Acme lists Globex as the README does; Globex lists Acme as one that speaks SAMVAD."""

    acme: Organisation
    globex: Organisation
    key: ClientKey


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("listed")
    acme, globex = (organisation(folder / name, f"{name}.example") for name in ("acme", "globex"))
    key = load_key(folder / "client.key")
    config = globex.folder / "carnet.toml"
    config.write_text(config.read_text().replace("default = true", ""))
    globex.configure(
        '[agents.clerk]\ntarget = "agents:clerk"\ndefault = true\ntrust = "public"\n'
        '[agents.vault]\ntarget = "agents:clerk"\nrequire_auth = true\n'
        '[agents.hall]\ntarget = "agents:clerk"\n',
        agents=(globex.folder / "agents.py").read_text() + CLERK,
    )
    token = globex.new_token("from-acme", "--peer", "acme.example")
    (acme.folder / "var" / "globex.token").write_text(token)
    (acme.folder / "var" / "vault.token").write_text(globex.new_token("at-the-vault"))
    acme.configure(
        f"""
[agents.with_token]
kind = "samvad"
url = "{globex.url}/agents/vault"
token = {{file = "var/vault.token"}}
max_cost = "0"

[agents.desk]
kind = "tangle"
url = "{globex.url}/agents/clerk/v1"
token = {{file = "var/globex.token"}}
trust = "public"
max_cost = "0"

[agents.relay_add]
target = "agents:relay_add"
""",
        agents=(acme.folder / "agents.py").read_text() + RELAY,
    )
    acme.carnet("peers", "add", "globex.example", "--url", globex.url)
    acme.carnet("peers", "add", f"agent://client-{key.kid}", "--key", key.public_text)
    globex.carnet("peers", "add", "acme.example", "--url", acme.url, "--dialect", "samvad")
    acme.start()
    globex.start()
    yield Scene(acme, globex, key)
    acme.stop()
    globex.stop()


def turn_of(gateway: Organisation, run: str) -> dict[str, Any]:
    """What a gateway recorded of the one turn of a run."""
    (turn,) = gateway.json("run", "show", run)["turns"]
    return dict(turn)


# ---------------------------------------------------------------------- skills of a Tangle peer


@pytest.mark.parametrize("address", ["agent://globex.example", "@clerk@globex.example"])
def test_a_skill_is_asked_of_a_peer_that_was_just_listed(scene: Scene, address: str) -> None:
    page = scene.acme.json("call", address, *ADD)
    assert page["carnet"] == {"result": {"total": 5}}
    assert page["choices"][0]["message"]["content"] == '{"total":5}'


@pytest.mark.parametrize("stream", [False, True])
def test_the_receipt_of_a_skill_covers_its_result_and_is_kept(
    scene: Scene,
    stream: bool,  # noqa: FBT001  the two ways to ask
) -> None:
    wanted = {"skill": "recite", "payload": {"lines": ["a", "b"]}}
    answer = scene.acme.chat("x", "@clerk@globex.example", carnet=wanted, stream=stream)
    assert (answer.status, b'"carnet":{"result":{"count":2}}' in answer.body) == (200, True)
    (outbound,) = turn_of(scene.acme, answer.headers["x-tangle-runid"])["legs"]
    assert (outbound["status"], outbound["receipt"].count(".")) == ("done", 2)


def test_an_agent_asks_a_peer_for_a_skill(scene: Scene) -> None:
    page = scene.acme.json("call", "relay_add", *ADD)
    assert page["carnet"] == {"result": {"total": 5}}


async def test_a_skill_passes_from_a_signed_client_to_a_tangle_upstream(scene: Scene) -> None:
    async with carnet.connect(f"{scene.acme.url}/agents/desk", key=scene.key) as client:
        assert await client.call("add", a=2, b=3) == {"total": 5}


def test_a_skill_is_not_asked_of_a_peer_that_is_no_carnet(scene: Scene, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("their-token\n")
    with saying_only(404) as url:
        known = ("--url", url, "--token-file", str(tmp_path / "token"))
        scene.acme.carnet("peers", "add", "plain.example", *known)
        ran = scene.acme.try_carnet("call", "@clerk@plain.example", *ADD)
    assert ran.returncode == 1
    assert "carnet peers add plain.example --dialect samvad" in ran.stderr


# ---------------------------------------------------------------------- the default agent


def test_the_default_agent_of_a_samvad_peer_is_reached_by_its_name(scene: Scene) -> None:
    answer = scene.globex.chat("hello", "@echo@acme.example")
    assert (answer.status, answer.text) == (200, "hello")
    ran = scene.globex.carnet("call", "agent://echo.acme.example", "hello", "--direct")
    assert ran.stdout.strip() == "hello"


# ---------------------------------------------------------------------- straight from the terminal


def test_a_direct_call_to_a_listed_carnet_carries_the_document_and_brings_a_receipt(
    scene: Scene,
) -> None:
    words = ("call", "agent://globex.example", *ADD, "--direct")
    headers = scene.acme.json(*words, "--dry-run")["headers"]
    assert ';tag="carnet"' in headers["signature-input"]
    assert headers["carnet"].count(".") == 2
    shown = scene.acme.carnet(*words, "--dry-run", "--as", "sk-of-somebody")
    assert "sk-of-somebody" not in shown.stdout
    assert "digest and signature are of the body with it" in shown.stderr
    page = scene.acme.json(*words)
    assert (page["result"], page["cost"]) == ({"total": 5}, "0 credits")
    assert page["receipt"].count(".") == 2
    there = turn_of(scene.globex, page["run"])
    assert (there["actor"], there["depth"]) == ("peer:acme.example", 0)
    assert "cost 0 credits" in scene.acme.carnet(*words).stderr


def test_a_person_signs_a_direct_call_without_a_document(scene: Scene, tmp_path: Path) -> None:
    key = load_key(tmp_path / "k")
    scene.globex.carnet("peers", "add", f"agent://client-{key.kid}", "--key", key.public_text)
    words = ("call", "agent://globex.example", "hello", "--direct", "--key", str(tmp_path / "k"))
    page = scene.acme.json(*words)
    assert (page["result"], "receipt" in page) == ({"text": "hello"}, False)


def test_an_answer_that_the_pinned_key_did_not_sign_is_no_answer(
    scene: Scene, tmp_path: Path
) -> None:
    other = load_key(tmp_path / "other.key").public_text
    scene.acme.carnet("peers", "add", "agent://globex.example", "--key", other)
    try:
        ran = scene.acme.try_carnet("call", "agent://globex.example", "hello", "--direct")
    finally:
        scene.acme.carnet("peers", "remove", "agent://globex.example")
    assert (ran.returncode, ran.stdout) != (0, "hello\n")
    assert "is not signed as it must be" in ran.stderr


def test_the_card_of_a_peer_is_shown_by_its_address(scene: Scene) -> None:
    page = scene.acme.json("agents", "inspect", "@clerk@globex.example")
    assert page["url"] == f"{scene.globex.url}/agents/clerk"
    assert {skill["id"] for skill in page["skills"]} == {"chat", "add", "recite"}
    assert scene.acme.json("agents", "inspect", "agent://globex.example")["is_carnet"]


# ------------------------------------------------------------------------- a token beside all


def test_an_agent_may_ask_even_peers_for_a_token(scene: Scene) -> None:
    """R50: the signature of a listed Carnet is enough for `authenticated`, and not for this."""
    assert scene.acme.json("call", "@hall@globex.example", *ADD)["carnet"]["result"] == {"total": 5}
    ran = scene.acme.try_carnet("call", "@vault@globex.example", *ADD)
    assert ran.returncode != 0
    assert "403 skill_forbidden" in ran.stderr
    assert scene.acme.json("call", "with_token", *ADD)["carnet"]["result"] == {"total": 5}
    url = scene.globex.url + "/agents/{}/.well-known/agent.json"
    schemes = [
        request("GET", url.format(name)).json["auth"]["schemes"] for name in ("vault", "hall")
    ]
    assert schemes == [["bearer"], ["bearer", "none"]]
