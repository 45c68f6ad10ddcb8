"""Delegations that go on: from our gateway to another Carnet, and to the real server of the SDK."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from samvad.delegation import verify_token

from carnet.testing.address import Address
from carnet.testing.wait import until
from tests.interop.samvad.sdk_scene import serving
from tests.support.federation import organisation
from tests.support.http import Reply, request
from tests.support.organisation import Organisation
from tests.support.signing.delegations import ours, sdk
from tests.support.signing.signed import Line, Sender, message, now, result

SERVER = Path(__file__).with_name("sdk_delegated.py")
ACME, GLOBEX = "agent://acme.example", "agent://globex.example"

TELLER = """

from typing import Any

teller = carnet.agent("teller")


@teller.skill("tell")
async def tell(visit: carnet.Visit) -> dict[str, Any]:
    note(visit)
    found = visit.call.delegation
    links = [] if found is None else found.chain()
    return {
        "links": [[link.issuer, link.subject, link.hops, link.is_ours] for link in links],
        "behalf": list(visit.carnet.on_behalf_of),
        "last_depth": visit.carnet.last_depth,
        "calls": None if visit.carnet.budget is None else visit.carnet.budget.calls,
    }
"""

AGENTS = """
[peers."globex.example"]
url = "{globex}"
dialect = "samvad"

[agents.forward]
kind = "samvad"
url = "{globex}/agents/teller"
identity = "agent://teller.globex.example"
trust = "public"

[agents.sdk]
kind = "samvad"
url = "{sdk}"
trust = "public"

[agents.deputy]
kind = "python"
target = "agents:relay"
trust = "public"
"""


class Scene(NamedTuple):
    """Our gateway, another one, and what the server of the SDK knows us by."""

    acme: Organisation
    globex: Organisation
    key: str
    alice: Sender  # who grants; both gateways know its key
    bob: Sender  # who calls us

    def ask(
        self, agent: str, skill: str, token: str | None, *, mode: str = "sync", **payload: Any
    ) -> Reply:
        asked = message(
            self.bob,
            f"agent://{agent}.acme.example",
            target=f"/agents/{agent}/agent/{'task' if mode == 'async' else 'message'}",
            skill=skill,
            mode=mode,
            payload=payload,
            delegationToken=token,
        )
        with Line(self.acme.port) as line:
            return line.send(asked)

    def ran(self) -> str:
        trace = self.globex.folder / "ran.txt"
        return trace.read_text() if trace.exists() else ""


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("delegating")
    sdk = Address()
    acme, globex = (organisation(folder / name, f"{name}.example") for name in ("acme", "globex"))
    alice, bob = Sender("agent://client-alice"), Sender("agent://client-bob")
    acme.configure(AGENTS.format(globex=globex.url, sdk=sdk.url))
    globex.configure(
        '[agents.teller]\nkind = "python"\ntarget = "agents:teller"\ntrust = "public"\n',
        agents=(globex.folder / "agents.py").read_text() + TELLER,
    )
    globex.carnet("peers", "add", "acme.example", "--url", acme.url)
    for gateway, sender in ((acme, alice), (acme, bob), (globex, alice)):
        gateway.carnet("peers", "add", sender.identity, "--key", sender.public)
    acme.start()
    globex.start()
    (own,) = request("GET", acme.url + "/.well-known/carnet.json").json["keys"]
    with serving(SERVER, sdk, folder, **{"acme.example": own["key"]}):
        yield Scene(acme, globex, own["key"], alice, bob)
    assert (acme.stop(), globex.stop()) == (0, 0)


def granted(scene: Scene, **more: Any) -> str:
    whole = {"scope": ["tell", "shown"], "maxDepth": 3, **more}
    return ours(scene.alice, scene.bob.identity, ACME, **whole)


def test_a_carnet_is_shown_the_whole_chain_and_verifies_it(scene: Scene) -> None:
    token = granted(scene, bud={"calls": 5})
    page = result(scene.ask("forward", "tell", token))
    alice, bob = scene.alice.identity, scene.bob.identity
    assert page["links"] == [[alice, bob, 3, True], [ACME, ACME, 2, True]]
    assert page["behalf"] == [alice]
    assert page["last_depth"] == 2
    assert page["calls"] == 5  # a call that is passed on is one with that of its callee


def test_without_a_token_none_is_made(scene: Scene) -> None:
    page = result(scene.ask("forward", "tell", None))
    assert page["links"] == []


def test_a_token_of_an_sdk_goes_on_by_our_word(scene: Scene) -> None:
    """Nobody was addressed in it, so no link can show it: it says who acted before."""
    token = sdk(scene.alice, scene.bob.identity, scope="tell", maxDepth=2)
    page = result(scene.ask("forward", "tell", token))
    assert page["links"] == [[ACME, ACME, 1, True]]
    assert page["last_depth"] == 1


def test_the_real_server_of_the_sdk_takes_what_goes_on(scene: Scene) -> None:
    """It has verified it, and our own word for who acted is all that it can see."""
    end = int(now()) + 200
    found = result(scene.ask("sdk", "shown", granted(scene, exp=end)))
    assert found["sender"] == ACME
    claims = verify_token(found["token"], issuer_public_key_b64=scene.key)
    del claims["iat"]
    assert claims == {
        "iss": ACME,
        "sub": ACME,
        "exp": end,
        "scope": ["tell", "shown"],
        "maxDepth": 2,
        "act": {"sub": scene.bob.identity},
    }


def test_a_long_token_goes_on_for_fifteen_minutes(scene: Scene) -> None:
    found = result(scene.ask("sdk", "shown", granted(scene, exp=int(now()) + 7200)))
    claims = verify_token(found["token"], issuer_public_key_b64=scene.key)
    assert claims["exp"] - claims["iat"] == 900


@pytest.mark.parametrize(("agent", "skill"), [("forward", "tell"), ("sdk", "shown")])
def test_a_token_without_a_hop_for_it_does_not_go_on(scene: Scene, agent: str, skill: str) -> None:
    before = scene.ran()
    reply = scene.ask(agent, skill, granted(scene, maxDepth=1))
    assert (reply.status, reply.headers["carnet-code"]) == (400, "delegation_exceeded")
    assert scene.ran() == before


def test_a_skill_outside_of_the_scope_is_not_asked_for_elsewhere(scene: Scene) -> None:
    """The deputy was granted to talk, and what it would ask of another is not that."""
    before = scene.ran()
    token = granted(scene, scope=["chat"])
    reply = scene.ask("deputy", "chat", token, text="forward hello")
    assert (reply.status, reply.headers["carnet-code"]) == (400, "delegation_exceeded")
    assert scene.ran() == before
    reply = scene.ask("deputy", "chat", granted(scene, scope=["chat", "tell"]), text="forward hi")
    assert reply.status == 200, reply.body
    assert scene.ran() != before


def test_a_task_keeps_its_delegation_until_it_runs(scene: Scene) -> None:
    token = granted(scene, once=True)
    accepted = scene.ask("forward", "tell", token, mode="async")
    assert accepted.status == 202, accepted.body
    path = f"{scene.acme.url}/agents/forward/agent/task/{accepted.json['taskId']}"
    record = until(
        lambda: request("GET", path).json, lambda record: record["status"] in {"done", "failed"}
    )
    assert record["status"] == "done", record
    assert [link[0] for link in record["result"]["links"]] == [scene.alice.identity, ACME]
    again = scene.ask("forward", "tell", token, mode="async")
    assert (again.status, again.headers["carnet-code"]) == (401, "delegation_replayed")
