"""Vouchers before the gate: whose they are, what they are worth, and what nobody is asked for."""

from collections.abc import Callable
from typing import Any

import pytest

from carnet.core.people.identity import Actor, Caller, Standing
from carnet.core.people.proof import SECOND_US
from carnet.core.voucher import Voucher
from carnet.errors import PaymentRefused, PeerUnreachable
from carnet.guards.caller.voucher import Vouchers, names_of
from carnet.ports.trust.payers import ShownPayment, VerifiedPayment
from carnet.ports.trust.trust import Peer
from carnet.testing.keys import MemoryRing
from carnet.testing.trust import MemoryPeers
from carnet.wire.travel.voucher import write_voucher
from tests.guards.scene import DOMAIN
from tests.support.signing.signed import Sender

NOW = 2_000_000
PEER = Sender("agent://b.example")
OWN = Sender(f"agent://{DOMAIN}")
ALICE = Caller(actor=Actor(name="token:alice"), scopes=frozenset())


class Scene:
    """A verifier that knows one peer, whose keys it has or has not seen."""

    def __init__(self, *, seen: bool = True) -> None:
        self.ring = MemoryRing()
        know = self.ring.pin if seen else self.ring.publish
        know(PEER.identity, PEER.kid, PEER.public_raw)
        self.ring.pin(OWN.identity, OWN.kid, OWN.public_raw)
        self.ended: set[str] = set()
        self.asked: list[str] = []
        self.verifier = Vouchers(
            self.ring,
            MemoryPeers(Peer(domain="b.example", url="http://127.0.0.1:1", credit=700)),
            domain=DOMAIN,
            currency="credits",
            is_ended=self.ended.__contains__,
            fresh=self._fresh,
        )

    async def _fresh(self, voucher: Voucher) -> None:
        self.asked.append(voucher.id)
        if voucher.id in self.ended:
            raise PaymentRefused(reason="revoked")

    async def judge(
        self, by: Sender = PEER, caller: Caller = ALICE, **changes: Any
    ) -> VerifiedPayment:
        usual: dict[str, Any] = {
            "issuer": by.identity.removeprefix("agent://"),
            "id": "0123456789abcdef",
            "audience": DOMAIN,
            "account": "carol",
            "amount": 500,
            "currency": "credits",
            "issued": NOW - 1,
            "expires": NOW + 60,
        }
        text = write_voucher(Voucher(**{**usual, **changes}), kid=by.kid, sign=by.sign)
        return await self.verifier.verify(
            ShownPayment(credential=text, caller=caller, agent="paid", now=NOW * SECOND_US)
        )

    async def refuses(self, **more: Any) -> str:
        with pytest.raises(PaymentRefused) as refused:
            await self.judge(**more)
        return str(refused.value.facts["reason"])


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def test_a_voucher_of_a_peer_is_worth_its_amount_within_its_credit(scene: Scene) -> None:
    found = await scene.judge()
    assert (str(found.account), found.most) == ("carol#0123456789abcdef@b.example", 500)
    assert (found.quota, found.limit, found.own_issue) == ("peer:b.example", 700, False)
    assert found.once is not None
    assert (found.once.sender, found.once.nonce) == ("voucher:b.example", "0123456789abcdef")
    assert found.once.expires > (NOW + 60) * SECOND_US  # it is remembered longer than it holds
    assert scene.asked == ["0123456789abcdef"]


async def test_one_of_our_own_has_its_amount_and_nobody_is_asked(scene: Scene) -> None:
    found = await scene.judge(OWN)
    assert (found.quota, found.limit) == (f"voucher:{DOMAIN}#0123456789abcdef", 500)
    assert found.own_issue
    assert scene.asked == []
    scene.ended.add("0123456789abcdef")
    assert await scene.refuses(by=OWN) == "revoked"


async def test_a_key_that_was_not_seen_is_learned_of_a_peer() -> None:
    scene = Scene(seen=False)
    assert (await scene.judge()).most == 500
    assert scene.ring.learns == [PEER.identity]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda s: s.ring.revoke(PEER.identity, PEER.kid), "revoked"),
        (lambda s: s.ended.add("0123456789abcdef"), "revoked"),
    ],
)
async def test_with_its_key_or_by_its_issuer_a_voucher_ends(
    scene: Scene, change: Callable[[Scene], object], reason: str
) -> None:
    change(scene)
    assert await scene.refuses() == reason


async def test_what_is_not_for_us_leads_nowhere() -> None:
    scene = Scene(seen=False)
    assert await scene.refuses(audience="other.example") == "audience"
    assert await scene.refuses(by=Sender("agent://stranger.example")) == "issuer"
    assert await scene.refuses(holder="agent://x.example") == "holder"
    assert await scene.refuses(expires=NOW) == "expired"
    assert (scene.ring.learns, scene.asked) == ([], [])


async def test_a_signature_of_another_key_is_none(scene: Scene) -> None:
    other = Sender(PEER.identity)
    other.kid = PEER.kid
    assert await scene.refuses(by=other) == "forged"
    unknown = Sender(PEER.identity)
    unknown.kid = "another-kid"
    assert await scene.refuses(by=unknown) == "forged"


async def test_a_peer_whose_keys_cannot_be_had_pays_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_: object) -> bytes:
        raise PeerUnreachable

    monkeypatch.setattr(scene.ring, "find", unreachable)
    assert await scene.refuses() == "unsure"


def test_a_caller_is_known_by_its_token_its_organisation_and_its_signature() -> None:
    peer = Caller(actor=Actor(name="peer:b.example", domain="b.example"), scopes=frozenset())
    assert {"b.example", "agent://b.example"} <= names_of(peer)
    assert {"token:alice", "alice"} <= names_of(ALICE)
    signed = Caller(
        actor=Actor(name="sender:agent://bob.b.example", how="signature"),
        scopes=frozenset(),
        standing=Standing(sender="agent://bob.b.example", peer="b.example"),
    )
    assert {"agent://bob.b.example", "b.example"} <= names_of(signed)
    alone = Standing(sender="agent://client-x")
    assert "b.example" not in names_of(
        Caller(actor=Actor(name="x"), scopes=frozenset(), standing=alone)
    )
