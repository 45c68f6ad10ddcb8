"""The SAMVAD client: sends signed requests to agents elsewhere and reads their answers.

Law 1. Who signs is who is named as the sender: the domain of a signature is that of the sender.
Law 2. All agents that one client reaches share its connections, its cards and its keys.
Law 3. A request is signed in the form that the other side is known to read. Where that is a guess
       and is answered with 401, the other one follows, once, and what was found is remembered (R8).
       Who was recognised as a Carnet is never sent less than the whole profile: anybody on the way
       could answer 401.
Law 4. A Carnet that is listed as a peer must prove its answer; of another one the receipt is not
       believed, as its key is not known to be its own.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Final, Self

from msgspec import Struct

from carnet.core.messages.events import Failed
from carnet.core.messages.output import Sink
from carnet.core.people.address import AGENT
from carnet.errors import CarnetError, ProviderError
from carnet.ports.trust.keys import SigningKeys
from carnet.ports.trust.trust import Peer
from carnet.ports.world.clock import Clock, Ids
from carnet.ports.world.http_client import Bounds, HttpAnswer, HttpClient, Outbound
from carnet.runtime.peers.answer_reader import is_stream, read_some, read_stream, tell
from carnet.runtime.peers.cards import Cards, Site
from carnet.runtime.peers.policies import Ending, asked_by
from carnet.runtime.peers.samvad_request import (
    Form,
    Recipient,
    RequestWriter,
    SamvadRequest,
    identities_of,
)
from carnet.runtime.peers.signing import Signing
from carnet.runtime.receipts.verification import ExpectedReceipt, Verifying
from carnet.wire import travel
from carnet.wire.dialects import samvad
from carnet.wire.stamps import STAMPS
from carnet.wire.stamps.stamp import Stamps

_REMEMBERED_SECONDS: Final = 3600.0
_DOUBTED_SECONDS: Final = 60.0  # neither form was taken: the reason is another one
_OK: Final = range(200, 300)
_UNAUTHORIZED: Final = 401


class FormMemory:
    """Remembers which form of signature one agent reads."""

    def __init__(self, clock: Clock) -> None:
        """Nothing is known yet."""
        self._monotonic = clock.monotonic
        self._form: Form | None = None
        self._until = 0.0

    def known(self) -> Form | None:
        """The form that it took last, unless that is too long ago."""
        return self._form if self._monotonic() < self._until else None

    def may_try_another(self, answer: HttpAnswer, form: Form, forms: tuple[Form, ...]) -> bool:
        """Whether the form was a guess and is refused; else it is remembered how it went."""
        is_refused = answer.status == _UNAUTHORIZED
        if is_refused and form != forms[-1]:
            return True
        self._form = forms[0] if is_refused else form
        self._until = self._monotonic() + (_DOUBTED_SECONDS if is_refused else _REMEMBERED_SECONDS)
        return False


class RecipientClient:
    """Sends requests to one agent, and reads the answers."""

    def __init__(
        self,
        http: HttpClient,
        recipient: Recipient,
        *,
        writer: RequestWriter,
        memory: FormMemory,
        verifying: Verifying | None,
    ) -> None:
        """`writer` writes the requests; `verifying` asks a Carnet for receipts."""
        self._http = http
        self._recipient = recipient
        self._writer = writer
        self._memory = memory
        self._verifying = verifying
        self.card = writer.card

    async def run(
        self, request: SamvadRequest, sink: Sink, receipt: ExpectedReceipt | None = None
    ) -> Ending:
        """Read the answer into a Sink; anything but its end raises.

        The receipt of a Carnet is put into `receipt`.
        """
        receipt = receipt or ExpectedReceipt()
        forms = await self._forms(request)
        for form in forms:
            outbound = await self._writer.write(request, form)
            receipt.sent = outbound.signed
            async with self._http.send(outbound) as answer:
                if not self._memory.may_try_another(answer, form, forms):
                    read = partial(_read_answer, answer, request, receipt, self._writer.us)
                    return await self.proven(read, form, request, receipt, sink)
        raise ProviderError("no form of signature is left to try")

    async def proven(
        self,
        read: Callable[[Sink], Awaitable[Ending]],
        form: Form,
        request: SamvadRequest,
        receipt: ExpectedReceipt,
        sink: Sink,
    ) -> Ending:
        """Read an answer into a Sink, its end proved by whoever must prove it."""
        peer = self._recipient.peer
        if form != "carnet" or request.carnet is None or self._verifying is None or peer is None:
            return await read(sink)
        return await self._verifying.proven(
            read, request.carnet, receipt, sink, peer=peer, result_of=samvad.result_of
        )

    @asynccontextmanager
    async def sent(self, request: SamvadRequest) -> AsyncIterator[tuple[HttpAnswer, Form]]:
        """What a request was answered, and in which form it was signed."""
        forms = await self._forms(request)
        for form in forms:
            async with self._http.send(await self._writer.write(request, form)) as answer:
                if not self._memory.may_try_another(answer, form, forms):
                    yield answer, form
                    return

    def asking(
        self, method: str, path: str, *, signed: bool
    ) -> AbstractAsyncContextManager[HttpAnswer]:
        """The answer to a request without a body, at the agent's own URL."""
        return self._http.send(self._writer.write_empty(method, path, signed=signed))

    async def written(self, request: SamvadRequest) -> Outbound:
        """A request, signed, as it would be sent now."""
        return await self._writer.write(request, (await self._forms(request))[0])

    async def refusal(self, answer: HttpAnswer) -> CarnetError:
        """The error that an answer stands for."""
        return await _refusal(answer, self._writer.us())

    async def takes_resolutions(self, request: SamvadRequest) -> bool:
        """Whether an answer to what the other side waits for can go with a request: signed."""
        return (await self._forms(request))[0] == "carnet"

    async def is_carnet(self) -> bool:
        """Whether the other side shows that it is a Carnet."""
        return await self._writer.carnet() is not None

    async def _forms(self, request: SamvadRequest) -> tuple[Form, ...]:
        """The forms to try, in order."""
        if self._recipient.form == "rfc9421":
            return ("rfc9421",)
        if request.carnet is None:
            return ("samvad",)
        if self._recipient.form != "auto":
            return (self._recipient.form,)
        if (known := self._memory.known()) is not None:
            return (known,)
        return ("carnet",) if await self.is_carnet() else ("samvad", "carnet")


async def _read_answer(
    answer: HttpAnswer,
    request: SamvadRequest,
    receipt: ExpectedReceipt,
    us: Callable[[], dict[str, str]],
    sink: Sink,
) -> Ending:
    receipt.presented = answer.header(travel.RECEIPT_HEADER)
    if answer.status not in _OK:
        waiting = asked_by(answer, request.currency)
        if waiting is not None:
            return waiting
        raise await _refusal(answer, us())
    if not is_stream(answer, wanted=request.stream):
        return await tell(samvad.read_answer(await answer.read()), sink)
    reader = samvad.FrameReader(on_comment=receipt.read_comment, currency=request.currency)
    return await read_stream(answer, reader, _failure, sink)


def _failure(failed: Failed, fault: str) -> CarnetError:
    """What the other side called it, if it did."""
    return failed.error() if failed.facts else ProviderError(fault)


async def _refusal(answer: HttpAnswer, us: dict[str, str]) -> CarnetError:
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
        """The client of one agent."""
        writer = RequestWriter(
            recipient,
            cards=self.cards,
            signing=self.signing,
            sender=self.sender,
            clock=self.clock,
            ids=self.ids,
        )
        return RecipientClient(
            self.http,
            recipient,
            writer=writer,
            memory=FormMemory(self.clock),
            verifying=self.verifying,
        )

    async def close(self) -> None:
        """End what is being fetched; the HTTP client is its owner's to close."""
        await self.cards.close()


def site_of(peer: Peer, local: str) -> str:
    """Where the pages of an agent of a peer are; those of its default one are at the root."""
    base = peer.url.rstrip("/")
    return f"{base}/agents/{local}" if local else base


def recipient_of(peer: Peer, local: str, bounds: Bounds) -> Recipient:
    """An agent of a peer by its name there, which its default one has not."""
    return Recipient(
        site=Site(site_of(peer, local)),
        identities=identities_of(peer.domain, local),
        peer=peer.domain,
        form=peer.signature_form,
        bounds=bounds,
    )
