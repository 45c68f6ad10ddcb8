"""One request to a SAMVAD agent: what it asks for, to whom it goes, how it is written and signed.

Law 1. It goes to the address that the operator wrote down, wherever a card points.
Law 2. It is addressed to the agent that is expected there. A card that names somebody else is not
       believed: what we sign for one would else run at another.
Law 3. Every request has a nonce and a time of its own; the trace and the span stay.
Law 4. A travel document is that of an organisation. A client has none: the stamps of its requests
       stand under its signature, in our own profile.
"""

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from msgspec import Struct, structs

from carnet.core.chain.carnet import Carnet
from carnet.core.people.address import AGENT, check_domain
from carnet.core.people.delegation import Delegation
from carnet.core.people.identity import Account, Mode, Secret
from carnet.core.people.proof import Spending
from carnet.errors import AddressInvalid, PeerAgentNotFound
from carnet.ports.world.clock import Clock, Ids
from carnet.ports.world.http_client import Bounds, Outbound
from carnet.runtime.peers.answer_reader import JSON, SSE
from carnet.runtime.peers.cards import Cards, Site
from carnet.runtime.peers.delegations import Delegating
from carnet.runtime.peers.signing import Signing
from carnet.wire import travel
from carnet.wire.dialects import samvad
from carnet.wire.dialects.policy import RESOLUTION
from carnet.wire.travel.payment import PAYMENT

Form = Literal["samvad", "rfc9421", "carnet"]

MESSAGE: Final = "/agent/message"
STREAM: Final = "/agent/stream"
TASK: Final = "/agent/task"

_UNSIGNED: Final = frozenset({RESOLUTION, PAYMENT})  # by the protocol's own form
_LOOK_SECONDS: Final = 30.0  # for a question without a body


class SamvadRequest(Struct, frozen=True, kw_only=True):
    """What is to be asked."""

    skill: str
    payload: dict[str, Any]
    stream: bool
    trace_id: str
    span_id: str
    parent_span_id: str | None = None
    auth: Secret | None = None
    headers: Mapping[str, str] = {}
    secrets: Mapping[str, Secret] = {}
    carnet: Carnet | None = None  # the document of the callee; without one there is one form
    payer: Account | None = None
    budget: Spending | None = None  # the most that we will pay
    is_task: bool = False  # to be taken on now and answered later; see `samvad_tasks`
    callback: str | None = None  # where the end of a task is to be told
    delegation: str | None = None  # the token that says for whom it is asked
    under: Delegation | None = None  # what it is made under: a token is derived for each request
    card: samvad.Card | None = None  # of the agent, where it was just looked at

    @property
    def currency(self) -> str:
        """That of the amounts which an answer may name."""
        return "" if self.budget is None else self.budget.currency or ""

    @property
    def path(self) -> str:
        """Where it is asked for, after the URL of the agent."""
        if self.is_task:
            return TASK
        return STREAM if self.stream else MESSAGE

    @property
    def mode(self) -> Mode:
        """The protocol's word for that."""
        if self.is_task:
            return "async"
        return "stream" if self.stream else "sync"


class Recipient(Struct, frozen=True, kw_only=True):
    """Where an agent is, and who is expected there."""

    site: Site
    identities: frozenset[str] = frozenset()  # beside the one that its host names
    peer: str | None = None  # the domain of the organisation, where it is listed
    form: Literal["auto"] | Form = "auto"
    bounds: Bounds = Bounds()

    @property
    def home(self) -> Site:
        """Where its gateway says what it is, if it is a Carnet."""
        return Site(self.site.url.partition("/agents/")[0], self.site.kind)

    def check(self, card: samvad.Card) -> None:
        """Refuse a card that is that of somebody else."""
        host = urlsplit(self.site.url).hostname or ""
        named = card.id.removeprefix(AGENT)
        if card.id in self.identities or named == host:
            return
        # Here a host says nothing of who is meant; and one name of this machine is like another.
        at_hand = _is_this_machine(host) and (not self.identities or _is_this_machine(named))
        if not at_hand:
            raise PeerAgentNotFound("the card is that of another agent")


def identities_of(domain: str, local: str) -> frozenset[str]:
    """Who may be expected at an agent of an organisation, by its name there (empty: its default).

    The bare domain is the identity of one of its agents: the default one has a name as well.
    """
    own = {f"{AGENT}{local}.{domain}"} if local else set()
    return frozenset({f"{AGENT}{domain}", *own})


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_domain(name: str) -> bool:
    """Whether an identity is that of an organisation; that of a client is one word."""
    try:
        check_domain(name)
    except AddressInvalid:
        return False
    return True


class RequestWriter:
    """Writes and signs the requests to one agent."""

    def __init__(
        self,
        recipient: Recipient,
        *,
        cards: Cards,
        signing: Signing,
        sender: str,
        clock: Clock,
        ids: Ids,
    ) -> None:
        """`sender` is the identity that we sign for; `cards` are what others publish."""
        self._recipient = recipient
        self._cards = cards
        self._signing = signing
        self._sender = sender
        self._clock = clock
        self._ids = ids
        self._delegating = Delegating(signing, sender=sender, clock=clock, ids=ids)
        self._speaks_for_domain = _is_domain(sender.removeprefix(AGENT))
        self._checked: samvad.Card | None = None  # the card that was found to be the right one

    async def card(self) -> samvad.Card:
        """The card of the agent; PeerAgentNotFound if there is none or it is another's."""
        card = await self._cards.card(self._recipient.site)
        if card is not self._checked:
            self._recipient.check(card)
            self._checked = card
        return card

    async def carnet(self) -> travel.WellKnown | None:
        """What the gateway says of itself if it is a Carnet, and that of the peer we expect."""
        shown = await self._cards.carnet(self._recipient.home)
        is_other = shown is not None and self._recipient.peer not in {None, shown.domain}
        return None if is_other else shown

    def us(self) -> dict[str, str]:
        """Whom the other side's operator would have to admit, and with which key."""
        return {"sender": self._sender, "key": self._signing.public_key()}

    async def write(self, request: SamvadRequest, form: Form) -> Outbound:
        """A request, signed in a form, as it would be sent now."""
        card = request.card or await self.card()
        path = request.path
        plain = Outbound(
            url=f"{self._recipient.site.url}{path}",
            body=self._body(request, card, form),
            headers={
                "content-type": JSON,
                "accept": SSE if request.stream else JSON,
                **request.headers,
            },
            secrets=request.secrets,
            kind=self._recipient.site.kind,
            bounds=self._recipient.bounds,
        )
        if form == "carnet" and request.carnet is not None:
            if not self._speaks_for_domain:  # nobody would believe a document of it
                return self._signing.sign_whole(plain)
            return self._signing.sign_carnet(
                plain,
                request.carnet,
                audience=await self._audience(card),
                payer=request.payer,
                budget=request.budget,
            )
        if form == "rfc9421":
            return self._sign_to_the_letter(plain)
        if request.carnet is None and _UNSIGNED & request.secrets.keys():
            return self._signing.sign_whole(plain)  # the protocol's own form leaves it out
        return self._signing.sign_samvad(plain, path=path)

    def write_empty(self, method: str, path: str, *, signed: bool) -> Outbound:
        """A request without a body, to the agent's own URL."""
        bounds = self._recipient.bounds
        plain = Outbound(
            method=method,
            url=f"{self._recipient.site.url}{path}",
            body=b"",
            headers={"accept": JSON},
            kind=self._recipient.site.kind,
            bounds=structs.replace(bounds, total_seconds=min(bounds.total_seconds, _LOOK_SECONDS)),
        )
        if signed and self._recipient.form == "rfc9421":
            return self._sign_to_the_letter(plain)
        return self._signing.sign_samvad(plain, path=path) if signed else plain

    def _sign_to_the_letter(self, plain: Outbound) -> Outbound:
        """Sign the protocol's three components as RFC 9421 writes them (R50)."""
        path = urlsplit(plain.url).path
        return self._signing.sign_samvad(plain, path=path, newline=False)

    def _body(self, request: SamvadRequest, card: samvad.Card, form: Form) -> bytes:
        token = request.delegation
        if request.under is not None:
            is_carnet = form == "carnet"
            token = self._delegating.derive(
                request.under, request.carnet, request.skill, recipient=card.id, ours=is_carnet
            )
        return samvad.write_request(
            samvad.Envelope(
                sender=self._sender,
                recipient=card.id,
                skill=request.skill,
                mode=request.mode,
                nonce=self._ids.uuid(),
                at=self._clock.wall_us(),
                trace_id=request.trace_id,
                span_id=request.span_id,
                parent_span_id=request.parent_span_id,
                delegation_token=token,
                auth=request.auth,
                callback_url=request.callback,
                payload=request.payload,
            )
        )

    async def _audience(self, card: samvad.Card) -> str:
        """The domain that a travel document is for."""
        shown = await self.carnet()
        if shown is not None:
            return shown.domain
        return self._recipient.peer or card.id.removeprefix(AGENT)
