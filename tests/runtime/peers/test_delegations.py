"""Going on under a delegation: less than what came, and nothing without it."""

from typing import Any

import pytest
from msgspec.structs import replace

from carnet.core.chain.carnet import Carnet
from carnet.core.people.delegation import Delegation, check_chain, check_times
from carnet.core.people.proof import SECOND_US, Spending
from carnet.errors import DelegationExceeded, DelegationInvalid
from carnet.runtime.peers.delegations import Delegating
from carnet.testing.clock import FakeClock, FakeIds
from carnet.wire.crypto import ed25519
from carnet.wire.crypto.delegation import read, write
from tests.runtime.peers.test_signing import NOW, PUBLIC, SEED, signing

US, BOB, ALICE, NEXT = (f"agent://{name}.example" for name in ("a", "bob", "alice", "next"))


def parent(**more: Any) -> Delegation:
    """What alice granted bob, who called us with it."""
    whole: dict[str, Any] = {
        "issuer": ALICE,
        "subject": BOB,
        "audience": US,
        "scope": ("read", "write"),
        "hops": 3,
        "issued": NOW,
        "expires": NOW + 3600,
        "token_id": "jti-1",
        "is_ours": True,
        "keyid": "k1",
        **more,
    }
    return read(write(Delegation(**whole), sign=lambda text: ed25519.sign(SEED, text)))


def derive(
    above: Delegation,
    carnet: Carnet | None = None,
    *,
    skill: str = "read",
    ours: bool = True,
    clock: FakeClock | None = None,
) -> Delegation:
    clock = clock or FakeClock(wall_us=NOW * SECOND_US)
    delegating = Delegating(signing(clock), sender=US, clock=clock, ids=FakeIds())
    found = read(delegating.derive(above, carnet, skill, recipient=NEXT, ours=ours))
    assert ed25519.holds(PUBLIC, found.signed, found.signature)
    check_chain(found)
    check_times(found, clock.wall_us())
    return found


def carnet(depth: int, last_depth: int | None, **more: Any) -> Carnet:
    return Carnet(run="run", turn="turn", depth=depth, last_depth=last_depth, **more)


def test_a_carnet_is_given_the_whole_chain() -> None:
    above = parent()
    found = derive(above)
    assert found.parent == above
    assert (found.issuer, found.subject, found.audience) == (US, US, NEXT)
    assert (found.hops, found.scope, found.expires) == (2, above.scope, NOW + 900)
    assert found.is_ours
    assert found.token_id not in {None, above.token_id}


def test_an_sdk_is_given_its_own_form_and_who_acted() -> None:
    found = derive(parent(actors=(ALICE,)), ours=False)
    assert (found.parent, found.audience, found.token_id, found.is_ours) == (
        None,
        None,
        None,
        False,
    )
    assert found.actors == (BOB, ALICE)


def test_a_token_that_was_for_nobody_in_particular_goes_on_by_our_word() -> None:
    above = parent(audience=None, is_ours=False, token_id=None)
    found = derive(above)
    assert (found.parent, found.actors, found.audience) == (None, (BOB,), NEXT)


def test_what_we_hold_ourselves_goes_on_as_its_holder() -> None:
    above = parent(subject=US, audience=NEXT)
    assert derive(above).parent == above


def test_the_name_of_one_of_our_agents_is_ours() -> None:
    above = parent(audience="agent://desk.a.example")
    assert derive(above).parent == above


@pytest.mark.parametrize(
    ("given", "hops"),
    [(carnet(1, 2), 2), (carnet(2, 2), 1), (carnet(1, 9), 2), (carnet(4, None), 1), (None, 2)],
)
def test_hops_are_those_that_the_chain_has_left(given: Carnet | None, hops: int) -> None:
    """Also after calls in process, which the token has not seen."""
    assert derive(parent(), given).hops == hops


def test_without_a_hop_left_nothing_is_made() -> None:
    with pytest.raises(DelegationExceeded):
        derive(parent(hops=1))


def test_it_ends_with_its_parent() -> None:
    assert derive(parent(expires=NOW + 60)).expires == NOW + 60
    late = FakeClock(wall_us=(NOW + 60) * SECOND_US)
    with pytest.raises(DelegationInvalid) as refused:
        derive(parent(expires=NOW + 60), clock=late)
    assert refused.value.facts["link"] == 1


def test_the_budget_is_what_is_left() -> None:
    held = Spending(money=9, currency="credits", calls=5)
    left = Spending(calls=2, tokens=7)
    found = derive(parent(budget=held), carnet(1, 2, budget=left))
    assert found.budget == Spending(money=9, currency="credits", calls=2, tokens=7)


@pytest.mark.parametrize("ours", [True, False])
def test_one_use_goes_on_as_one_use(ours: bool) -> None:  # noqa: FBT001
    found = derive(parent(once=True), ours=ours)
    assert found.once
    assert found.token_id is not None


def test_a_skill_outside_of_the_scope_is_not_asked_for() -> None:
    with pytest.raises(DelegationExceeded) as refused:
        derive(parent(), skill="pay")
    assert refused.value.facts["reason"] == "the skill is not in its scope"


def test_a_chain_that_has_no_room_left_is_refused_before_it_leaves() -> None:
    skills = tuple(f"a-skill-with-a-name-{number:02}" for number in range(60))
    link = parent(scope=("read", *skills))
    while len(link.text) < 5000:
        signed = replace(link, issuer=BOB, subject=BOB, parent=link, text="")
        link = read(write(signed, sign=lambda text: ed25519.sign(SEED, text)))
    with pytest.raises(DelegationExceeded) as refused:
        derive(replace(link, hops=9))
    assert refused.value.facts["reason"] == "it has no room for another link"
