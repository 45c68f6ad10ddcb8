"""Calls that the code of an agent makes by itself: who is listed, and what would come back."""

import pytest
from msgspec.structs import replace

from carnet.core.call import Call
from carnet.core.chain.carnet import Mark
from carnet.errors import LoopDetected
from carnet.guards.admission.gate import Gate
from carnet.ports.calls.admission import ClientCallee, ClientLeave
from carnet.testing.turns import MemoryTurns
from tests.guards.scene import DOMAIN, claim, target
from tests.runtime.stage import gate_and_journal

LISTED = "http://127.0.0.1:1"  # of b.example
PASSED = ("@relay@c.example", "@my_bot@d.example")


async def asked(agent: str = "echo") -> tuple[Gate, Call]:
    agents = (target("echo"), target("again", reentry=True))
    gate, _ = gate_and_journal(MemoryTurns(keeps_limits=False), *agents)
    marks = (Mark(stamp="tangle", depth=1, last_depth=3, run="r1", turn="r1.t0.x"),)
    call = await gate.admit(claim(agent, marks=marks))
    return gate, replace(call, carnet=replace(call.carnet, path=PASSED))


@pytest.mark.parametrize(
    ("url", "identity", "is_listed"),
    [
        (LISTED, "agent://b.example", True),
        (f"{LISTED}/agents/critic", "agent://critic.b.example", True),
        (LISTED, "agent://c.example", False),  # it is listed under another name
        ("http://127.0.0.1:12", "agent://b.example", False),  # and at another place
        (LISTED, None, False),
    ],
)
async def test_a_callee_is_listed_by_its_name_at_the_place_that_is_written_down(
    url: str,
    identity: str | None,
    is_listed: bool,  # noqa: FBT001  a case
) -> None:
    gate, call = await asked()
    callee = ClientCallee(url=url, identities=frozenset(filter(None, (identity,))))
    leave = gate.let_out(call, callee)
    assert leave == ClientLeave(via=f"@echo@{DOMAIN}", is_listed=is_listed)


@pytest.mark.parametrize(
    "url",
    [
        "https://c.example/agents/relay",
        "https://relay.c.example",
        "https://d.example/agents/my_bot",
        f"https://{DOMAIN}/agents/echo",
    ],
)
async def test_a_call_past_the_gateway_does_not_come_back_into_its_chain(url: str) -> None:
    gate, call = await asked()
    with pytest.raises(LoopDetected):
        gate.let_out(call, ClientCallee(url=url))
    assert gate.let_out(call, ClientCallee(url="https://c.example/agents/other")) is not None
