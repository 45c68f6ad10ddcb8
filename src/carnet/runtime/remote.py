"""Agents that are elsewhere: another gateway, or a model provider, both over chat completions.

Law 1. A call to another agent carries the callee's document as it was given: depth, run, turn,
       parent and speaker. Nothing is counted here.
Law 2. A call to a model provider carries none of it: a model is not a hop.
Law 3. The payer's credential leaves only to a callee that is listed for it, byte for byte. If it
       would have to and may not, the call is not made: without it the wrong party would pay.
Law 4. Every call to another agent leaves one record (`Leg`), however it ends: just before its end,
       or among the notes of the call where nobody listens any more.
Law 5. What a callee charges is told also where it failed; what it charges beyond its limit is not
       owed.
Law 6. All calls of a run belong to one trace: the one that came, or one that the run names.
"""

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from hashlib import blake2b
from typing import Final, Literal

import msgspec
from msgspec import Struct

from carnet.core.call import Ask, Call, Message
from carnet.core.carnet import Carnet, Trace
from carnet.core.events import Done, Event, Failed, Leg, Usage
from carnet.core.secret import Secret
from carnet.errors import (
    Cancelled,
    CarnetError,
    ConfigInvalid,
    Malformed,
    PeerBusy,
    PeerNotListed,
    PeerRefused,
    ProviderError,
    ProviderTimeout,
    Refused,
)
from carnet.ports.door import Answer, Bounds, Door, Outbound
from carnet.runtime.closing import closing
from carnet.wire import openai, tangle, trace

logger = logging.getLogger("carnet.runtime")

AGENT_OWNED: Final = "agent-owned"

_MOST_REFUSAL_BYTES: Final = 64 * 1024
_REST_SECONDS: Final = 0.1  # how long the end of a stream may take after its last word
_TOKEN: Final = re.compile(r"[!-~]+", re.ASCII)
_JSON: Final = "application/json"
_SSE: Final = "text/event-stream"

LegStatus = Literal["done", "failed", "refused"]


class Endpoint(Struct, frozen=True, kw_only=True):
    """Where chat completions are served, and how we are known there."""

    url: str  # in full, with the path of the completions
    model: str  # the name the agent or model has there
    token: Secret | None = None
    currency: str = "credits"
    bounds: Bounds = Bounds()

    def authorization(self) -> dict[str, Secret]:
        """The header that says who we are."""
        if self.token is None:
            return {}
        token = self.token.reveal()
        if not _TOKEN.fullmatch(token):
            raise ConfigInvalid(key="token", reason="holds a character that no header can carry")
        return {"authorization": Secret(f"Bearer {token}")}

    def outbound(self, ask: Ask, headers: dict[str, str], secrets: dict[str, Secret]) -> Outbound:
        """The request for what is asked."""
        accept = _SSE if ask.stream else _JSON
        return Outbound(
            url=self.url,
            body=openai.write_request(ask, model=self.model, stream=ask.stream),
            headers={"content-type": _JSON, "accept": accept, **headers},
            secrets=secrets,
            bounds=self.bounds,
        )


class Remote:
    """An agent of another gateway, reached with the Tangle stamp."""

    def __init__(
        self,
        door: Door,
        endpoint: Endpoint,
        *,
        most_cost: int,
        takes_credential: bool = False,
        forwards: str = "forward-user",
    ) -> None:
        """Reach one agent.

        Args:
            door: The way out.
            endpoint: Where it is.
            most_cost: The most it may charge for one call, in micro-units.
            takes_credential: Whether the payer's credential may leave to it.
            forwards: "agent-owned" if calls to it are paid by the caller itself.
        """
        self._door = door
        self._endpoint = endpoint
        self._authorization = endpoint.authorization()
        self._most_cost = most_cost
        self._takes_credential = takes_credential
        self._forwards = forwards

    async def __call__(self, call: Call, /) -> AsyncIterator[Event]:
        """Send the call and give the answer as it comes."""
        cost: int | None = None
        recorded = False
        try:
            async with (
                self._door.send(self._outbound(call)) as answer,
                closing(_listen(answer, call.ask, self._endpoint.currency)) as events,
            ):
                async for event in events:
                    said = event
                    if type(said) is Usage:
                        said = self._within_limit(said, call)
                        cost = said.cost
                    elif type(said) is Done:
                        recorded = True
                        yield _leg(call, cost, "done")
                    yield said
        except CarnetError as error:
            yield _leg(call, cost, _ending(error), error.code)
            raise
        except (asyncio.CancelledError, GeneratorExit) as leaving:  # nothing can be said any more
            if not recorded:
                late = isinstance(leaving, asyncio.CancelledError)
                code = ProviderTimeout.code if late else Cancelled.code
                call.notes.append(_leg(call, cost, "failed", code))
            raise

    async def answer(self, call: Call, /) -> list[Event]:
        """The same in one piece; see `runtime.answering`."""
        said: list[Event] = []
        code: str | None = None
        status: LegStatus = "failed"
        try:
            async with self._door.send(self._outbound(call)) as answer:
                await _hear(answer, call.ask, self._endpoint.currency, said)
            status = "done"
        except CarnetError as error:
            status, code = _ending(error), error.code
            raise
        except asyncio.CancelledError:
            code = ProviderTimeout.code
            raise
        finally:
            cost = self._bound(said, call)
            leg = _leg(call, cost, status, code)
            if status == "done":
                said.insert(-1, leg)
            else:
                call.notes.extend((*said, leg))
        return said

    def _bound(self, said: list[Event], call: Call) -> int | None:
        """Bound the costs among these events by the callee's limit; the last of them."""
        cost = None
        for place, event in enumerate(said):
            if type(event) is Usage:
                said[place] = bounded = self._within_limit(event, call)
                cost = bounded.cost
        return cost

    def _outbound(self, call: Call) -> Outbound:
        headers, secrets = tangle.write(call.carnet, forwarded=self._forwarded(call))
        belongs_to = trace_of(call.carnet)
        headers |= trace.write(belongs_to, span_id(belongs_to, call.carnet.turn))
        return self._endpoint.outbound(call.ask, headers, {**self._authorization, **secrets})

    def _forwarded(self, call: Call) -> Secret | None:
        if call.credential is None or self._forwards == AGENT_OWNED:
            return None
        if not self._takes_credential:  # R5
            raise PeerNotListed
        return call.credential

    def _within_limit(self, usage: Usage, call: Call) -> Usage:
        if usage.cost is None or usage.cost <= self._most_cost:
            return usage
        logger.warning(
            "callee charged more than its limit",
            extra={
                "run": call.carnet.run,
                "turn": call.carnet.turn,
                "agent": call.agent,
                "reported": usage.cost,
                "limit": self._most_cost,
            },
        )
        return msgspec.structs.replace(usage, cost=self._most_cost)


class Provider:
    """A model, reached like any client reaches it."""

    def __init__(self, door: Door, endpoint: Endpoint, *, system_prompt: str | None = None) -> None:
        """`system_prompt` is said before everything else."""
        self._door = door
        self._endpoint = endpoint
        self._authorization = endpoint.authorization()
        self._system_prompt = system_prompt

    async def __call__(self, call: Call, /) -> AsyncIterator[Event]:
        """Ask the model. What it costs is ours to say, by the tokens it counts."""
        ask = self._ask(call)
        async with (
            self._door.send(self._outbound(ask)) as answer,
            closing(_listen(answer, ask, self._endpoint.currency)) as events,
        ):
            async for event in events:
                yield _counted(event)

    async def answer(self, call: Call, /) -> list[Event]:
        """The same in one piece; see `runtime.answering`."""
        ask = self._ask(call)
        said: list[Event] = []
        try:
            async with self._door.send(self._outbound(ask)) as answer:
                await _hear(answer, ask, self._endpoint.currency, said)
        except BaseException:
            call.notes.extend(map(_counted, said))
            raise
        return [*map(_counted, said)]

    def _ask(self, call: Call) -> Ask:
        prompt = self._system_prompt
        return call.ask if prompt is None else _prompted(call.ask, prompt)

    def _outbound(self, ask: Ask) -> Outbound:
        return self._endpoint.outbound(ask, {}, self._authorization)


def trace_of(carnet: Carnet) -> Trace:
    """The trace of a call out. A run without one gets the same at every hop."""
    if carnet.trace is not None:
        return carnet.trace
    digest = blake2b(carnet.run.encode()).hexdigest()
    return Trace(digest[:32], digest[32:48])


def span_id(trace: Trace, turn: str) -> str:
    """The span of a call out: the same for every attempt, so that it needs no record."""
    return blake2b(f"{trace.trace_id}{turn}".encode(), digest_size=8).hexdigest()


def _counted(event: Event) -> Event:
    return Usage(event.tokens_in, event.tokens_out) if type(event) is Usage else event


def _prompted(ask: Ask, prompt: str) -> Ask:
    body = ask.body
    if body is not None:
        body = {**body, "messages": [{"role": "system", "content": prompt}, *body["messages"]]}
    messages = (Message("system", prompt), *ask.messages)
    return msgspec.structs.replace(ask, messages=messages, body=body)


def _leg(call: Call, cost: int | None, status: LegStatus, code: str | None = None) -> Event:
    leg = Leg(
        turn=call.carnet.turn,
        to=call.agent,
        depth=call.carnet.depth,
        status=status,
        cost=cost,
        code=code,
    )
    return leg.event()


def _ending(error: CarnetError) -> LegStatus:
    refused = isinstance(error, Refused | Malformed | PeerRefused | PeerBusy)
    return "refused" if refused else "failed"


# ---------------------------------------------------------------------- reading the answer


def _listen(answer: Answer, ask: Ask, currency: str) -> AsyncIterator[Event]:
    """The events of an answer, the last of them `Done`; anything else raises."""
    if not 200 <= answer.status < 300:  # noqa: PLR2004  the class of success
        return _refused(answer, currency)
    return _streamed(answer, currency) if _is_stream(answer, ask) else _whole(answer, currency)


async def _hear(answer: Answer, ask: Ask, currency: str, said: list[Event]) -> None:
    """Put the events of an answer into `said`, those before an error too."""
    if 200 <= answer.status < 300 and not _is_stream(answer, ask):  # noqa: PLR2004
        said += openai.read_answer(await answer.read(), currency=currency)
        return
    async with closing(_listen(answer, ask, currency)) as events:
        async for event in events:
            said.append(event)


async def _whole(answer: Answer, currency: str) -> AsyncIterator[Event]:
    for event in openai.read_answer(await answer.read(), currency=currency):
        yield event


async def _streamed(answer: Answer, currency: str) -> AsyncIterator[Event]:
    reader = openai.AnswerReader(currency=currency)
    async with closing(answer.chunks()) as chunks:
        async for chunk in chunks:
            for event in reader.feed(chunk):
                if type(event) is Done:
                    await _finish(chunks)
                yield _unless_failed(event, reader.fault)
    for event in reader.close():
        yield _unless_failed(event, reader.fault)


def _is_stream(answer: Answer, ask: Ask) -> bool:
    # Some gateways stream whatever was asked for: what came decides.
    media_type = (answer.header("content-type") or "").partition(";")[0].strip().lower()
    return media_type == _SSE if media_type else ask.stream


def _unless_failed(event: Event, fault: str) -> Event:
    if type(event) is Failed:
        raise ProviderError(fault) if fault else event.error()
    return event


async def _finish(chunks: AsyncIterator[bytes]) -> None:
    """Read the end of a stream that has said all, so that its connection can be used again."""
    try:
        async with asyncio.timeout(_REST_SECONDS):
            async for _ in chunks:
                pass
    except (TimeoutError, CarnetError):
        pass  # then it cannot


async def _refused(answer: Answer, currency: str) -> AsyncIterator[Event]:
    """What a refusal charges all the same; then it is raised."""
    refusal = openai.read_refusal(
        answer.status,
        await _read_some(answer),
        currency=currency,
        retry_after=answer.header("retry-after"),
        date=answer.header("date"),
    )
    if refusal.usage is not None:
        yield refusal.usage
    raise refusal.error


async def _read_some(answer: Answer) -> bytes:
    body = bytearray()
    try:
        async with closing(answer.chunks()) as chunks:
            async for chunk in chunks:
                body += chunk
                if len(body) > _MOST_REFUSAL_BYTES:
                    break
    except CarnetError:
        pass  # the status has said enough
    return bytes(body)
