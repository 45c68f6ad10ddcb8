"""Whom a driver calls: what participants are, as Agents.

Law 1. An agent elsewhere is sent the stamps of its call, with the payer's credential where its
       participant forwards it: who is written into a definition is listed by that, and so is whom a
       function calls with `auth="forward-user"`. For anybody else the call is refused before any
       I/O: without the credential somebody else would pay (R5). Within the turn of a gateway the
       operator's list counts as well.
Law 2. A model is no hop: it is sent neither the chain nor anybody's credential.
Law 3. A function is given a visit; `headers` are those that an agent elsewhere would be sent.
Law 4. What a function calls is one hop deeper, and refused before any I/O where no hop is left.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Protocol
from urllib.parse import urlsplit

from msgspec.structs import replace

from carnet.core.call import AGENT_OWNED, FORWARD_USER, Agent, Ask, Call, Target, turn_key
from carnet.core.dialogue.transcript import text_for
from carnet.core.messages.events import End, Event, Message
from carnet.core.messages.output import Output
from carnet.core.money.amount import MOST_MICROS
from carnet.core.people.address import AGENT, is_agent_uri, is_handle
from carnet.core.people.identity import Secret
from carnet.errors import AgentNotFound, PeerNotListed
from carnet.ports.calls.admission import ClientCallee, ClientLeave
from carnet.ports.world.clock import Clock, Ids
from carnet.ports.world.http_client import HttpClient
from carnet.runtime.agents.python import Native
from carnet.runtime.agents.remote import Provider, Remote, RemoteEndpoint
from carnet.runtime.agents.samvad_peer import SamvadPeer
from carnet.runtime.chain.call_chain import CallChain
from carnet.runtime.client.client import Client, read_address
from carnet.runtime.client.key import load_key
from carnet.runtime.dialogue.definition import (
    ChatModelTarget,
    Conversation,
    Participant,
    is_address,
    name_of,
)
from carnet.runtime.egress.client import EgressClient
from carnet.runtime.peers.cards import Site
from carnet.runtime.peers.samvad_client import RecipientClient, SamvadClient
from carnet.runtime.peers.samvad_request import Recipient
from carnet.runtime.peers.signing import Stamping
from carnet.runtime.visit.means import Converses, VisitMeans
from carnet.runtime.visit.pulled import CollectedAnswer, pulled
from carnet.runtime.visit.visit import Visit
from carnet.wire.dialects import openai

LISTED = Stamping(takes_credential=True)
UNSAID = "unsaid"  # who pays, where a function has not said it
_COMPLETIONS = "/chat/completions"
_FIX = (
    "List {url} for the payer's credential: have it take part, or call it with "
    "auth='forward-user'. With auth='agent-owned' the credential is not sent."
)


class Listing:
    """To whom the payer's credential may leave in the runs of one driver."""

    def __init__(
        self, conversation: Conversation | None = None, chain: CallChain | None = None
    ) -> None:
        """`conversation` is what is run; `chain` that which it is run in."""
        self._named = frozenset(() if conversation is None else _trusted(conversation))
        self._chain = chain

    def let_out(self, callee: ClientCallee, auth: str | None) -> ClientLeave:
        """What a call may carry whose payer is chosen so; refused where none may leave."""
        leave = ClientLeave(is_listed=True)
        if self._chain is not None:
            leave = self._chain.let_out(callee, FORWARD_USER)
        if not leave.is_listed or auth == FORWARD_USER or callee.url in self._named:
            return leave
        return replace(leave, is_listed=False, listing=_FIX.format(url=callee.url))

    def check(self, callee: ClientCallee, auth: str | None, *, forwards: bool) -> None:
        """Refuse a call that would have to carry the credential and may not."""
        leave = self.let_out(callee, auth)
        if forwards and not leave.is_listed:
            raise PeerNotListed(leave.listing or "", fix=leave.listing)


def _trusted(conversation: Conversation) -> Iterator[str]:
    """Where those are who are given the credential by the definition."""
    for each in conversation.participants:
        if each.auth != FORWARD_USER:  # a function says so for the turns of its participant alone
            continue
        others = () if each.on_failure in ("halt", "skip") else (each.on_failure,)
        for target in (each.target, *others):
            if isinstance(target, Conversation):
                yield from _trusted(target)
            elif isinstance(target, Client):
                yield target.url
            elif isinstance(target, str) and is_address(target):
                yield callee_at(target).url


def callee_at(address: str) -> ClientCallee:
    """Whom an address leads to."""
    url, expected = read_address(address)
    return ClientCallee(url=url, identities=frozenset(filter(None, (expected,))))


class Speakers(Protocol):
    """Knows who answers for those who take part."""

    def of(self, target: Any, participant: Participant) -> Agent:
        """Who answers for a target of a participant."""


class DialogueVisit(Visit):
    """One turn of a dialogue as the function that speaks it sees it."""

    @property
    def headers(self) -> dict[str, str]:
        """What a request carries that has somebody elsewhere speak this turn; credential included.

        They are for the agent that answers in the place of this function: its depth is this turn's.
        """
        headers, secrets = LISTED.write(self.call)
        return headers | {name: secret.reveal() for name, secret in secrets.items()}

    def begin(self, ordinal: int) -> None:
        """Count calls and conversations from here: who speaks for another makes its own."""
        self._children.begin(ordinal)

    def _payer_of(self, auth: str | None) -> str:
        """The function chooses: nobody has configured it."""
        if auth not in {None, FORWARD_USER, AGENT_OWNED}:
            raise ValueError(f"auth is 'forward-user' or 'agent-owned', not {auth!r}")
        return auth or UNSAID


class DialogueFunction(Native):
    """A function that takes part in a dialogue."""

    first_ordinal = 0  # of what it calls

    def _visit(self, call: Call, out: Output) -> Visit:
        visit = DialogueVisit(
            call, out, self._dispatch, last_depth=self._last_depth, means=self._means
        )
        visit.begin(self.first_ordinal)
        return visit


class Callees:
    """The agents of a driver, made when they are called first."""

    def __init__(
        self,
        *,
        clock: Clock,
        ids: Ids,
        currency: str,
        http: HttpClient | None = None,
        listing: Listing | None = None,
    ) -> None:
        """Without an HTTP client one is opened when it is needed, and closed with this.

        `listing` says to whom the payer's credential may leave.
        """
        self.listing = listing or Listing()
        self._currency = currency
        self._clock = clock
        self._ids = ids
        self._given = http
        self._own: EgressClient | None = None
        self._samvad: SamvadClient | None = None
        self._agents: dict[tuple[int, int], Agent] = {}
        self.converses: Converses | None = None  # for functions that have others converse

    def of(self, target: Any, participant: Participant) -> Agent:
        """Who answers for a target of a participant."""
        key = (id(participant), id(target))  # one address may be called in several ways
        found = self._agents.get(key)
        if found is None:
            found = self._agents[key] = self._made(target, participant)
        return found

    def _made(self, target: Any, participant: Participant) -> Agent:
        if isinstance(target, ChatModelTarget):
            return self._model(target)
        if isinstance(target, Client):
            token = target.token if participant.token is None else participant.token
            agent = self._by_signature(target.recipient, token, participant.most)
            return ListedPeer(agent, target.callee, self.listing)
        if isinstance(target, str):
            return self.elsewhere(target, token=participant.token, most_cost=participant.most)
        means = VisitMeans(converses=self.converses)
        function = DialogueFunction(target, DriverDispatch(self), last_depth=0, means=means)
        function.first_ordinal = participant.first_ordinal(target)
        return function

    def elsewhere(
        self, address: str, *, token: str | Secret | None = None, most_cost: int | None = None
    ) -> Agent:
        """The agent at an address: by chat completions at a URL, else by the signed dialect."""
        secret = Secret(token) if isinstance(token, str) else token
        callee = callee_at(address)
        if is_handle(address) or is_agent_uri(address):
            recipient = Recipient(site=Site(callee.url), identities=callee.identities)
            agent = self._by_signature(self._signed().to(recipient), secret, most_cost)
            return ListedPeer(agent, callee, self.listing)
        most = MOST_MICROS if most_cost is None else most_cost
        endpoint = RemoteEndpoint(
            url=_chat_url(address),
            model=name_of(address) or "default",
            token=secret,
            currency=self._currency,
        )
        remote = Remote(self._http, endpoint, most_cost=most, stamping=LISTED)
        return ListedPeer(remote, callee, self.listing)

    def _by_signature(
        self, client: RecipientClient, token: str | Secret | None, most_cost: int | None
    ) -> Agent:
        peer = SamvadPeer(
            client,
            token=Secret(token) if isinstance(token, str) else token,
            most_cost=MOST_MICROS if most_cost is None else most_cost,
            currency=self._currency,
            stamping=LISTED,
        )
        return InOneText(peer)

    def _model(self, target: ChatModelTarget) -> Agent:
        endpoint = RemoteEndpoint(
            url=target.url.rstrip("/").removesuffix(_COMPLETIONS) + _COMPLETIONS,
            model=target.model,
            token=target.api_key,
            codec=openai.MODEL,
        )
        return Provider(self._http, endpoint, system_prompt=target.system)

    @property
    def _http(self) -> HttpClient:
        if self._given is not None:
            return self._given
        if self._own is None:
            self._own = EgressClient()
        return self._own

    def _signed(self) -> SamvadClient:
        if self._samvad is None:
            key = load_key()
            sender = f"{AGENT}client-{key.kid}"
            self._samvad = SamvadClient.of(
                self._http, key, sender, clock=self._clock, ids=self._ids
            )
        return self._samvad

    async def close(self) -> None:
        """Close the connections."""
        if self._samvad is not None:
            await self._samvad.close()
        if self._own is not None:
            await self._own.close()


def _chat_url(address: str) -> str:
    url = address.rstrip("/")
    path = urlsplit(url).path
    if path.endswith(_COMPLETIONS):
        return url
    return url + (_COMPLETIONS if path.endswith("/v1") else f"/v1{_COMPLETIONS}")


class ListedPeer:
    """An agent elsewhere that is called where that may be, and given what it may have."""

    def __init__(self, agent: Agent, callee: ClientCallee, listing: Listing) -> None:
        self._agent = agent
        self._callee = callee
        self._listing = listing

    async def __call__(self, call: Call, out: Output, /) -> End:
        """Call it, unless that is refused."""
        self._listing.check(self._callee, FORWARD_USER, forwards=call.credential is not None)
        return await self._agent(call, out)


class InOneText:
    """An agent that is given all that was spoken as one text, since it takes no more."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    async def __call__(self, call: Call, out: Output, /) -> End:
        """Ask it with the text."""
        text = text_for(call.ask.messages, call.carnet.speaker or "")
        ask = Ask(messages=(Message.user(text),), stream=call.ask.stream)
        return await self._agent(replace(call, ask=ask), out)


class DriverDispatch:
    """How a function that takes part calls somebody else: by an address, since nobody routes."""

    def __init__(self, callees: Callees) -> None:
        self._callees = callees

    async def __call__(
        self, parent: Call, name: str, ask: Ask, *, index: int, auth: str
    ) -> AsyncIterator[Event]:
        """Call it one hop deeper, and give its events as they come."""
        agent, call = self._child(parent, name, ask, index=index, auth=auth)

        async def say(sink: Any) -> End:
            return await agent(call, _ChildOutput(sink))

        async for event in pulled(say):
            yield event

    async def whole(
        self, parent: Call, name: str, ask: Ask, *, index: int, auth: str
    ) -> Sequence[Event]:
        """Call it one hop deeper, and wait for all of its events."""
        agent, call = self._child(parent, name, ask, index=index, auth=auth)
        answer = CollectedAnswer()
        end = await agent(call, _ChildOutput(answer))
        return [*answer.events, *answer.used, end]

    def check(self, call: Call) -> None:
        """Nothing revokes what a driver does."""

    def most_cost(self, name: str, ask: Ask) -> int:
        """Nothing that a budget would have to be raised for."""
        del name, ask
        return 0

    def let_out(self, parent: Call, callee: ClientCallee, *, auth: str | None) -> ClientLeave:
        """What a call may carry that a function makes by itself."""
        del parent
        return self._callees.listing.let_out(callee, auth)

    def _child(
        self, parent: Call, name: str, ask: Ask, *, index: int, auth: str
    ) -> tuple[Agent, Call]:
        if not is_address(name):
            raise AgentNotFound("a driver without a gateway calls by address")
        carnet = parent.carnet.next_hop(
            index=index,
            speaker=name_of(name),
            key=parent.record.key,
            default=parent.carnet.bound(0),
        )
        credential = None if auth == AGENT_OWNED else parent.credential
        self._callees.listing.check(callee_at(name), auth, forwards=credential is not None)
        agent = self._callees.elsewhere(name)
        return agent, replace(
            parent,
            agent=name,
            ask=ask,
            carnet=carnet,
            credential=credential,
            target=Target(name=name, speaker=name_of(name), agent=agent, credit=f"peer:{name}"),
            record=replace(
                parent.record,
                agent=name,
                turn=carnet.turn,
                parent_turn=carnet.parent_turn,
                depth=carnet.depth,
                key=turn_key(
                    payer=parent.payer.account,
                    actor=parent.caller.actor.name,
                    agent=name,
                    carnet=carnet,
                    digest=b"",
                ),
            ),
            is_child=True,
        )


class _ChildOutput:
    """The Output of a call that a function makes: its events go where they are read."""

    def __init__(self, sink: Any) -> None:
        self.write = sink.write
        self.usage = sink.usage

    def called(self, _: object, /) -> None:
        """It is in the callee's own record."""

    def mark(self) -> int:
        return 0

    def back(self, _: int, /) -> bool:
        return False
