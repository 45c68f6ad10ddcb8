"""The ways to agents of other organisations, whether a section or a peer names them."""

from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from carnet.config import Settings
from carnet.core.address import AGENT
from carnet.core.call import Agent
from carnet.core.secret import Secret
from carnet.ports.clock import Clock, Ids
from carnet.ports.door import Bounds, Door
from carnet.ports.keys import KeyRing
from carnet.ports.trust import Peer
from carnet.runtime.cards import Place
from carnet.runtime.errand import Recipient
from carnet.runtime.proving import Verifying
from carnet.runtime.remote import Endpoint, Lane, Remote, Skilled
from carnet.runtime.samvad import Samvad
from carnet.runtime.samvad_client import SamvadClient, recipient_of
from carnet.runtime.stamps import Stamping
from carnet.stores.opening import Store
from carnet.wire.stamp import Stamps
from carnet.wire.stamps import STAMPS

COMPLETIONS: Final = "/chat/completions"


class Elsewhere(Struct, frozen=True, kw_only=True, eq=False):
    """What every call out needs: who we are to others, and what of theirs is believed."""

    client: SamvadClient  # with the door, and what others publish
    verifying: Verifying
    currency: str
    stamps: Stamps = STAMPS  # those that are written

    def tangle(
        self,
        endpoint: Endpoint,
        *,
        most_cost: int,
        stamping: Stamping,
        peer: str | None,
        skilled: Skilled,
    ) -> Remote:
        """An agent of another gateway, over chat completions.

        Args:
            endpoint: Where it is.
            most_cost: The most it may charge for one call.
            stamping: What its calls carry.
            peer: The domain of its organisation, where it is listed: known by its key if we have
                no token.
            skilled: Whether skills can be asked of it by name.
        """
        is_signed = endpoint.token is None and peer is not None
        return Remote(
            self.client.door,
            endpoint,
            most_cost=most_cost,
            stamping=replace(stamping, stamps=self.stamps),
            lane=Lane(self.client.signing, self.verifying, peer or "") if is_signed else None,
            skilled=skilled,
        )

    def skilled(self, url: str, domain: str | None, way: str) -> Skilled:
        """Whether the gateway behind a URL is a Carnet, by what it shows of itself.

        `way` is another way to ask for skills, as its operator would write it.
        """
        home = Place(url.partition("/agents/")[0].rstrip("/").removesuffix("/v1"))
        return Skilled(lambda: self.client.cards.is_carnet(home, domain), way)

    def samvad(
        self,
        recipient: Recipient,
        *,
        token: Secret | None,
        most_cost: int,
        stamping: Stamping,
        skill: str | None = None,
    ) -> Samvad:
        """An agent that is called by signed envelopes; plain text is given to its `skill`."""
        return Samvad(
            self.client.to(recipient),
            skill=skill,
            token=token,
            most_cost=most_cost,
            currency=self.currency,
            stamping=replace(stamping, stamps=self.stamps),
        )

    def of_peer(self, peer: Peer, local: str, seconds: float) -> Agent:
        """The bare agent of a peer, in the dialect it is listed with; its default has no name."""
        base = peer.url.rstrip("/")
        common: dict[str, Any] = {
            "most_cost": peer.most_cost,
            "stamping": Stamping(takes_credential=peer.may_forward),
        }
        if peer.dialect == "samvad":
            recipient = recipient_of(peer, local, bounds_of(seconds))
            return self.samvad(recipient, token=peer.token, **common)
        endpoint = Endpoint(
            url=f"{base}/agents/{local}/v1{COMPLETIONS}" if local else f"{base}/v1{COMPLETIONS}",
            model=local or f"{AGENT}{peer.domain}",
            token=peer.token,
            currency=self.currency,
            bounds=bounds_of(seconds),
        )
        way = f"carnet peers add {peer.domain} --dialect samvad"
        skilled = self.skilled(peer.url, peer.domain, way)
        return self.tangle(endpoint, peer=peer.domain, skilled=skilled, **common)


def build_elsewhere(
    settings: Settings,
    store: Store,
    door: Door,
    keys: KeyRing,
    clock: Clock,
    ids: Ids,
    stamps: Stamps = STAMPS,
) -> Elsewhere:
    """The ways out of one gateway; `keys` are those of others, `stamps` are written."""
    domain, currency = settings.gateway.domain, settings.ledger.currency
    verifying = Verifying(keys, domain=domain, currency=currency, clock=clock)
    client = SamvadClient.of(
        door,
        store.keys,
        f"{AGENT}{domain}",
        clock=clock,
        ids=ids,
        verifying=verifying,
        stamps=stamps,
    )
    return Elsewhere(
        client=client,
        verifying=verifying,
        currency=currency,
        stamps=stamps,
    )


def bounds_of(seconds: float) -> Bounds:
    """The bounds of a call that may take so long."""
    return Bounds(total_seconds=seconds, first_byte_seconds=min(120.0, seconds))
