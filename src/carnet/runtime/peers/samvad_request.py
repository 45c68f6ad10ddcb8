"""One signed request to a SAMVAD agent, and its answer.

Law 1. It goes to the address that the operator wrote down, wherever a card points.
Law 2. It is addressed to the agent that is expected there. A card that names somebody else is not
       believed: what we sign for one would else run at another.
Law 3. Every request has a nonce and a time of its own; the trace and the span stay.
Law 4. It is signed in the form that the other side is known to read. Where that is a guess and is
       answered with 401, the other one follows, once, and what was found is remembered (R8). Who
       was recognised as a Carnet is never sent less than the whole profile: anybody on the way
       could answer 401.
Law 5. A Carnet that is listed as a peer must prove its answer; of another one the receipt is not
       believed, as its key is not known to be its own.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from ipaddress import ip_address
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from msgspec import Struct, structs

from carnet.core.chain.carnet import Carnet
from carnet.core.messages.events import Done, Failed
from carnet.core.messages.output import Sink
from carnet.core.people.address import AGENT
from carnet.core.people.delegation import Delegation
from carnet.core.people.identity import Account
from carnet.core.people.proof import Spending
from carnet.core.people.secret import Secret
from carnet.core.people.skill import Mode
from carnet.errors import CarnetError, PeerAgentNotFound, ProviderError
from carnet.ports.world.clock import Clock, Ids
from carnet.ports.world.http_client import Answer, Bounds, HttpClient, Outbound
from carnet.runtime.peers.answer_reader import JSON, SSE, hear_stream, is_stream, read_some, tell
from carnet.runtime.peers.cards import Cards, Place
from carnet.runtime.peers.delegations import Delegating
from carnet.runtime.peers.signing import Signing
from carnet.runtime.receipts.verification import ExpectedReceipt, Verifying
from carnet.wire import travel
from carnet.wire.dialects import samvad

Form = Literal["samvad", "carnet"]

MESSAGE: Final = "/agent/message"
STREAM: Final = "/agent/stream"
TASK: Final = "/agent/task"

_REMEMBERED_SECONDS: Final = 3600.0
_DOUBTED_SECONDS: Final = 60.0  # neither form was taken: the reason is another one
_LOOK_SECONDS: Final = 30.0  # for a question without a body
_OK: Final = range(200, 300)
_UNAUTHORIZED: Final = 401


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

    place: Place
    identities: frozenset[str] = frozenset()  # beside the one that its host names
    peer: str | None = None  # the domain of the organisation, where it is listed
    form: Literal["auto", "samvad", "carnet"] = "auto"
    bounds: Bounds = Bounds()

    @property
    def home(self) -> Place:
        """Where its gateway says what it is, if it is a Carnet."""
        return Place(self.place.url.partition("/agents/")[0], self.place.kind)

    def check(self, card: samvad.Card) -> None:
        """Refuse a card that is that of somebody else."""
        host = urlsplit(self.place.url).hostname or ""
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


class RecipientClient:
    """Sends requests to one agent."""

    def __init__(
        self,
        http: HttpClient,
        recipient: Recipient,
        *,
        cards: Cards,
        signing: Signing,
        sender: str,
        clock: Clock,
        ids: Ids,
        verifying: Verifying | None = None,
    ) -> None:
        """RecipientClient to one agent.

        Args:
            http: Sends the requests.
            recipient: Where it is.
            cards: What others publish.
            signing: Signs what leaves.
            sender: The identity that we sign for.
            clock: The time of a request, and how long a form is remembered.
            ids: Nonces.
            verifying: Asks a Carnet for receipts.
        """
        self._http = http
        self._recipient = recipient
        self._cards = cards
        self._signing = signing
        self._verifying = verifying
        self._sender = sender
        self._clock = clock
        self._ids = ids
        self._delegating = Delegating(signing, sender=sender, clock=clock, ids=ids)
        self._checked: samvad.Card | None = None  # the card that was found to be the right one
        self._form: Form | None = None
        self._form_until = 0.0

    async def card(self) -> samvad.Card:
        """The card of the agent; PeerAgentNotFound if there is none or it is another's."""
        card = await self._cards.card(self._recipient.place)
        if card is not self._checked:
            self._recipient.check(card)
            self._checked = card
        return card

    async def run(
        self, request: SamvadRequest, sink: Sink, receipt: ExpectedReceipt | None = None
    ) -> Done:
        """Read the answer into a Sink; anything but its end raises.

        The receipt of a Carnet is put into `receipt`.
        """
        receipt = receipt or ExpectedReceipt()
        forms = await self._forms(request)
        for form in forms:
            async with self._http.send(await self.request(request, form)) as answer:
                if not self._may_try_another(answer, form, forms):
                    heard = partial(_hear, answer, request, receipt, self._us)
                    return await self.proven(heard, form, request, receipt, sink)
        raise ProviderError("no form of signature is left to try")

    async def proven(
        self,
        heard: Callable[[Sink], Awaitable[Done]],
        form: Form,
        request: SamvadRequest,
        receipt: ExpectedReceipt,
        sink: Sink,
    ) -> Done:
        """Read an answer into a Sink, its end proved by whoever must prove it."""
        peer = self._recipient.peer
        if form != "carnet" or request.carnet is None or self._verifying is None or peer is None:
            return await heard(sink)
        return await self._verifying.proven(
            heard, request.carnet, receipt, sink, peer=peer, told=samvad.result_of
        )

    @asynccontextmanager
    async def sent(self, request: SamvadRequest) -> AsyncIterator[tuple[Answer, Form]]:
        """What a request was answered, and in which form it was signed."""
        forms = await self._forms(request)
        for form in forms:
            async with self._http.send(await self.request(request, form)) as answer:
                if not self._may_try_another(answer, form, forms):
                    yield answer, form
                    return

    def asking(
        self, method: str, path: str, *, signed: bool
    ) -> AbstractAsyncContextManager[Answer]:
        """The answer to a request without a body, at the agent's own URL."""
        bounds = self._recipient.bounds
        plain = Outbound(
            method=method,
            url=f"{self._recipient.place.url}{path}",
            body=b"",
            headers={"accept": JSON},
            kind=self._recipient.place.kind,
            bounds=structs.replace(bounds, total_seconds=min(bounds.total_seconds, _LOOK_SECONDS)),
        )
        return self._http.send(self._signing.sign_samvad(plain, path=path) if signed else plain)

    async def refusal(self, answer: Answer) -> CarnetError:
        """The error that an answer stands for."""
        return await _refusal(answer, self._us())

    async def is_carnet(self) -> bool:
        """Whether the other side shows that it is a Carnet."""
        return await self._shown() is not None

    def _us(self) -> dict[str, str]:
        """Whom the other side's operator would have to admit, and with which key."""
        return {"sender": self._sender, "key": self._signing.public_key()}

    async def request(self, request: SamvadRequest, form: Form | None = None) -> Outbound:
        """A request, signed, as it would be sent now."""
        card = request.card or await self.card()
        form = form or (await self._forms(request))[0]
        path = request.path
        plain = Outbound(
            url=f"{self._recipient.place.url}{path}",
            body=self._write(request, card, form),
            headers={
                "content-type": JSON,
                "accept": SSE if request.stream else JSON,
                **request.headers,
            },
            secrets=request.secrets,
            kind=self._recipient.place.kind,
            bounds=self._recipient.bounds,
        )
        if form == "carnet" and request.carnet is not None:
            return self._signing.sign_carnet(
                plain,
                request.carnet,
                audience=await self._audience(card),
                payer=request.payer,
                budget=request.budget,
            )
        return self._signing.sign_samvad(plain, path=path)

    def _write(self, request: SamvadRequest, card: samvad.Card, form: Form) -> bytes:
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

    def _may_try_another(self, answer: Answer, form: Form, forms: tuple[Form, ...]) -> bool:
        """Whether the form was a guess and is refused; else it is remembered how it went."""
        is_refused = answer.status == _UNAUTHORIZED
        if is_refused and form != forms[-1]:
            return True
        self._remember(forms[0] if is_refused else form, sure=not is_refused)
        return False

    async def _forms(self, request: SamvadRequest) -> tuple[Form, ...]:
        """The forms to try, in order."""
        if request.carnet is None:
            return ("samvad",)
        if self._recipient.form != "auto":
            return (self._recipient.form,)
        if self._form is not None and self._clock.monotonic() < self._form_until:
            return (self._form,)
        return ("samvad", "carnet") if await self._shown() is None else ("carnet",)

    def _remember(self, form: Form, *, sure: bool) -> None:
        self._form = form
        seconds = _REMEMBERED_SECONDS if sure else _DOUBTED_SECONDS
        self._form_until = self._clock.monotonic() + seconds

    async def _audience(self, card: samvad.Card) -> str:
        """The domain that a travel document is for."""
        shown = await self._shown()
        if shown is not None:
            return shown.domain
        return self._recipient.peer or card.id.removeprefix(AGENT)

    async def _shown(self) -> travel.WellKnown | None:
        """What the gateway says of itself if it is a Carnet, and that of the peer we expect."""
        shown = await self._cards.carnet(self._recipient.home)
        is_other = shown is not None and self._recipient.peer not in {None, shown.domain}
        return None if is_other else shown


async def _hear(
    answer: Answer,
    request: SamvadRequest,
    receipt: ExpectedReceipt,
    us: Callable[[], dict[str, str]],
    sink: Sink,
) -> Done:
    receipt.presented = answer.header(travel.RECEIPT_HEADER)
    if answer.status not in _OK:
        raise await _refusal(answer, us())
    if not is_stream(answer, wanted=request.stream):
        return await tell(samvad.read_answer(await answer.read()), sink)
    return await hear_stream(
        answer, samvad.AnswerReader(on_comment=receipt.read_comment), _failure, sink
    )


def _failure(failed: Failed, fault: str) -> CarnetError:
    """What the other side called it, if it did."""
    return failed.error() if failed.facts else ProviderError(fault)


async def _refusal(answer: Answer, us: dict[str, str]) -> CarnetError:
    error = samvad.read_refusal(
        answer.status,
        await read_some(answer),
        retry_after=answer.header("retry-after"),
        date=answer.header("date"),
        carnet_code=answer.header(samvad.CODE_HEADER),
        carnet_field=answer.header(samvad.FIELD_HEADER),
    )
    error.facts.update(us)
    return error
