"""Calling an agent without a gateway of one's own.

    async with carnet.connect("agent://globex.example") as agent:
        result = await agent.call("summarise", text="...")

Law 1. The request goes to the address that was given, and is signed with a key of the caller's.
Law 2. What goes wrong is an error of ours with a code, and its `next_step` as a note; what the
       other side said is its `peer_code`.
Law 3. What a call asks for is an error with `interrupts`; `answer` sends the call once more with
       the answer, under the same name, so that the agent goes on.
Law 4. Connections are kept and used again, for as long as the client is open.
Law 5. A call that is made while a request is answered, behind `carnet.Middleware`, or in the turn
       of an agent, goes on with the chain of that; see `runtime.chain.call_chain`.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from copy import copy
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlsplit

from msgspec import Struct, structs

from carnet.core.memo import Memo
from carnet.core.messages.events import Data, Event, Text, Waiting
from carnet.core.messages.interrupt import Interrupt
from carnet.core.people.address import AGENT, is_agent_uri, is_handle, parse_agent_uri, parse_handle
from carnet.core.people.identity import Result, Secret
from carnet.errors import CarnetError, ProviderTimeout, UsageInvalid
from carnet.ports.calls.admission import ClientCallee
from carnet.ports.world.http_client import Bounds
from carnet.runtime.agents.samvad_peer import as_text, text_field, text_skill
from carnet.runtime.chain.call_chain import check_auth, current_chain
from carnet.runtime.client.key import ClientKey, load_key
from carnet.runtime.client.tasks import Task, advised, answered
from carnet.runtime.egress.client import EgressClient
from carnet.runtime.peers.cards import CARD_PATH, Site
from carnet.runtime.peers.samvad_client import RecipientClient, SamvadClient
from carnet.runtime.peers.samvad_request import Recipient, SamvadRequest
from carnet.runtime.peers.samvad_tasks import SamvadTasks
from carnet.runtime.stream import closing
from carnet.runtime.system import SystemClock, SystemIds
from carnet.runtime.visit.pulled import CollectedAnswer, pulled
from carnet.wire.dialects import samvad
from carnet.wire.travel.payment import PAYMENT

SECONDS: Final = 600.0
MOST_ASKED: Final = 1000  # questions that can still be answered


class _Within(Struct, frozen=True, kw_only=True):
    """What the calls of a client belong to."""

    trace_id: str | None = None
    span_id: str | None = None
    parent_span_id: str | None = None
    token: Secret | None = None
    delegation: str | None = None
    auth: str | None = None  # who pays for what is called for a request
    voucher: Secret | None = None  # that pays for the next call, and for no other


class Client:
    """One agent elsewhere. An asynchronous context, or closed with `aclose`."""

    def __init__(self, recipient: Recipient, key: ClientKey, sender: str, within: _Within) -> None:
        """Use `carnet.connect`."""
        clock, ids = SystemClock(), SystemIds()
        self.key = key
        self.sender = sender
        self.url = recipient.site.url
        self._speaker = _name_at(self.url)
        self.callee = ClientCallee(url=self.url, identities=recipient.identities)
        self._ids = ids
        self._within = within
        self._http = EgressClient()
        self._samvad = SamvadClient.of(self._http, key, sender, clock=clock, ids=ids)
        self._client = self._samvad.to(recipient)
        self._tasks = SamvadTasks(self._client)
        self._asked: Memo[str, SamvadRequest] = Memo(MOST_ASKED)  # by the secret of the question

    @property
    def recipient(self) -> RecipientClient:
        """What sends its requests, for whoever calls it in other words."""
        return self._client

    @property
    def token(self) -> Secret | None:
        """What the agent knows us by, beside our signature."""
        return self._within.token

    async def card(self) -> samvad.Card:
        """What the agent says about itself: its id, its skills, its keys."""
        with advised():
            return await self._client.card()

    async def call(
        self, skill: str, payload: Mapping[str, Any] | None = None, /, **fields: Any
    ) -> dict[str, Any]:
        """Ask for a skill and give its result. What goes in is a mapping, or named one by one."""
        request = self._request(skill, {**(payload or {}), **fields}, stream=False)
        return await self._result(request, request)

    async def answer(
        self, question: Interrupt, *, accepted: bool = True, value: Any = None
    ) -> dict[str, Any]:
        """Answer what a call or a stream asked for, and give the result that it comes to.

        Raises as a call does, also with what is asked for next.

        Args:
            question: One of the `interrupts` of the error that the call raised.
            accepted: Whether what is asked for is granted.
            value: What is asked for: a text, one of the options, arguments that were changed.
        """
        request = self._asked.get(question.state)
        if request is None:
            raise UsageInvalid(
                reason="No call of this client waits for that answer.",
                fix="Do what it asks for, and call again.",
            )
        again = answered(request, question, accepted=accepted, value=value)
        return await self._result(again, request)

    async def _result(self, request: SamvadRequest, plain: SamvadRequest) -> dict[str, Any]:
        """The result of a request, which without an answer is the `plain` one."""
        with advised():
            answer = CollectedAnswer()
            with self._noted(request):
                async with _in_time():
                    end = await self._client.run(request, answer)
                if isinstance(end, Waiting):
                    raise self._waits(end, plain)
                return samvad.result_of(answer.events)

    def _waits(self, end: Waiting, request: SamvadRequest) -> CarnetError:
        """Remember which request asks; the error that tells of it."""
        for asked in end.interrupts:
            if asked.state:
                self._asked.keep(asked.state, request)
        return end.error()

    async def stream(
        self, skill: str, payload: Mapping[str, Any] | None = None, /, **fields: Any
    ) -> AsyncIterator[Text | Data | Result]:
        """Ask for a skill and give what it says as it comes: chunks, and in the end its result."""
        request = self._request(skill, {**(payload or {}), **fields}, stream=True)
        events: list[Event] = []
        with advised(), self._noted(request):
            async with closing(pulled(partial(self._client.run, request))) as coming:
                async for event in _each_in_time(coming):
                    if isinstance(event, Text | Data):
                        yield event
                    elif isinstance(event, Waiting):
                        raise self._waits(event, request)
                    events.append(event)
        yield Result(samvad.result_of(events))

    async def task(
        self,
        skill: str,
        payload: Mapping[str, Any] | None = None,
        /,
        *,
        callback: str | None = None,
        delegation: str | None = None,
        **fields: Any,
    ) -> Task:
        """Hand a skill over as a task, which goes on when this process ends.

        Args:
            skill: What is asked for.
            payload: What goes in.
            callback: An https URL of ours that is told the end, however the task ends.
            delegation: The token that says for whom it is asked, instead of the client's.
            **fields: What goes in, named one by one.
        """
        asked = {**(payload or {}), **fields}
        changes = {"is_task": True, "callback": callback}
        request = structs.replace(self._request(skill, asked, stream=False), **changes)
        if delegation is not None:
            request = structs.replace(request, delegation=delegation)
        with advised(), self._noted(request):
            async with _in_time():
                begun = await self._tasks.begin(request)
        secret = begun.webhook_secret
        return Task(self._tasks, begun.id, webhook_secret=secret, request=request)

    def task_of(self, task: str) -> Task:
        """A task that was begun earlier, by the id that it was given then."""
        return Task(self._tasks, task)

    async def chat(self, text: str) -> str:
        """Say something to an agent that chats, or to the only skill that it has."""
        card = await self.card()
        skill = text_skill(card)
        return as_text(await self.call(skill, {text_field(card, skill): text}))

    def within(
        self,
        *,
        trace_id: str | None = None,
        span_id: str | None = None,
        parent_span_id: str | None = None,
        token: str | Secret | None = None,
        delegation: str | None = None,
        voucher: str | Secret | None = None,
    ) -> "Client":
        """The same agent over the same connections, for calls that belong to a trace.

        Without a trace every call is one of its own, and without a span each has a new one. A
        `voucher` pays for one call: of several the second is refused.
        """
        given = {
            "trace_id": trace_id,
            "span_id": span_id,
            "parent_span_id": parent_span_id,
            "delegation": delegation,
        }
        changes: dict[str, Any] = {name: value for name, value in given.items() if value}
        if token is not None:
            changes["token"] = _secret(token)
        if voucher is not None:
            changes["voucher"] = _secret(voucher)
        other = copy(self)
        other._within = structs.replace(self._within, **changes)  # noqa: SLF001  our own
        return other

    async def aclose(self) -> None:
        """Close the connections."""
        await self._samvad.close()
        await self._http.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def _request(self, skill: str, payload: dict[str, Any], *, stream: bool) -> SamvadRequest:
        within = self._within
        request = SamvadRequest(
            skill=skill,
            payload=payload,
            stream=stream,
            trace_id=within.trace_id or self._ids.uuid(),
            span_id=within.span_id or self._ids.uuid(),
            parent_span_id=within.parent_span_id,
            auth=within.token,
            delegation=within.delegation,
            secrets={} if within.voucher is None else {PAYMENT: within.voucher},
        )
        chain = current_chain()
        if chain is None:
            return request
        with advised():
            made = chain.next_call(
                self.callee, speaker=self._speaker, auth=within.auth, run=within.trace_id
            )
        return structs.replace(
            request,
            trace_id=made.carnet.run,
            span_id=made.carnet.turn,
            parent_span_id=made.carnet.parent_turn,
            headers=made.headers,
            secrets={**made.secrets, **request.secrets},
            carnet=made.carnet,
        )

    @contextmanager
    def _noted(self, request: SamvadRequest) -> Iterator[None]:
        """Have the turn that a call is made out of take note of how it ends."""
        chain, made = current_chain(), request.carnet
        if chain is None or made is None:
            yield
            return
        try:
            yield
        except BaseException as error:
            chain.note(made.turn, self.callee, error)
            raise
        chain.note(made.turn, self.callee, None)


@asynccontextmanager
async def _in_time() -> AsyncIterator[None]:
    """Within the time that is left of the request that is being answered, if there is one."""
    chain = current_chain()
    try:
        async with asyncio.timeout(None if chain is None else chain.seconds_left()):
            yield
    except TimeoutError:
        raise ProviderTimeout("the time of the request is over") from None


async def _each_in_time(coming: AsyncIterator[Event]) -> AsyncIterator[Event]:
    """Events, each waited for no longer than there is time."""
    while True:
        async with _in_time():
            event = await anext(coming, None)
        if event is None:
            return
        yield event


def connect(
    address: str,
    *,
    key: ClientKey | Path | str | None = None,
    token: str | Secret | None = None,
    delegation: str | None = None,
    sender: str | None = None,
    identity: str | None = None,
    timeout: float = SECONDS,
    auth: str | None = None,
    voucher: str | Secret | None = None,
) -> Client:
    """Call an agent of the signed dialect from here.

    Args:
        address: `agent://host`, `@name@domain`, or the URL before `/agent/message`.
        key: The file of our key, made if there is none (by default `~/.carnet/client.key`).
        token: What the agent knows us by, where its skill asks for that.
        delegation: The token of `carnet tokens delegate` that says for whom the calls are made; its
            subject is `sender`.
        sender: Our identity; by default `agent://client-` and the name of the key.
        identity: Who is expected at a URL whose host does not say it.
        timeout: Seconds that one call may take.
        auth: Who pays for calls that are made while a request is answered which came with the
            credential of its payer (`carnet.Middleware`, or an agent's turn): "forward-user" lists
            the agent, and the credential is sent to it; "agent-owned" does not, and we pay. Without
            it such a call is refused. In a gateway the operator lists, and this does not.
        voucher: What pays for the first call in our place: a voucher of `carnet vouchers issue`, or
            another payment that is taken there. Others are given to `within`.
    """
    check_auth(auth)
    signer = key if isinstance(key, ClientKey) else load_key(key)
    url, expected = read_address(address)
    recipient = Recipient(
        site=Site(url),
        identities=frozenset(filter(None, (expected, identity))),
        bounds=Bounds(total_seconds=timeout, first_byte_seconds=min(120.0, timeout)),
    )
    within = _Within(
        token=None if token is None else _secret(token),
        delegation=delegation,
        auth=auth,
        voucher=None if voucher is None else _secret(voucher),
    )
    return Client(recipient, signer, sender or f"{AGENT}client-{signer.kid}", within)


def read_address(address: str) -> tuple[str, str | None]:
    """Where an address leads, and who is expected there if it says so."""
    if is_agent_uri(address):
        return f"https://{parse_agent_uri(address)}", address
    if is_handle(address):
        handle = parse_handle(address)
        expected = f"{AGENT}{handle.local}.{handle.domain}"
        return f"https://{handle.domain}/agents/{handle.local}", expected
    if address.startswith(("http://", "https://")):
        return address.rstrip("/").removesuffix(CARD_PATH), None
    raise UsageInvalid(
        reason=f"'{address}' is no address of an agent elsewhere.",
        fix="Give agent://host, @name@domain, or an http(s) URL.",
    )


def _name_at(url: str) -> str:
    """The name of the agent at a URL, as far as that says it."""
    parts = urlsplit(url)
    return parts.path.rpartition("/")[2] or (parts.hostname or "").partition(".")[0]


def _secret(token: str | Secret) -> Secret:
    return token if isinstance(token, Secret) else Secret(token)
