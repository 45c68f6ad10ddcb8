"""Agents that speak agents-api: a request for a run, and one for each decision it waits for.

Law 1. The id of the run is the id of our turn: who knows it has begun, and does not begin again.
       Then what became of it is not told, and the call has failed (R20).
Law 2. What was said before, files, and the tools that a caller has run go along. A skill, and what
       an agent of ours asks with that the dialect has no word for, are refused before it leaves.
Law 3. What a run waits for, its call ends with. The decision goes to the action that stands in the
       record of our turn; sent again, it is answered with what came of the first.
Law 4. Who we are is told by our token or by our signature, and by the headers of the caller
       context. Nothing that a caller says overrides them.
Law 5. Every call leaves one record (`OutboundCall`), however it ends. What it reports to cost is
       never owed beyond what it may (A33).
"""

import asyncio
from contextlib import suppress
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from carnet.core.call import Ask, Call
from carnet.core.messages.events import PIECE_BYTES, Failed, Usage, Waiting
from carnet.core.messages.interrupt import Answered, paid
from carnet.core.messages.output import Output, Sink
from carnet.core.people.identity import CHAT, Secret
from carnet.core.people.proof import Spending
from carnet.errors import (
    CarnetError,
    DepthExceeded,
    InvalidRequest,
    PeerRefused,
    ProviderError,
    SkillNotFound,
)
from carnet.ports.world.http_client import Bounds, HttpAnswer, HttpClient, Outbound
from carnet.runtime.agents.remote import shown_as
from carnet.runtime.peers.answer_reader import JSON, SSE, is_stream, read_some, read_stream, tell
from carnet.runtime.peers.policies import Ending, HeldAnswer, surfaced, with_agreed
from carnet.runtime.peers.signing import OWN, Signing, Stamping
from carnet.runtime.receipts.outbound_calls import Calling
from carnet.wire.dialects.agents_api import client as wire
from carnet.wire.dialects.agents_api.actions import place_of
from carnet.wire.dialects.agents_api.stream import RunReader

DIALECT: Final = "agents_api"
UNSPEAKABLE: Final = (
    "has no word in agents-api, which the called agent speaks; leave it out, or reach it in "
    "another dialect"
)
_INSTRUCTING: Final = frozenset({"system", "developer"})


class AgentsApiEndpoint(Struct, frozen=True, kw_only=True):
    """Where an agent is asked, and how we are known there."""

    url: str  # in full, with the name of the agent
    token: Secret | None = None
    bounds: Bounds = Bounds()
    peer: str | None = None  # the domain of its organisation, where it is listed


class AgentsApiPeer:
    """An agent elsewhere."""

    def __init__(
        self,
        http: HttpClient,
        endpoint: AgentsApiEndpoint,
        *,
        most_cost: int = 0,
        currency: str = "credits",
        stamping: Stamping = OWN,
        signing: Signing | None = None,
        domain: str = "",
    ) -> None:
        """Reach one agent.

        Args:
            http: Sends its requests.
            endpoint: Where it is.
            most_cost: The most it may charge for one call, in micro-units; 0 if it is free.
            currency: That of the amounts.
            stamping: What its calls carry, and whose credential.
            signing: Given where calls to a peer without a token are signed.
            domain: Ours, which nobody elsewhere speaks for.
        """
        self._http = http
        self._endpoint = endpoint
        self._secrets = shown_as(endpoint.token)
        self._most_cost = most_cost
        self._currency = currency
        self._stamping = replace(stamping, dialect=DIALECT)
        self._signing = signing
        self._domain = domain

    async def __call__(self, call: Call, out: Output, /) -> Ending:
        """Send the call and pass on the answer as it comes."""
        free = None if self._most_cost else 0
        calling = Calling(call, out, dialect=DIALECT, bound=self._bounded, cost=free)
        try:
            decided = [each for each in call.resolved if place_of(each.interrupt) is not None]
            if decided:
                end = await self._decide(call, decided, calling)
            else:
                end = await self._begin(call, calling)
        except BaseException as error:
            if isinstance(error, DepthExceeded):  # who refuses need not say at which depth
                error.facts.setdefault("observed", call.carnet.depth)
            calling.ended(error)
            raise
        if type(end) is Waiting:
            calling.waits = True
            end = surfaced(end, call, self._domain)
        calling.ended()
        return end

    async def _begin(self, call: Call, calling: Calling) -> Ending:
        ask = call.ask
        _refuse_unspeakable(call)
        body = wire.write_message(
            ask, run=call.carnet.turn, session=call.carnet.run, stream=ask.stream
        )
        return await self._send(call, body, calling, calling, stream=ask.stream)

    async def _decide(self, call: Call, decided: list[Answered], calling: Calling) -> Ending:
        """Bring every decision that is waited for; what was said before is said again."""
        for each in decided[:-1]:  # of those before the last it may know what came of them
            with suppress(PeerRefused):
                await self._bring(call, each, calling, HeldAnswer(calling))
        return await self._bring(call, decided[-1], calling, calling)

    async def _bring(self, call: Call, answered: Answered, calling: Calling, sink: Sink) -> Ending:
        place, resolution = place_of(answered.interrupt), answered.resolution
        body = wire.write_decision(
            "" if place is None else place.action,
            resolution,
            resolver=resolution.resolver or self._domain or DIALECT,
            name=f"{call.carnet.turn}/{answered.interrupt.id}",
        )
        return await self._send(call, body, calling, sink, stream=False)

    # -------------------------------------------------------------- one request

    async def _send(
        self, call: Call, body: bytes, calling: Calling, sink: Sink, *, stream: bool
    ) -> Ending:
        headers, secrets = self._stamping.write(call)
        outbound = Outbound(
            url=self._endpoint.url,
            body=body,
            headers={
                "content-type": JSON,
                "accept": f"{JSON}, {SSE}" if stream else JSON,
                **headers,
            },
            secrets={**secrets, **self._secrets},
            bounds=self._endpoint.bounds,
        )
        outbound = self._signed(outbound, call)
        calling.is_sent, calling.receipt.sent = True, outbound.signed
        async with self._http.send(outbound) as answer:
            return await read_run(answer, sink, currency=self._currency, stream=stream)

    def _signed(self, outbound: Outbound, call: Call) -> Outbound:
        """The same with the travel document, where a peer knows us by our key."""
        signing, peer = self._signing, self._endpoint.peer
        if signing is None or peer is None or self._secrets:
            return outbound
        carnet, most = call.carnet, self._most_cost
        if call.resolved:
            more = paid(call.resolved)
            carnet, most = with_agreed(carnet, more), most + more
        return signing.sign_carnet(
            outbound,
            carnet,
            audience=peer,
            payer=call.payer.account,
            budget=Spending(money=most, currency=self._currency),
        )

    def _bounded(self, usage: Usage, call: Call) -> Usage:
        """What counts of a usage: its cost, as far as we pay it."""
        budget = call.carnet.budget
        money = None if budget is None else budget.money
        most = self._most_cost if money is None else min(money, self._most_cost)
        if call.resolved:
            most += paid(call.resolved)
        return replace(usage, cost=None if usage.cost is None else min(usage.cost, most))


async def read_run(answer: HttpAnswer, sink: Sink, *, currency: str, stream: bool) -> Ending:
    """Read an answer into a Sink; anything but its end raises. `stream` is what was asked for."""
    if not 200 <= answer.status < 300:  # noqa: PLR2004  the class of success
        raise wire.read_refusal(
            answer.status,
            await read_some(answer),
            retry_after=answer.header("retry-after"),
            date=answer.header("date"),
        )
    if is_stream(answer, wanted=stream):
        return await read_stream(answer, RunReader(currency=currency), _failure, sink)
    body = await answer.read()
    if body[PIECE_BYTES:]:  # a long one is parsed beside the loop
        events = await asyncio.to_thread(wire.read_answer, body, currency=currency)
    else:
        events = wire.read_answer(body, currency=currency)
    return await tell(events, sink)


def _failure(failed: Failed, fault: str) -> CarnetError:
    return ProviderError(fault) if fault else failed.error()


def _refuse_unspeakable(call: Call) -> None:
    """Refuse what would be lost, by its name and with the way out."""
    ask: Ask = call.ask
    if ask.skill not in {None, CHAT.id}:
        raise SkillNotFound("agents-api has no word for skills")
    if not call.is_child:
        return
    found = [name for name in ask.body or {} if name != "messages"]
    if any(message.role in _INSTRUCTING for message in ask.messages):
        found.append("system")
    if found:
        raise InvalidRequest(found[0], UNSPEAKABLE)
