"""A whole answer: the events of a turn as a response envelope, and back.

It writes answers that are complete. A turn that failed has no answer: `write_answer` raises its
error, and `refusals.write_error` writes that.

Law 1. The bytes are a function of (turn, events, trace): a repeat gets the same ones. The span of
       an answer is new to the caller and yet always the same for one attempt of a turn; it is
       shaped as the UUID that clients expect.
Law 2. A result is an object. A skill says what it is; of an agent that only talks it is its text.
Law 3. What this dialect cannot carry is left out: tool calls, usage, costs and interrupts.
Law 4. Reading takes fields that we do not know and refuses wrong types of those that we do; what
       is not an answer raises `ProviderError`, with nothing of the peer's in its safe text.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from carnet.core.chain.turn import Turn
from carnet.core.messages.events import RESULT, Done, Event, Extension, Text
from carnet.errors import Internal, InvalidJson, ProviderError
from carnet.wire.dialects.results import TEXT, Gathered
from carnet.wire.dialects.samvad.reports import read_failure
from carnet.wire.grammar import json

_EMPTY: Final = {TEXT: ""}  # as a result

MOST_LEVELS: Final = 64  # of a peer's result: a deeper one could be read and never be written

# What a decoder raises for bytes that are not what they should be.
UNREADABLE: Final = (ValueError, RecursionError, InvalidJson)


# ------------------------------------------------------------------ writing


def write_answer(turn: Turn, events: Sequence[Event], *, trace_id: str, span_id: str = "") -> bytes:
    """The response envelope that the events of a turn add up to."""
    gathered = Gathered()
    gathered.add(*events)
    if not gathered.is_done:
        raise Internal("an answer was to be written before its terminal event")
    return json.write(
        {
            "traceId": trace_id,
            "spanId": span_id or span_of(turn),
            "status": "ok",
            "result": gathered.result(),
        }
    )


# ------------------------------------------------------------------ reading


class _Response(Struct, gc=False):
    status: Literal["ok", "error"]
    result: dict[str, Any] | None = None
    error: object = None


_RESPONSE: Final = msgspec.json.Decoder(_Response)


def read_answer(body: bytes) -> list[Event]:
    """The events of a whole answer."""
    try:
        response = _RESPONSE.decode(body)
        if body.count(b"{") + body.count(b"[") > MOST_LEVELS:
            json.refuse_depth(response.result, MOST_LEVELS)
    except UNREADABLE as error:
        raise ProviderError(f"the answer is not a response envelope: {error}") from None
    if response.status == "error":
        raise read_failure(response.error)
    if response.result is None:  # some leave out what is empty
        return [Done()]
    return [*result_events(response.result), Done()]


def result_events(result: dict[str, Any], streamed: Gathered | None = None) -> list[Event]:
    """A result as events, after those that were streamed before it.

    What they add up to is not said again. A result that is a text alone is told as text, so that
    every dialect can carry it.
    """
    if result == (_EMPTY if streamed is None else streamed.result()):
        return []
    text = result.get(TEXT)
    is_new = streamed is None or not streamed.has_text
    if is_new and isinstance(text, str) and text and len(result) == 1:
        return [Text(text)]
    return [Extension(RESULT, result)]


# ------------------------------------------------------------------ spans


def span_of(turn: Turn) -> str:
    """The span of the answer to one attempt of a turn."""
    return span_from(turn.run, turn.turn, str(turn.attempt))


def span_from(*parts: str) -> str:
    """A span for these parts."""
    spelled = blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()
    start, middle = spelled[:8], f"{spelled[8:12]}-{spelled[12:16]}-{spelled[16:20]}"
    return f"{start}-{middle}-{spelled[20:]}"
