"""From a request that a dialect has read to its answer. The hot path of the gateway.

It is the same for every dialect: what differs is how a claim is read and how events are written.

Law 1. Nothing is executed before the claim is recorded, and nothing is acknowledged before the
       end is.
Law 2. An error before the first event is an HTTP error, unless the dialect begins every stream at
       once; after it, the error is told in the stream.
Law 3. A turn that waits is told as an error is, with what it waits for; a repeat gets the same.
Law 4. A task that is answered at once goes on though its reader leaves, and counts as that reader's
       open call until its end. Who only reads what goes on holds nothing when it has left.
Law 5. Who came with a travel document is given the receipt: in a header, or before the last frame.
Law 6. Who named a request by a key is told when the answer is one that was recorded before.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Sequence
from typing import Final

from msgspec.structs import replace

from carnet import faults
from carnet.core.call import Call, Claim
from carnet.core.chain.turn_id import is_keyed
from carnet.core.messages.events import (
    RECEIPT,
    Event,
    Extension,
    Failed,
    Usage,
    Waiting,
    joined_text,
)
from carnet.core.people.grant import AccessToken
from carnet.core.people.identity import Secret
from carnet.core.people.proof import Proof
from carnet.errors import CarnetError, OutcomeUnknown, ShuttingDown
from carnet.gateway.claims.fault import made_to_fail
from carnet.guards.limits import Concurrency
from carnet.guards.readers import READER_BYTES
from carnet.http.exchange import (
    Check,
    Disconnected,
    DisconnectWatch,
    Exchange,
    RawHeaders,
    check_json_body,
)
from carnet.http.shares import WORDS, shares_of
from carnet.ports.calls.admission import Admission
from carnet.ports.calls.agent import Journal
from carnet.ports.world.clock import Clock
from carnet.telemetry import CallNote, Metrics, note_call
from carnet.wire import travel
from carnet.wire.dialects.dialect import AnswerForm, AnswerWriter, GatewayFacts
from carnet.wire.grammar import sse

HEARTBEAT_SECONDS = 15.0
A2A_MEDIA: Final = "application/a2a+json"
KEEP_ALIVE = sse.write_comment("keep-alive")
_GOING_ON: Final = frozenset({"running", "queued"})
_UNANSWERED: Final = (Failed, Waiting)
REPLAYED_FIELD: Final = (b"idempotent-replayed", b"true")
RECEIPT_FIELD = travel.RECEIPT_HEADER.encode()


class Answering:
    """Answers the calls of one dialect, or of another form of answers."""

    def __init__(
        self,
        dialect: AnswerForm,
        gateway: GatewayFacts,
        *,
        admission: Admission,
        journal: Journal,
        concurrency: Concurrency,
        clock: Clock,
        metrics: Metrics,
        max_bytes: int,
    ) -> None:
        """The gate before, the journaled agents behind; `max_bytes` is the most a body may have."""
        self._dialect = dialect
        self._gateway = gateway
        self._admission = admission
        self._journal = journal
        self._concurrency = concurrency
        self._clock = clock
        self._metrics = metrics
        self._max_bytes = max_bytes
        self.readers = concurrency.readers  # who are told again what was said
        self.draining = False
        self._going_on: set[asyncio.Task[None]] = set()  # tasks whose readers have left

    def begin(self) -> float:
        """Take up a request, or refuse to; when it began."""
        if self.draining:
            raise ShuttingDown(retry_after=1)
        return self._clock.monotonic()

    async def receive(self, exchange: Exchange, check: Check) -> bytes:
        """The whole body of a request; `check` judges its head before a long one is read."""
        check_json_body(exchange.headers)
        body = await exchange.read(self._max_bytes, check)
        if faults.is_armed:
            faults.point("recv.body")
        return body

    async def receive_any(self, exchange: Exchange, check: Check) -> bytes:
        """The whole body of a request that may have none, in whichever spelling of JSON."""
        body = await exchange.read(self._max_bytes, check)
        if body:
            check_json_body(exchange.headers, A2A_MEDIA)
        if faults.is_armed:
            faults.point("recv.body")
        return body

    def vouch(self, authorization: Secret | None, proof: Proof | None) -> Awaitable[str]:
        """Refuse who could not be admitted whatever is asked; the name of who can."""
        return self._admission.vouch(authorization, proof)

    async def vouch_access(self, shown: AccessToken, agent: str) -> str:
        """The same of an access token of a configured issuer."""
        return (await self._admission.askers.who(shown, agent)).actor.name

    def admit(self, claim: Claim) -> Awaitable[Call]:
        """Have a claim judged and recorded; `answer` must follow."""
        if faults.is_armed:
            faults.point("parse.ok")
        if self.draining:  # it began while the body was on its way
            raise ShuttingDown(retry_after=1)
        return self._admission.admit(claim)

    async def answer(self, exchange: Exchange, call: Call, began: float) -> None:
        """Have the call answered, and tell the answer."""
        call = made_to_fail(call) if exchange.line.is_to_fail else call
        actor = call.caller.actor.name
        state = "failed"
        goes_on = False
        try:
            if call.known and call.record.state not in _GOING_ON:
                state = await self._again(exchange, call)
            elif call.ask.stream:
                state = await self._stream(exchange, call)
            else:
                state = await self._whole(exchange, call)
        except Disconnected:
            state = "disconnected"
            goes_on = call.at_once and not call.known  # else it goes on for who asked first
        except CarnetError as error:
            error.run = call.carnet.run
            state = error.code
            raise
        finally:
            if goes_on:
                self._outlast(call, actor)
            else:
                self._concurrency.leave(actor, stream=call.ask.stream)
            self._note(exchange, call, state, self._clock.monotonic() - began)

    def _outlast(self, call: Call, actor: str) -> None:
        """Let a task go on whose reader has left: it counts as that reader's until its end."""
        task = asyncio.create_task(self._read_on(call))
        self._going_on.add(task)

        def ended(_: object) -> None:
            self._going_on.discard(task)
            self._concurrency.leave(actor, stream=call.ask.stream)

        task.add_done_callback(ended)

    async def _read_on(self, call: Call) -> None:
        with contextlib.suppress(CarnetError):  # whoever asks for the task is told
            async for _ in self._journal.batches(replace(call, known=True)):
                pass

    async def _again(self, exchange: Exchange, call: Call) -> str:
        """Tell what was recorded, as far as there is room for what is read of it."""
        is_stream, actor = call.ask.stream, call.caller.actor.name
        readers = self._concurrency.readers
        size = READER_BYTES if is_stream else await self._journal.size(call)
        with DisconnectWatch(exchange.line):
            await readers.enter(actor, size)
        try:
            return await (self._stream if is_stream else self._whole)(exchange, call)
        finally:
            readers.leave(actor, size)

    async def _whole(self, exchange: Exchange, call: Call) -> str:
        with DisconnectWatch(exchange.line):
            events = await self._journal.whole(call)
        end = events[-1]
        if faults.is_armed:
            faults.point("reply.before_write")
        if isinstance(end, _UNANSWERED):
            return await self._refuse(exchange, call, end, events)
        writer = self._dialect.writer(call, self._gateway)
        body = writer.whole(events)
        headers = writer.headers(stream=False)
        if call.known:
            headers += _replay_field(call)
        if call.document is not None:
            headers += _receipt_field(events)
        del events  # its reader may take its time
        await exchange.reply(200, headers, body)
        if faults.is_armed:
            faults.point("reply.after_write")
        return "done"

    async def _stream(self, exchange: Exchange, call: Call) -> str:
        writer = self._dialect.writer(call, self._gateway)
        held: Sequence[Event] = ()  # until it is known whether this is a stream or an error
        last: Event | None = None
        batches = self._journal.batches(call, heartbeat=HEARTBEAT_SECONDS)
        with DisconnectWatch(exchange.line):
            try:
                if call.at_once:  # its reader is told which task it is before anything is said
                    await self._start_stream(exchange, call, writer)
                    await exchange.write(writer.write(()))
                async for batch in batches:
                    if not exchange.started:
                        held = [*held, *batch] if held else batch
                        if _only_ended(held) and not self._dialect.begins_at_once:
                            break
                        if not (_has_content(held) or self._dialect.begins_at_once):
                            continue
                        await self._start_stream(exchange, call, writer)
                        # One name for it, here and below: a second would hold what was said last.
                        batch, held = held, ()  # noqa: PLW2901  it goes out with what came
                    last = batch[-1] if batch else last
                    if len(batch) > WORDS:
                        batch = await self._write_some(exchange, call, writer, batch)  # noqa: PLW2901  as above
                    # No name for it: what was said last would be held for as long as it is silent.
                    await exchange.write(
                        _data(writer, batch, has_receipt=call.document is not None)
                    )
                    faults.point("event.after_socket_write")
            finally:
                await batches.aclose()
        if not exchange.started:
            end = _only_ended(held) or Failed.of(OutcomeUnknown())
            return await self._refuse(exchange, call, end, held)
        await exchange.write(b"", more=False)
        faults.point("reply.after_write")
        return _outcome(last) if isinstance(last, _UNANSWERED) else "done"

    async def _write_some(
        self, exchange: Exchange, call: Call, writer: AnswerWriter, batch: Sequence[Event]
    ) -> Sequence[Event]:
        """Write a long batch in its caller's share of the event loop; the rest of it."""
        shares, caller = shares_of(asyncio.get_running_loop()), call.payer.owing
        last = (len(batch) - 1) // WORDS * WORDS
        for at in range(0, last, WORDS):
            some = batch[at : at + WORDS]
            await exchange.write(_data(writer, some, has_receipt=call.document is not None))
            await shares.step(caller)
        return batch[last:]

    async def _start_stream(self, exchange: Exchange, call: Call, writer: AnswerWriter) -> None:
        faults.point("reply.before_write")
        headers = writer.headers(stream=True)
        if call.known:
            headers += _replay_field(call)
        await exchange.start(200, headers)
        faults.point("reply.half_written")

    async def _refuse(
        self, exchange: Exchange, call: Call, end: Failed | Waiting, events: Sequence[Event]
    ) -> str:
        """Answer an admitted call with an error, and say what it has cost all the same."""
        outcome = _outcome(end)
        self._metrics.refusals.labels(outcome).inc()
        usage = next((event for event in events if isinstance(event, Usage)), None)
        writer = self._dialect.writer(call, self._gateway)
        if isinstance(end, Waiting):
            status, headers, body = writer.waiting(end, usage, joined_text(events))
        else:
            status, headers, body = writer.refusal(end, usage)
        if call.known:
            headers += _replay_field(call)
        if call.document is not None:
            headers += _receipt_field(events)
        await exchange.reply(status, headers, body)
        return outcome

    def note_accepted(self, exchange: Exchange, call: Call, began: float) -> None:
        """Note a task that was taken on; its end is noted by whoever runs it."""
        seconds = self._clock.monotonic() - began
        self._note(exchange, call, "accepted", seconds, "task accepted")

    def _note(
        self, exchange: Exchange, call: Call, state: str, seconds: float, message: str = ""
    ) -> None:
        label = "remote" if call.agent[:1] == "@" else call.agent
        self._metrics.called(label, state, seconds)
        carnet = call.carnet
        trace = carnet.trace
        note_call(
            CallNote(
                at=self._clock.wall_us(),
                correlation_id=trace.trace_id if trace else carnet.run,
                message=message or ("call replayed" if call.known else "call answered"),
                run=carnet.run,
                turn=carnet.turn,
                client=exchange.client[0] if exchange.client else None,
                agent=call.agent,
                actor=call.caller.actor.name,
                depth=carnet.depth,
                state=state,
                seconds=round(seconds, 6),
                caller=None if call.caller.context is None else str(call.caller.context),
            )
        )


def _data(writer: AnswerWriter, batch: Sequence[Event], *, has_receipt: bool) -> bytes:
    data = writer.write(batch) if batch else KEEP_ALIVE
    return _receipt_comment(batch) + data if has_receipt else data


def _replay_field(call: Call) -> RawHeaders:
    """What says that an answer was recorded before, where a key names the request."""
    is_over = call.record.state not in _GOING_ON
    return [REPLAYED_FIELD] if is_over and is_keyed(call.carnet.turn) else []


def _receipt_in(events: Sequence[Event]) -> str | None:
    for event in reversed(events):
        if isinstance(event, Extension) and event.name == RECEIPT:
            return str(event.payload)
    return None


def _receipt_field(events: Sequence[Event]) -> RawHeaders:
    receipt = _receipt_in(events)
    return [] if receipt is None else [(RECEIPT_FIELD, receipt.encode())]


def _receipt_comment(events: Sequence[Event]) -> bytes:
    receipt = _receipt_in(events)
    return b"" if receipt is None else travel.write_comment(receipt)


def _has_content(events: Sequence[Event]) -> bool:
    return any(not isinstance(event, Extension | Usage) for event in events)


def _only_ended(events: Sequence[Event]) -> Failed | Waiting | None:
    """How a turn has ended that has no answer and said nothing before."""
    last = events[-1] if events else None
    if isinstance(last, _UNANSWERED) and not _has_content(events[:-1]):
        return last
    return None


def _outcome(end: Failed | Waiting) -> str:
    return end.code if isinstance(end, Failed) else end.error().code
