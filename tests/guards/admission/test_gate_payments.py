"""Payments at the gate: used up with the turn, looked at for what is owed, never sent on."""

import pytest
from msgspec.structs import replace

from carnet.core.chain.carnet import DepthLimits
from carnet.core.people.identity import Account, Secret
from carnet.errors import BillUnpaid, PaymentRefused
from carnet.guards.admission.gate import Gate
from carnet.guards.admission.order import GateParts
from carnet.guards.limits import Concurrency
from carnet.guards.payments import Payers
from carnet.ports.calls.turns import Denied, Nonce
from carnet.ports.trust.payers import ShownPayment, VerifiedPayment
from carnet.testing.clock import FakeClock, FakeIds
from tests.guards.admission.test_gate import Turns
from tests.guards.scene import (
    DOMAIN,
    Directory,
    claim,
    directory,
    known_peers,
    known_tokens,
    target,
)

NONCE = Nonce("voucher:z.example", "1", 10)


class Notes:
    """Takes whatever it is shown, and a new kind once it has learned of it."""

    def __init__(self) -> None:
        self.knows = True

    async def verify(self, _: ShownPayment, /) -> VerifiedPayment:
        if not self.knows:
            raise PaymentRefused(reason="issuer")
        account = Account("z.example", "carol#1")
        return VerifiedPayment(
            account=account, quota="q", limit=900, most=500, once=NONCE, name="n"
        )


class Scene:
    """A gate that takes notes."""

    def __init__(self) -> None:
        self.turns, self.notes = Turns(), Notes()
        agents = Directory(
            *directory().local(), target("theirs", needs_credential=True, takes_credential=True)
        )
        self.gate = Gate(
            GateParts(
                router=agents,
                tokens=known_tokens(),
                peers=known_peers(),
                clock=FakeClock(),
                ids=FakeIds(),
                domain=DOMAIN,
                depths=DepthLimits(),
                payers=Payers({"note_": self.notes}),
            ),
            turns=self.turns,
            concurrency=Concurrency(per_caller=9, in_all=9),
            most_run_calls=7,
            look_again=self._look_again,
        )

    async def _look_again(self) -> bool:
        was, self.notes.knows = self.notes.knows, True
        return not was


async def test_a_payment_is_used_up_by_the_claim_of_the_turn() -> None:
    scene = Scene()
    call = await scene.gate.admit(replace(claim("paid"), payment=Secret("note_1")))
    assert call.payer.payment == "n"
    (claimed,) = scene.turns.claims
    assert claimed.once == NONCE
    assert [quota.name for quota in claimed.quotas] == ["token:alice"]  # for what is owed there


@pytest.mark.parametrize(
    ("denied", "error"),
    [(Denied("spent"), PaymentRefused), (Denied("unpaid", amount=3), BillUnpaid)],
)
async def test_what_was_used_before_is_told_as_that(denied: Denied, error: type[Exception]) -> None:
    scene = Scene()
    scene.turns.denial = denied
    with pytest.raises(error):
        await scene.gate.admit(replace(claim("paid"), payment=Secret("note_1")))


async def test_an_issuer_that_was_listed_a_moment_ago_is_known() -> None:
    scene = Scene()
    scene.notes.knows = False
    call = await scene.gate.admit(replace(claim("paid"), payment=Secret("note_1")))
    assert call.payer.payment == "n"


async def test_an_agent_that_is_asked_with_the_payers_credential_is_never_asked_without() -> None:
    scene = Scene()
    for asked in (claim("theirs"), replace(claim("theirs"), payment=Secret("note_1"))):
        with pytest.raises(PaymentRefused, match="no credential"):
            await scene.gate.admit(asked)
    call = await scene.gate.admit(claim("theirs", token="ck_roaming"))
    assert call.credential is not None
    parent = await scene.gate.admit(claim("echo"))
    with pytest.raises(PaymentRefused, match="no credential"):
        await scene.gate.admit_child(parent, "theirs", parent.ask, index=0, auth="forward-user")
