"""The answer of an agent or a model elsewhere, from bytes to events.

Law 1. What came decides, not what was asked for: some gateways stream whatever was asked.
Law 2. It ends with `Done`, or with `Waiting` where a policy says what is asked for first; what ends
       otherwise raises, and what it charges all the same is told before.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from carnet.core.call import Ask
from carnet.core.messages.events import PIECE_BYTES, Done, Event, Failed, Text, Usage, Waiting
from carnet.core.messages.output import Sink
from carnet.errors import CarnetError, ProviderError
from carnet.ports.world.http_client import HttpAnswer
from carnet.runtime.receipts.verification import ExpectedReceipt
from carnet.wire import travel
from carnet.wire.dialects.outbound import Codec, StreamReader

JSON: Final = "application/json"
SSE: Final = "text/event-stream"

INLINE_BYTES: Final = 16 * 1024  # of a stream, that are read on the loop
TOGETHER: Final = 1024  # characters
_MOST_REFUSAL_BYTES: Final = 256 * 1024  # what it asks for has a schema, perhaps
_REST_SECONDS: Final = 0.1  # how long the end of a stream may take after its last word


async def read_answer(
    answer: HttpAnswer,
    ask: Ask,
    codec: Codec,
    currency: str,
    sink: Sink,
    receipt: ExpectedReceipt | None = None,
) -> Done | Waiting:
    """Read an answer in the dialect of a codec into a Sink; anything but its end raises.

    What the answer brings along as its receipt is put into `receipt`, where there is one.
    """
    if receipt is not None:
        receipt.presented = answer.header(travel.RECEIPT_HEADER)
    if not 200 <= answer.status < 300:  # noqa: PLR2004  the class of success
        return await _refuse(answer, codec, currency, sink)
    if codec.follow is not None and is_stream(answer, wanted=ask.stream):
        on_comment = None if receipt is None else receipt.read_comment
        reader = codec.follow(currency=currency, on_comment=on_comment)
        return await read_stream(answer, reader, _failure, sink)
    body = await answer.read()
    if body[PIECE_BYTES:]:  # a long one is parsed beside the loop
        events = await asyncio.to_thread(codec.read, body, currency=currency)
    else:
        events = codec.read(body, currency=currency)
    return await tell(events, sink)


async def tell(events: Iterable[Event], sink: Sink) -> Done | Waiting:
    """Put the events of a whole answer, the last of them its end, into a Sink."""
    for event in events:
        if type(event) is Done or type(event) is Waiting:
            return event
        if type(event) is Usage:
            sink.usage(event)
        else:
            await sink.write(event)
    raise ProviderError("the answer has no end")


async def read_stream(
    answer: HttpAnswer,
    reader: StreamReader,
    failure: Callable[[Failed, str], CarnetError],
    sink: Sink,
) -> Done | Waiting:
    """Read a stream as `reader` finds it; `failure` says what to raise for another end."""
    while chunk := await answer.next():
        if chunk[INLINE_BYTES:]:  # a flood is read beside the loop (A73)
            events: Iterable[Event] = await asyncio.to_thread(_flood, reader, chunk)
        else:
            events = reader.feed(chunk)
        for event in events:
            if type(event) is Done or type(event) is Waiting:
                await finish(answer)
                return event
            await _pass_on(event, reader, failure, sink)
        del chunk  # it would be held for as long as the next one takes
    for event in reader.close():
        if type(event) is Done or type(event) is Waiting:
            return event
        await _pass_on(event, reader, failure, sink)
    raise ProviderError("the stream has no end")


def _flood(reader: StreamReader, chunk: bytes) -> list[Event]:
    """What much of a stream says, its small texts put together: nobody reads them one by one."""
    events: list[Event] = []
    texts: list[str] = []
    size = 0
    for event in reader.feed(chunk):
        if type(event) is Text and size < TOGETHER:
            texts.append(event.text)
            size += len(event.text)
            continue
        if texts:
            events.append(Text("".join(texts)))
        texts, size = [], 0
        events.append(event)
    return [*events, Text("".join(texts))] if texts else events


async def _pass_on(
    event: Event, reader: StreamReader, failure: Callable[[Failed, str], CarnetError], sink: Sink
) -> None:
    if type(event) is Usage:
        sink.usage(event)
    elif type(event) is Failed:
        error = failure(event, reader.fault)
        if reader.words is not None:
            error.words = error.detail = reader.words
        raise error
    else:
        await sink.write(event)


def is_stream(answer: HttpAnswer, *, wanted: bool) -> bool:
    """Whether an answer is a stream. Some stream whatever was asked for: what came decides."""
    written = answer.header("content-type")
    if written is None:
        return wanted
    if written in {JSON, SSE}:  # as most write it
        return written == SSE
    media_type = written.partition(";")[0].strip().lower()
    return media_type == SSE if media_type else wanted


def _failure(failed: Failed, fault: str) -> CarnetError:
    return ProviderError(fault) if fault else failed.error()


async def finish(answer: HttpAnswer) -> None:
    """Read the end of a stream that has said all, so that its connection can be used again."""
    try:
        async with asyncio.timeout(_REST_SECONDS):
            while await answer.next():
                pass
    except (TimeoutError, CarnetError):
        pass  # then it cannot


async def _refuse(answer: HttpAnswer, codec: Codec, currency: str, sink: Sink) -> Waiting:
    """Raise what a refusal stands for, unless it waits; what it charges is told before."""
    refusal = codec.refusal(
        answer.status,
        await read_some(answer),
        currency=currency,
        retry_after=answer.header("retry-after"),
        date=answer.header("date"),
    )
    if refusal.usage is not None:
        sink.usage(refusal.usage)
    if refusal.interrupts:
        return Waiting(refusal.interrupts)
    raise refusal.error


async def read_some(answer: HttpAnswer) -> bytes:
    """What a refusal says, as far as it is short and comes."""
    body = bytearray()
    try:
        while chunk := await answer.next():
            body += chunk
            if len(body) > _MOST_REFUSAL_BYTES:
                break
    except CarnetError:
        pass  # the status has said enough
    return bytes(body)
