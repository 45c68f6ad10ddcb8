"""Payments that calls bring along: who verifies them, what they pay for, and who owes the rest."""

from typing import Any

import pytest
from msgspec.structs import replace

from carnet.core.people.delegation import Delegation
from carnet.core.people.grant import Grant
from carnet.core.people.identity import Account, Secret
from carnet.core.people.permissions import PLAIN
from carnet.core.people.proof import Spending
from carnet.errors import ForwardingNotAllowed, PaymentRefused, PermissionMissing
from carnet.guards.candidate import Candidate
from carnet.guards.limits import Paying
from carnet.guards.payments import Payers
from carnet.ports.calls.turns import Nonce
from carnet.ports.trust.payers import ShownPayment, VerifiedPayment
from tests.guards.scene import DOMAIN, NOW, claim, known_peers, known_tokens, proved

STRANGER = "Bearer sk-tan-user-123"
NONCE = Nonce("voucher:z.example", "1", NOW + 1)
WORTH = VerifiedPayment(
    account=Account("z.example", "carol#1"),
    quota="peer:z.example",
    limit=900,
    most=500,
    once=NONCE,
    name="z.example#1",
)


class Verifier:
    """Says what everything is worth."""

    def __init__(self, worth: VerifiedPayment = WORTH) -> None:
        self.worth = worth
        self.shown: list[ShownPayment] = []

    async def verify(self, shown: ShownPayment, /) -> VerifiedPayment:
        self.shown.append(shown)
        return self.worth


async def paid_by(
    payment: str | None = "note_1",
    agent: str = "paid",
    *,
    worth: VerifiedPayment = WORTH,
    delegation: Delegation | None = None,
    **more: Any,
) -> Candidate:
    brought = replace(claim(agent, **more), payment=None if payment is None else Secret(payment))
    candidate = proved(brought)
    candidate.delegation = delegation
    found = Payers({"note": Verifier(), "note_": Verifier(worth)})
    waiting = Paying(
        tokens=known_tokens(), peers=known_peers(), domain=DOMAIN, payers=found, currency="c"
    )(candidate)
    if waiting is not None:
        await waiting
    return candidate


async def test_a_payment_pays_in_the_place_of_the_caller_up_to_what_it_covers() -> None:
    found = await paid_by()
    payer = found.payer
    assert (payer.account, payer.quota, payer.limit) == (WORTH.account, "peer:z.example", 900)
    assert (payer.payment, payer.excess, payer.owing) == (
        *("z.example#1", "token:alice"),
        "token:alice",
    )
    assert (found.once, found.budget) == (NONCE, Spending(money=500, currency="c"))
    assert found.credential is None


async def test_the_longest_beginning_says_who_verifies_a_payment() -> None:
    assert (await paid_by("note_2", worth=replace(WORTH, most=700))).budget == Spending(
        money=700, currency="c"
    )
    assert (await paid_by("notes", worth=replace(WORTH, most=700))).budget == Spending(
        money=500, currency="c"
    )


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"payment": "coin_1"}, "unknown"),
        ({"worth": replace(WORTH, most=199)}, "amount"),
        ({"token": "ck_b", "forwarded": "Bearer note_2"}, "several"),
        ({"token": "ck_b", "forwarded": STRANGER}, "several"),
    ],
)
async def test_what_cannot_pay_is_refused_and_nobody_pays_in_its_place(
    more: dict[str, Any], reason: str
) -> None:
    with pytest.raises(PaymentRefused) as refused:
        await paid_by(**more)
    assert refused.value.facts["reason"] == reason
    assert refused.value.next_step


async def test_a_delegation_for_one_call_cannot_stand_beside_it() -> None:
    once = Delegation(
        issuer="agent://a.example",
        subject="agent://b.example",
        scope=("*",),
        hops=1,
        issued=1,
        expires=2,
        token_id="j",
        once=True,
    )
    with pytest.raises(PaymentRefused, match="stands beside it"):
        await paid_by(delegation=once)
    assert (await paid_by(delegation=replace(once, once=False))).once == NONCE
    assert (await paid_by(delegation=once, worth=replace(WORTH, once=None))).once is None


async def test_a_forwarded_payment_is_verified_where_its_caller_is_listed() -> None:
    found = await paid_by(None, token="ck_b", forwarded="Bearer note_1")
    assert (found.payer.account, found.payer.excess) == (WORTH.account, "peer:b.example")
    assert found.credential is None  # it is used up here
    again = replace(WORTH, once=None, name=None, may_forward=True)
    kept = await paid_by(None, token="ck_b", forwarded="Bearer note_1", worth=again)
    assert kept.credential is not None
    assert kept.credential.reveal() == "Bearer note_1"
    assert kept.payer.payment == str(WORTH.account)
    with pytest.raises(ForwardingNotAllowed):
        await paid_by(None, forwarded="Bearer note_1")
    carried = await paid_by(None, token="ck_b", forwarded=STRANGER)
    assert carried.payer.account.issuer == "b.example"


async def test_an_agent_that_pays_itself_uses_no_payment_up() -> None:
    found = await paid_by(agent="own")
    assert (found.payer.account.id, found.once, found.credential) == ("agent:own", None, None)
    listed = await paid_by(None, agent="own", token="ck_b", forwarded=STRANGER)
    assert (listed.payer.account.id, listed.credential) == ("agent:own", None)
    with pytest.raises(ForwardingNotAllowed):
        await paid_by(None, agent="own", forwarded=STRANGER)


async def test_who_may_not_pay_pays_with_nothing() -> None:
    with pytest.raises(PermissionMissing):
        await paid_by(token="ck_broke")


async def test_what_is_above_it_is_owed_by_whoever_authenticated() -> None:
    grant = Grant(issuer="https://login.z.example", subject="s", scopes=PLAIN, expires=1)
    candidate = proved(replace(claim("paid"), payment=Secret("note_1")))
    candidate.grant = grant
    paying = Paying(
        tokens=known_tokens(),
        peers=known_peers(),
        domain=DOMAIN,
        payers=Payers({"note_": Verifier()}),
    )
    waiting = paying(candidate)
    assert waiting is not None
    await waiting
    assert candidate.payer.excess == "oauth:login.z.example"
