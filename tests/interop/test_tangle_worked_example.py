"""The worked example of the Tangle protocol over real processes, every header of every hop."""

import re
from collections.abc import Iterator
from typing import NamedTuple
from unittest.mock import ANY

import pytest

from tests.faults.stores import stored
from tests.interop.conftest import Databases
from tests.support.federation import introduce, organisation
from tests.support.organisation import Organisation
from tests.support.recorder import Recorder, recording
from tests.support.served import executions

RESEARCHER = """
[agents."bridge/sandbox/researcher"]
kind = "tangle"
url = "{url}/v1"
model = "bridge/sandbox/researcher"
may_forward_authorization = true
token = {{file = "var/sandbox-a.example.token"}}
max_cost = "1"
"""

SANDBOX_A = """
[agents.researcher]
kind = "python"
target = "agents:relay"
price = "0.0003"
"""

SANDBOX_B = """
[agents.critic]
kind = "python"
target = "agents:echo"
price = "0.0005"
"""


class Scene(NamedTuple):
    """A router, two sandboxes, and a recorder before each sandbox."""

    router: Organisation
    a: Organisation
    b: Organisation
    before_a: Recorder
    before_b: Recorder


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory, database: Databases) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("example")
    router = organisation(folder / "router", "router.example", database())
    a = organisation(folder / "a", "sandbox-a.example", database())
    b = organisation(folder / "b", "sandbox-b.example", database())
    with recording(a.port) as before_a, recording(b.port) as before_b:
        introduce(router, a)
        introduce(a, b, url=before_b.url)
        router.configure(RESEARCHER.format(url=before_a.url))
        a.configure(SANDBOX_A)
        b.configure(SANDBOX_B)
        for gateway in (router, a, b):
            gateway.start()
        yield Scene(router, a, b, before_a, before_b)
        assert [gateway.stop() for gateway in (router, a, b)] == [0, 0, 0]


def test_every_header_of_every_hop_is_as_the_example_says(scene: Scene) -> None:
    user = scene.router.new_token("user-123", "--forwardable")
    reply = scene.router.chat(
        "@critic@sandbox-b.example is this right?",
        "bridge/sandbox/researcher",
        token=user,
        headers=[("X-Tangle-Forwarded-Depth", "0")],
    )
    assert reply.text == "is this right?"
    run = reply.headers["x-tangle-runid"]
    assert run.startswith("conv_")
    first = {
        "x-tangle-forwarded-authorization": f"Bearer {user}",
        "x-tangle-forwarded-depth": "1",
        "x-tangle-runid": run,
        "x-tangle-turnid": f"{run}.t0.researcher",
        "x-tangle-speaker": "researcher",
    }
    scope = re.escape(run) + r"\.([0-9a-f]{16})\.t0\.critic"
    second = {
        "x-tangle-forwarded-authorization": f"Bearer {user}",
        "x-tangle-forwarded-depth": "2",
        "x-tangle-runid": run,
        "x-tangle-turnid": ANY,
        "x-tangle-parent-turnid": f"{run}.t0.researcher",
        "x-tangle-speaker": "critic",
    }
    assert scene.before_a.stamps()[-1] == first
    assert scene.before_b.stamps()[-1] == second
    assert re.fullmatch(scope, scene.before_b.stamps()[-1]["x-tangle-turnid"])  # R6
    _one_entry_a_hop(scene, run)


def _one_entry_a_hop(scene: Scene, run: str) -> None:
    """Every served hop is billed once, to the one who started the run."""
    at_a = scene.a.json("ledger", "--run", run)["entries"]
    at_b = scene.b.json("ledger", "--run", run)["entries"]
    at_router = scene.router.json("ledger", "--run", run)["entries"]
    assert [entry["credit"] for entry in at_b] == ["agent:critic"]
    assert sorted(entry["credit"] for entry in at_a) == [
        "agent:researcher",
        "peer:sandbox-b.example",
    ]
    assert len({entry["debit"] for entry in at_a}) == 1
    assert at_a[0]["debit"].endswith("@router.example")
    assert at_b[0]["debit"].endswith("@sandbox-a.example")
    (entry,) = at_router
    assert entry["debit"] == "user-123@router.example"
    assert entry["amount"] == "0.0008"


def test_no_hop_sees_anything_but_lower_case_names(scene: Scene) -> None:
    for stamps in [*scene.before_a.stamps(), *scene.before_b.stamps()]:
        assert all(name == name.lower() for name in stamps)


@pytest.fixture(scope="module")
def ring(
    tmp_path_factory: pytest.TempPathFactory, database: Databases
) -> Iterator[dict[str, Organisation]]:
    """Four organisations, each the peer of the next; d's own limit is higher than the others'."""
    folder = tmp_path_factory.mktemp("ring")
    names = ["a", "b", "c", "d"]
    found = {name: organisation(folder / name, f"{name}.example", database()) for name in names}
    for caller, callee in zip(names, [*names[1:], "a"], strict=True):
        introduce(found[caller], found[callee])
    for gateway in found.values():
        gateway.configure(
            '[agents.hop]\nkind = "python"\ntarget = "agents:onward"\nprice = "0.001"\n'
        )
    for name in names:
        found[name].start(env={"CLI_BRIDGE_MAX_DEPTH": "9"} if name == "d" else None)
    yield found
    assert [gateway.stop() for gateway in found.values()] == [0, 0, 0, 0]


def test_a_chain_is_answered_at_depth_three_and_refused_at_four(
    ring: dict[str, Organisation],
) -> None:
    user = ring["a"].new_token("origin", "--forwardable")
    chain = "@hop@b.example @hop@c.example @hop@d.example @hop@a.example"
    before = len(executions(ring["a"].folder, "hop"))
    reply = ring["a"].chat(chain, "hop", token=user)
    assert reply.text == "0 > 1 > 2 > stopped at 4 of 4"
    run = reply.headers["x-tangle-runid"]
    assert len(executions(ring["a"].folder, "hop")) == before + 1  # the refused call ran nothing
    for name, gateway in ring.items():
        entries = gateway.json("ledger", "--run", run)["entries"]
        own = [entry for entry in entries if entry["credit"] == "agent:hop"]
        assert len(own) == 1, name
        assert len({entry["debit"] for entry in entries}) == 1
    payer = ring["a"].json("ledger", "--run", run)["entries"][0]["debit"]
    assert payer == "origin@a.example"
    page = ring["d"].json("run", "show", run)
    (child,) = page["turns"][0]["children"]
    assert child["code"] == "bridge_depth_exceeded"
    assert child["legs"][0]["status"] == "refused"
    assert reply.json["usage"]["cost"] == "0.004"


def test_the_credential_of_the_origin_is_written_down_nowhere(
    ring: dict[str, Organisation],
) -> None:
    user = ring["a"].new_token("canary", "--forwardable")
    ring["a"].chat("@hop@b.example @hop@c.example", "hop", token=user)
    for gateway in ring.values():
        assert user.encode() not in gateway.written() + stored(gateway)
