"""The front door: chat completions, whole or as a stream. The hot path of the gateway.

Law 1. Nothing is executed before the claim is recorded, and nothing is acknowledged before the
       end is.
Law 2. An error before the first event is an HTTP error; after it, one error frame and no [DONE].
"""

from collections.abc import Sequence
from contextlib import aclosing

from carnet.core.call import Call
from carnet.core.carnet import DepthLimits
from carnet.core.events import Event, Extension, Failed, Usage
from carnet.errors import CarnetError, OutcomeUnknown, ShuttingDown
from carnet.faults import point
from carnet.gateway.exchange import Disconnected, Exchange, RawHeaders, check_json_body
from carnet.gateway.inbound import Stamps, read_chat, read_stamps
from carnet.guards.crowd import Crowd
from carnet.ports.admission import Admission
from carnet.ports.agent import Journal
from carnet.ports.clock import Clock
from carnet.telemetry import CallNote, Metrics, note_call
from carnet.wire import openai, sse

HEARTBEAT_SECONDS = 15.0
KEEP_ALIVE = sse.write_comment("keep-alive")


class Chat:
    """Answers chat completion requests."""

    def __init__(
        self,
        *,
        admission: Admission,
        journal: Journal,
        crowd: Crowd,
        clock: Clock,
        metrics: Metrics,
        depths: DepthLimits,
        currency: str,
        max_bytes: int,
    ) -> None:
        """The gate before, the journaled agents behind."""
        self._admission = admission
        self._journal = journal
        self._crowd = crowd
        self._clock = clock
        self._metrics = metrics
        self._depths = depths
        self._currency = currency
        self._max_bytes = max_bytes
        self.draining = False

    async def __call__(self, exchange: Exchange, agent: str | None = None) -> None:
        """Answer one request."""
        if self.draining:
            raise ShuttingDown(retry_after=1)
        began = self._clock.monotonic()
        stamps = read_stamps(exchange.headers, self._depths)
        try:
            call = await self._admit(exchange, stamps, agent)
        except CarnetError as error:
            error.run = run_of(stamps)
            raise
        actor = call.caller.actor.name
        state = "failed"
        try:
            if call.ask.stream:
                state = await self._stream(exchange, call)
            else:
                state = await self._answer(exchange, call)
        except Disconnected:
            state = "disconnected"
        except CarnetError as error:
            error.run = call.carnet.run
            state = error.code
            raise
        finally:
            self._crowd.leave(actor, stream=call.ask.stream)
            self._note(exchange, call, state, self._clock.monotonic() - began)

    async def _admit(self, exchange: Exchange, stamps: Stamps, agent: str | None) -> Call:
        check_json_body(exchange.headers)
        body = await exchange.read(self._max_bytes)
        point("recv.body")
        claim = read_chat(exchange.headers, stamps, body, agent)
        point("parse.ok")
        if self.draining:  # it began while the body was on its way
            raise ShuttingDown(retry_after=1)
        return await self._admission.admit(claim)

    async def _answer(self, exchange: Exchange, call: Call) -> str:
        with exchange.watch():
            events = await self._journal.whole(call)
        end = events[-1]
        point("reply.before_write")
        if isinstance(end, Failed):
            await self._refuse(exchange, call, end, events)
            return end.code
        body = openai.write_answer(call.record, events, model=call.agent, currency=self._currency)
        headers = [*_call_headers(call), (b"content-type", b"application/json")]
        await exchange.reply(200, headers, body)
        point("reply.after_write")
        return "done"

    async def _stream(self, exchange: Exchange, call: Call) -> str:
        writer = openai.ChunkWriter(
            call.record,
            model=call.agent,
            include_usage=call.ask.include_usage,
            currency=self._currency,
        )
        held: list[Event] = []  # until it is known whether this is a stream or an error
        last: Event | None = None
        with exchange.watch():
            async with aclosing(
                self._journal.batches(call, heartbeat=HEARTBEAT_SECONDS)
            ) as batches:
                async for batch in batches:
                    if not exchange.started:
                        held += batch
                        failed = _only_failed(held)
                        if failed is not None:
                            break
                        if not _has_content(held):
                            continue
                        await self._start_stream(exchange, call)
                        batch = held  # noqa: PLW2901  what was held goes out with what came
                    last = batch[-1] if batch else last
                    await exchange.write(writer.write(batch) if batch else KEEP_ALIVE)
                    point("event.after_socket_write")
        if not exchange.started:
            failed = _only_failed(held) or Failed.of(OutcomeUnknown())
            await self._refuse(exchange, call, failed, held)
            return failed.code
        await exchange.write(b"", more=False)
        point("reply.after_write")
        return last.code if isinstance(last, Failed) else "done"

    async def _start_stream(self, exchange: Exchange, call: Call) -> None:
        point("reply.before_write")
        await exchange.start(
            200,
            [
                *_call_headers(call),
                (b"content-type", b"text/event-stream; charset=utf-8"),
                (b"x-accel-buffering", b"no"),
            ],
        )
        point("reply.half_written")

    async def _refuse(
        self, exchange: Exchange, call: Call, failed: Failed, events: Sequence[Event]
    ) -> None:
        """Answer an admitted call with an error, and say what it has cost all the same."""
        self._metrics.refusals.labels(failed.code).inc()
        usage = next((event for event in events if isinstance(event, Usage)), None)
        status, headers, body = openai.write_error(
            failed.error(), run=call.carnet.run, usage=usage, currency=self._currency
        )
        await exchange.reply(status, [*_call_headers(call), *_raw(headers)], body)

    def _note(self, exchange: Exchange, call: Call, state: str, seconds: float) -> None:
        self._metrics.called(_label(call), state, seconds)
        carnet = call.carnet
        trace = carnet.trace
        note_call(
            CallNote(
                at=self._clock.wall_us(),
                correlation_id=trace.trace_id if trace else carnet.run,
                message="call replayed" if call.known else "call answered",
                run=carnet.run,
                turn=carnet.turn,
                client=exchange.client[0] if exchange.client else None,
                agent=call.agent,
                actor=call.caller.actor.name,
                depth=carnet.depth,
                state=state,
                seconds=round(seconds, 6),
            )
        )


def refuse_request(error: CarnetError, run: str | None) -> tuple[int, RawHeaders, bytes]:
    """The answer to a request that never became a call."""
    status, headers, body = openai.write_error(error, run=run)
    return status, _raw(headers), body


def run_of(stamps: Stamps) -> str | None:
    """The run that a refused request named."""
    return next((mark.run for mark in stamps.marks if mark.run), None)


def _call_headers(call: Call) -> RawHeaders:
    return [
        (b"x-tangle-runid", call.carnet.run.encode()),
        (b"x-tangle-turnid", call.carnet.turn.encode()),
        (b"cache-control", b"no-store"),
    ]


def _raw(headers: dict[str, str]) -> RawHeaders:
    return [(name.encode(), value.encode()) for name, value in headers.items()]


def _has_content(events: Sequence[Event]) -> bool:
    return any(not isinstance(event, Extension | Usage) for event in events)


def _only_failed(events: Sequence[Event]) -> Failed | None:
    """The failure of a turn that said nothing before it."""
    last = events[-1] if events else None
    if isinstance(last, Failed) and not _has_content(events[:-1]):
        return last
    return None


def _label(call: Call) -> str:
    return "remote" if call.agent.startswith("@") else call.agent
