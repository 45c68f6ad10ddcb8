"""The front door: chat completions, whole or as a stream.

Law. An error before the first event is an HTTP error; after it, one error frame and no [DONE].
"""

from collections.abc import Sequence

from carnet.core.call import Call
from carnet.core.carnet import DepthLimits
from carnet.core.events import Event, Failed, Usage
from carnet.errors import CarnetError
from carnet.gateway.answering import Answering, raw
from carnet.gateway.inbound import Stamps, read_chat, read_stamps, with_proof
from carnet.http.exchange import Exchange, RawHeaders
from carnet.wire import openai


class ChatDialect:
    """How chat completions are told."""

    begins_at_once = False

    def __init__(self, *, currency: str) -> None:
        """`currency` is that of the ledger."""
        self._currency = currency

    def headers(self, call: Call, /, *, stream: bool) -> RawHeaders:
        """The fields of an answer."""
        if not stream:
            return [*_call_headers(call), (b"content-type", b"application/json")]
        return [
            *_call_headers(call),
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"x-accel-buffering", b"no"),
        ]

    def answer(self, call: Call, events: Sequence[Event], /) -> bytes:
        """One chat completion."""
        return openai.write_answer(call.record, events, model=call.agent, currency=self._currency)

    def frames(self, call: Call, /) -> openai.ChunkWriter:
        """Chunks of a chat completion."""
        return openai.ChunkWriter(
            call.record,
            model=call.agent,
            include_usage=call.ask.include_usage,
            currency=self._currency,
        )

    def refusal(
        self, call: Call, failed: Failed, usage: Usage | None, /
    ) -> tuple[int, RawHeaders, bytes]:
        """An error object beside what the call has cost."""
        status, headers, body = openai.write_error(
            failed.error(), run=call.carnet.run, usage=usage, currency=self._currency
        )
        return status, [*_call_headers(call), *raw(headers)], body


class Chat:
    """Answers chat completion requests."""

    def __init__(self, answering: Answering, *, depths: DepthLimits) -> None:
        """`depths` bound the chains that the stamps tell of."""
        self._answering = answering
        self._depths = depths

    async def __call__(self, exchange: Exchange, agent: str | None = None) -> None:
        """Answer one request."""
        answering = self._answering
        began = answering.begin()
        stamps = read_stamps(exchange.headers, self._depths)
        try:
            body = await answering.receive(exchange)
            claim = read_chat(exchange.headers, stamps, body, agent)
            claim = with_proof(claim, exchange, body, self._depths)
            call = await answering.admit(claim)
        except CarnetError as error:
            error.run = run_of(stamps)
            raise
        await answering.answer(exchange, call, began)


def run_of(stamps: Stamps) -> str | None:
    """The run that a refused request named."""
    return next((mark.run for mark in stamps.marks if mark.run), None)


def _call_headers(call: Call) -> RawHeaders:
    return [
        (b"x-tangle-runid", call.carnet.run.encode()),
        (b"x-tangle-turnid", call.carnet.turn.encode()),
        (b"cache-control", b"no-store"),
    ]
