"""An agent of an organisation that is no peer, called by its address (R42).

Law 1. Nothing is sent to it before its organisation has shown the keys that it showed when we first
       met it. Others are refused, and noted, until a person confirms them.
Law 2. What it asks for a call is paid without a word up to a limit; above that a person is asked
       first, and who says no has called nobody. With a yes the price is set aside: where the payer
       has not so much left, that is told instead of calling.
Law 3. Nobody's credential leaves to it: it is told who we are, and nothing else.
"""

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from carnet.core.call import Call
from carnet.core.messages.events import Waiting
from carnet.core.messages.interrupt import Interrupt
from carnet.core.messages.output import Output
from carnet.core.money.amount import format_amount, parse_amount
from carnet.core.people.address import Address
from carnet.errors import (
    Declined,
    InvalidRequest,
    Overloaded,
    PeerRefused,
    PeerUnreachable,
    StrangerKeyChanged,
)
from carnet.ports.trust.strangers import Stranger, Strangers
from carnet.runtime.agents.a2a_peer import A2aPeer
from carnet.runtime.peers.a2a.client import KNOWN, A2aClient, Reached
from carnet.runtime.peers.a2a.own_evidence import Caused
from carnet.runtime.peers.policies import Ending
from carnet.runtime.peers.strangers.resolver import Introduced, Resolver
from carnet.wire.dialects.a2a import client as a2a
from carnet.wire.dialects.a2a.card import TERMS_URI, A2aCard
from carnet.wire.dialects.policy import own_id

_ASKED: Final = "stranger"


class Meeting(Struct, frozen=True, kw_only=True, eq=False):
    """What is decided of all strangers alike."""

    resolver: Resolver
    strangers: Strangers
    most: int  # that are remembered for one caller
    price_limit: int  # that is paid without asking, in micro-units
    currency: str
    # The agent behind a way to call it, and the most that a call of it may cost.
    peer: Callable[[Reached, Address, int], A2aPeer]


class StrangerAgent:
    """One agent of a stranger."""

    def __init__(self, address: Address, meeting: Meeting) -> None:
        """Its address is all that is known of it."""
        self._address = address
        self._meeting = meeting

    async def __call__(self, call: Call, out: Output, /) -> Ending:
        """Find it, know it again, agree on its price, and call it."""
        meeting, address = self._meeting, self._address
        caller = call.payer.owing or str(call.payer)  # a payment that is shown is new each time
        found = await meeting.resolver.find(address, caller=caller)
        await self._know(found, caller)
        price = price_of(found.card, meeting.currency)
        if price > meeting.price_limit:
            asked = self._question(call, price)
            if asked is not None:
                return Waiting((asked,))
        return await meeting.peer(reached(found), address, price)(call, out)

    async def _know(self, found: Introduced, caller: str) -> None:
        """Refuse an organisation that shows none of the keys that are remembered of it."""
        strangers, domain = self._meeting.strangers, self._address.domain
        known: Stranger | None = await strangers.find(domain)
        if known is None:
            most = self._meeting.most
            known = await strangers.meet(domain, found.keys, by=caller, most=most)
        if known is None:
            raise Overloaded("as many strangers are remembered for this caller as may be")
        if known.keys == found.keys:
            return
        if not known.keys or known.keys & found.keys:  # it vouches for its new ones itself
            await strangers.follow(domain, known.keys, found.keys)
            return
        await strangers.note_offer(domain, found.keys)
        raise StrangerKeyChanged(domain=domain)

    def _question(self, call: Call, price: int) -> Interrupt | None:
        """What a person is asked; None once she has said yes."""
        id = own_id(call.record.key, _ASKED)
        for each in call.resolved:
            if each.interrupt.id == id:
                if each.resolution.accepted:
                    return None
                raise Declined("the price of a stranger", kind="approval")
        amount = f"{format_amount(price)} {self._meeting.currency}"
        return Interrupt(
            kind="approval",
            id=id,
            message=f"{self._address} is no peer of ours, and asks for up to {amount} a call.",
            amount=price,
            currency=self._meeting.currency,
        )


def price_of(card: A2aCard, currency: str) -> int:
    """The most that a card says a call costs; one that says nothing may charge nothing."""
    for each in card.extensions:
        if each.uri != TERMS_URI:
            continue
        terms = each.params
        try:
            costs = [
                parse_amount(terms[name])
                for name in ("price", "most_cost", "max_cost")
                if isinstance(terms.get(name), str)
            ]
        except InvalidRequest:
            raise PeerUnreachable("its card tells a price that is none") from None
        if any(costs) and terms.get("currency") != currency:
            raise PeerUnreachable("its card tells a price in another currency")
        return max(costs, default=0)
    return 0


def reached(found: Introduced) -> Reached:
    """How a stranger is called; raises what keeps us from calling it."""
    unknown = [uri for uri in found.card.required if uri not in KNOWN]
    if unknown:
        raise PeerRefused(
            f"its card requires the extension {unknown[0][:128]}",
            peer_status=400,
            peer_code="EXTENSION_SUPPORT_REQUIRED",
        )
    (interface,) = a2a.interfaces_of(found.card)
    return Reached(
        card=replace(found.card, members={}),
        interface=interface,
        secrets={},
        is_named=found.is_named,
    )


class StrangerClient(A2aClient):
    """Sends requests to an agent that was found by its address."""

    def __init__(self, way: Reached, *given: Any, **more: Any) -> None:
        """`way` is how it is called; the rest is for every client."""
        super().__init__(*given, **more)
        self._way = way

    async def reach(self, subject: str | None = None, cause: Caused | None = None) -> Reached:
        """As it was found."""
        del subject, cause  # no stranger is sent a credential
        return self._way
