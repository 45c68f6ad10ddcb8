"""Whose keys are fetched while a proof is judged: a partner chooses what it shows of others."""

from typing import Any

from msgspec.structs import replace

from carnet.core.chain.turn import Turn
from carnet.core.messages.outbound_call import OutboundCall
from carnet.core.people.identity import Account
from carnet.errors import KeyUnknown
from carnet.ports.trust.receipts import ProofAsk
from carnet.ports.trust.trust import Peer
from carnet.runtime.partners.proof import RunProof
from carnet.runtime.peers.cancellation import PeerLine
from carnet.testing.clock import FakeClock
from carnet.wire import travel
from tests.runtime.peers.test_signing import signing
from tests.wire.travel.scene import sign
from tests.wire.travel.test_receipt import RECEIPT

MADE_UP = 40


class ProofWorld:
    """A run with receipts by keys that nobody has; those who are asked for keys take a while."""

    def __init__(self, seconds: float) -> None:
        self.clock = FakeClock()
        self.asked: list[str] = []
        self._seconds = seconds

    async def run(self, run: str, *, reader: str | None) -> list[Turn]:
        assert reader is None
        payer = Account("acme.example", "alice")
        return [Turn(n=1, agent="x", run=run, turn="t", payer=payer, created=1, actor="token:a")]

    async def outbound(self, run: str, *, reader: str | None) -> dict[int, list[OutboundCall]]:
        assert (run, reader) == ("r", None)
        return {1: [self._call(number) for number in range(MADE_UP)]}

    def _call(self, number: int) -> OutboundCall:
        issuer = ("b.example", "c.example")[number % 2]
        made = replace(RECEIPT, issuer=issuer, keyid=f"made-up-{number}", below=None)
        text = travel.write_receipt(made, sign=sign)
        return OutboundCall(
            ordinal=number, child_turn=f"t{number}", to="x", depth=1, state="done", receipt=text
        )

    def find(self, *asked: Any) -> Any:
        """A peer by its domain, or a key by its sender and its name."""
        if len(asked) == 1:
            return Peer(domain=asked[0], url="http://x")
        raise KeyUnknown(sender=asked[0])

    async def need(self, sender: str) -> None:
        self.asked.append(sender)
        self.clock.advance(self._seconds)

    async def prove(self) -> list[str]:
        given: Any = self
        line = PeerLine(given, given, signing(self.clock))
        proof = RunProof(given, given, given, line, self.clock)
        found = await proof(ProofAsk(run="r", reader=None, seconds=20.0))
        assert found is not None
        assert set(found.verdicts.values()) == {"vouched"}
        assert len(found.faults) == MADE_UP  # nobody names the first ones
        return self.asked


async def test_nobody_is_asked_for_keys_twice_whatever_a_partner_shows() -> None:
    assert await ProofWorld(2).prove() == ["agent://b.example", "agent://c.example"]


async def test_nobody_is_asked_for_keys_when_the_time_is_over() -> None:
    assert await ProofWorld(30).prove() == ["agent://b.example"]
