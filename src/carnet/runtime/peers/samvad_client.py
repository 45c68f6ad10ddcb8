"""The one place that wires a SAMVAD client, for gateways, the command line and programs alike.

Law 1. Who signs is who is named as the sender: the domain of a signature is that of the sender.
Law 2. All agents that one client reaches share its connections, its cards and its keys.
"""

from typing import Self

from msgspec import Struct

from carnet.core.people.address import AGENT
from carnet.ports.trust.keys import SigningKeys
from carnet.ports.trust.trust import Peer
from carnet.ports.world.clock import Clock, Ids
from carnet.ports.world.http_client import Bounds, HttpClient
from carnet.runtime.peers.cards import Cards, Place
from carnet.runtime.peers.samvad_request import Recipient, RecipientClient, identities_of
from carnet.runtime.peers.signing import Signing
from carnet.runtime.receipts.verification import Verifying
from carnet.wire.stamps import STAMPS
from carnet.wire.stamps.stamp import Stamps


class SamvadClient(Struct, frozen=True, kw_only=True, eq=False):
    """Who we are to agents elsewhere, and what all calls to them share."""

    http: HttpClient
    cards: Cards
    signing: Signing
    sender: str  # the identity that we sign for
    clock: Clock
    ids: Ids
    verifying: Verifying | None = None  # of a gateway: asks Carnets for their receipts

    @classmethod
    def of(
        cls,
        http: HttpClient,
        keys: SigningKeys,
        sender: str,
        *,
        clock: Clock,
        ids: Ids,
        verifying: Verifying | None = None,
        stamps: Stamps = STAMPS,
    ) -> Self:
        """The client of a sender, whose `keys` are ours; what `stamps` write is signed."""
        domain = sender.removeprefix(AGENT)
        return cls(
            http=http,
            cards=Cards(http, clock),
            signing=Signing(keys=keys, domain=domain, clock=clock, ids=ids, stamps=stamps),
            sender=sender,
            clock=clock,
            ids=ids,
            verifying=verifying,
        )

    def to(self, recipient: Recipient) -> RecipientClient:
        """The way to one agent."""
        return RecipientClient(
            self.http,
            recipient,
            cards=self.cards,
            signing=self.signing,
            sender=self.sender,
            clock=self.clock,
            ids=self.ids,
            verifying=self.verifying,
        )

    async def close(self) -> None:
        """End what is being fetched; the HTTP client is its owner's to close."""
        await self.cards.close()


def recipient_of(peer: Peer, local: str, bounds: Bounds) -> Recipient:
    """An agent of a peer by its name there, which its default one has not."""
    base = peer.url.rstrip("/")
    return Recipient(
        place=Place(f"{base}/agents/{local}" if local else base),
        identities=identities_of(peer.domain, local),
        peer=peer.domain,
        form=peer.signature_form,
        bounds=bounds,
    )
