"""The gate notes what its guards found, in the order in which they judge."""

import re

from carnet.core.call import Ask
from carnet.core.chain.grounds import OPTIONAL, ORDER, read_grounds
from carnet.core.messages.events import Message
from carnet.guards.admission.gate import Gate
from tests.guards.admission.test_gate import Scene, in_run
from tests.guards.scene import claim
from tests.guards.signed_scene import SignedScene, signed_claim


def names(guards: tuple[object, ...]) -> list[str]:
    """The names of guards as a reader is shown them."""
    found = [getattr(guard, "__name__", type(guard).__name__) for guard in guards]
    spaced = [re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name) for name in found]
    return [name.replace("_", " ").lower() for name in spaced]


def guards_of(gate: Gate, which: str) -> tuple[object, ...]:
    found: tuple[object, ...] = getattr(gate._order, which)  # noqa: SLF001  the one that is used
    return found


def test_the_order_that_is_told_is_the_order_of_the_gate() -> None:
    gate = SignedScene().gate
    for by, which in (("token", "by_token"), ("signature", "by_proof")):
        named = ORDER[by]  # type: ignore[index]  # both are keys of it
        order = [name for name, _ in named if name not in OPTIONAL]
        assert order == [*names(guards_of(gate, which)), "transaction"]


async def test_what_was_found_of_a_token_is_claimed_with_its_turn() -> None:
    scene = Scene()
    await scene.gate.admit(claim("paid", marks=in_run()))
    found = read_grounds(scene.turns.claims[-1].grounds)
    assert (found.by, found.caller, found.agent, found.needs) == (
        *("token", "token:alice", "paid", "call:paid"),
    )
    assert (found.depth, found.stamp, found.reserve) == (1, "tangle", 200)
    assert b"ck_" not in scene.turns.claims[-1].grounds  # no credential


async def test_what_was_found_of_a_child_says_who_made_it() -> None:
    scene = Scene()
    parent = await scene.gate.admit(claim("echo"))
    ask = Ask(messages=(Message("user", ("below",)),))
    await scene.gate.admit_child(parent, "paid", ask, index=0, auth="forward-user")
    found = read_grounds(scene.turns.claims[-1].grounds)
    assert (found.by, found.caller, found.agent) == ("in_process", "agent:echo", "paid")


async def test_what_was_found_of_a_signature_names_sender_and_key() -> None:
    scene = SignedScene()
    asked = signed_claim()
    call = await scene.gate.admit(asked)
    assert asked.proof is not None
    found = read_grounds(scene.turns.grounds[call.record.n])
    assert (found.by, found.sender, found.key) == (
        *("signature", asked.proof.sender, asked.proof.keyid),
    )
