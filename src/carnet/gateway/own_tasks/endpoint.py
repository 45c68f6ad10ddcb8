"""Takes requests whose bodies say whether they are calls, or questions about what exists.

Law 1. A call is judged and answered as every call is; it may go on with a task, or be accepted.
Law 2. A question is answered to those who are known, about what is theirs.
Law 3. Whatever is refused names the request by which its caller tells answers apart, and may be
       told by the extensions that were activated.
"""

import logging
from collections.abc import Mapping

from carnet import faults
from carnet.core.call import Call, Claim
from carnet.core.people.proof import Proof
from carnet.errors import CarnetError
from carnet.gateway.bodies import LARGE_BYTES, LargeBody
from carnet.gateway.claims.payment import with_payment
from carnet.gateway.endpoint import DialectEndpoint, request_of, with_proof
from carnet.gateway.own_tasks.bearer import NO_OTHERS, Bearers
from carnet.gateway.own_tasks.questions import OwnTasks
from carnet.http.exchange import Exchange, read_authorization
from carnet.wire import travel
from carnet.wire.dialects.a2a.extensions import wanted
from carnet.wire.dialects.a2a.extensions.envoys import is_presented
from carnet.wire.dialects.dialect import Arrival, Question, Way

logger = logging.getLogger("carnet.gateway")


class TaskEndpoint(DialectEndpoint):
    """Takes the requests of one dialect."""

    bearers: Bearers = NO_OTHERS

    async def either(
        self,
        way: Way,
        own_tasks: OwnTasks,
        exchange: Exchange,
        agent: str | None = None,
        names: Mapping[str, str] | None = None,
    ) -> None:
        """Answer what is a call or a question: its body says which."""
        began = self._answering.begin()
        arrival = self._arrival(way, exchange, agent, names)
        try:
            asked = await self._received(arrival, exchange)
            if isinstance(asked, Claim):
                if asked.continues is not None or asked.resumes is not None:
                    asked = await own_tasks.continued(exchange, asked, arrival)
                elif not asked.agent:
                    asked = await own_tasks.routed(exchange, asked, arrival)
                call = await self._answering.admit(asked)
                _note_doubts(call, asked)
                if call.at_once:
                    await self._answering.answer(exchange, call, began)
                else:
                    await self._answer(exchange, call, began)
            else:
                await own_tasks.ask(exchange, asked, arrival)
        except CarnetError as error:
            refusal = await self._refusal(arrival, error)
            refusal.request_id = arrival.request_id
            refusal.in_stream = arrival.in_stream
            refusal.wanted = wanted(arrival.headers)
            raise refusal from None

    async def _received(self, arrival: Arrival, exchange: Exchange) -> Claim | Question:
        """What a request asks, once its body has come."""
        stamped = arrival.stamped()
        arrival.run = stamped.run
        entered: list[LargeBody] = []
        try:
            if arrival.way.method == "POST":
                arrival.body = await self._answering.receive_any(
                    exchange, lambda: self._enter(arrival, exchange, entered)
                )
            if exchange.line.held:
                await self._vouch(arrival)
                return await entered[0].read(self._read_any, arrival)
            return self._read_any(arrival)
        finally:
            for place in entered:
                place.leave()

    async def _enter(self, arrival: Arrival, exchange: Exchange, entered: list[LargeBody]) -> None:
        """Refuse a stranger, but let a short question come that somebody has signed.

        Whose key that is, only the task says that it is about.
        """
        length = exchange.headers.read_count("content-length") or 0
        is_short = length <= LARGE_BYTES and not exchange.line.held
        if not (is_short and _is_signed_question(arrival)):
            await super()._enter(arrival, exchange, entered)

    def _read_any(self, arrival: Arrival) -> Claim | Question:
        asked = self._dialect.read(arrival)
        if type(asked) is not Claim:
            return asked
        if asked.proof is not None:  # which its dialect has read: nothing else says who calls
            return with_payment(asked, arrival)
        return self.bearers.shown(with_proof(asked, arrival))

    async def _vouch(self, arrival: Arrival) -> str:
        """The same of who brings a credential; an access token is judged with what it asks."""
        headers = arrival.headers
        if headers.get("signature-input") is None and headers.get("carnet") is None:
            shown = self.bearers.read(read_authorization(headers))
            if isinstance(shown, Proof):
                return await self._answering.vouch(None, shown)
            if shown is not None:
                return await self._answering.vouch_access(shown, arrival.agent or "")
        return await super()._vouch(arrival)

    async def _answer(self, exchange: Exchange, call: Call, began: float) -> None:
        """Have a call answered, or say that it was taken on."""
        if not call.is_queued:
            await self._answering.answer(exchange, call, began)
            return
        self._wake()
        faults.point("reply.before_write")
        await exchange.reply(*self._dialect.accepted(call))
        faults.point("reply.after_write")
        self._answering.note_accepted(exchange, call, began)

    def _arrival(
        self,
        way: Way,
        exchange: Exchange,
        agent: str | None,
        names: Mapping[str, str] | None = None,
    ) -> Arrival:
        arrival = Arrival(
            way,
            exchange.headers,
            head=lambda: request_of(exchange),
            stamps=self._stamps,
            agent=agent,
            names=names,
            by_host=lambda: self._published.named(exchange),
        )
        arrival.correlation = exchange.line.correlation
        arrival.path = exchange.path
        arrival.recipient = lambda: self._published.recipient(exchange, agent)
        return arrival


def _note_doubts(call: Call, claim: Claim) -> None:
    """Note in the log where a chain contradicts itself: its numbers have decided (R15)."""
    for mark in claim.marks:
        if mark.doubt is not None:
            carnet = call.carnet
            extra = {"run": carnet.run, "turn": carnet.turn, "agent": call.agent}
            logger.warning("chain contradicts itself", extra={**extra, "detail": mark.doubt})


def _is_signed_question(arrival: Arrival) -> bool:
    """Whether a request can only be a question: it is signed, and without a travel document."""
    headers = arrival.headers
    if read_authorization(headers) is not None or headers.get("signature") is None:
        return False
    request, stamps = arrival.request, arrival.stamps
    return not is_presented(headers) and travel.read_proof(request, None, stamps) is None
