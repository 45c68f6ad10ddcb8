"""A whole answer: the events of a turn as a response envelope, and back.

It writes answers that are complete. A turn that failed has no answer: `write_answer` raises its
error, and `refusals.write_error` writes that.

Law 1. The bytes are a function of (turn, events, trace): a repeat gets the same ones. The span of
       an answer is new to the caller and yet always the same for one attempt of a turn.
Law 2. A result is an object. A skill says what it is; of an agent that only talks it is its text.
Law 3. What this dialect cannot carry is left out: tool calls, usage, costs and interrupts.
Law 4. Reading takes fields that we do not know and refuses wrong types of those that we do; what
       is not an answer raises `ProviderError`, with nothing of the peer's in its safe text.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from carnet.core.events import RESULT, Data, Done, Event, Extension, Failed, Text
from carnet.core.turn import Turn
from carnet.errors import Internal, InvalidJson, ProviderError
from carnet.wire import json
from carnet.wire.samvad.reports import read_failure
from carnet.wire.samvad.spans import span_of

TEXT: Final = "text"
MOST_LEVELS: Final = 64  # of a peer's result: a deeper one could be read and never be written

# What a decoder raises for bytes that are not what they should be.
UNREADABLE: Final = (ValueError, RecursionError, InvalidJson)


# ------------------------------------------------------------------ writing


def write_answer(turn: Turn, events: Sequence[Event], *, trace_id: str, span_id: str = "") -> bytes:
    """The response envelope that the events of a turn add up to."""
    gathered = Gathered()
    for event in events:
        gathered.add(event)
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


class Gathered:
    """What an answer is made of, as it comes."""

    __slots__ = ("_data", "_result", "_texts", "is_done")

    def __init__(self) -> None:
        self.is_done = False
        self._texts: list[str] = []
        self._data: list[object] = []
        self._result: object = None

    def add(self, event: Event) -> None:
        """Take the next event; a failure is raised."""
        match event:
            case Text():
                self._texts.append(event.text)
            case Data():
                self._data.append(event.value)
            case Extension(name=name, payload=payload) if name == RESULT:
                self._result = payload
            case Done():
                self.is_done = True
            case Failed():
                raise event.error()

    @property
    def has_text(self) -> bool:
        """Whether anything was said."""
        return bool(self._texts)

    def result(self) -> dict[str, Any]:
        """The object that the caller gets."""
        if self._result is None:
            return {TEXT: "".join(self._texts) or _data_text(self._data)}
        if isinstance(self._result, dict):
            return self._result
        return {"result": self._result}


def result_of(events: Sequence[Event]) -> dict[str, Any]:
    """What the events of an answer add up to, as callers in Python get it."""
    gathered = Gathered()
    for event in events:
        gathered.add(event)
    return gathered.result()


def _data_text(values: Sequence[object]) -> str:
    """Structured output of an agent that says nothing else: one JSON value a line."""
    return "\n".join([json.write_text(value) for value in values])


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
        json.refuse_depth(response.result, MOST_LEVELS)
    except UNREADABLE as error:
        raise ProviderError(f"the answer is not a response envelope: {error}") from None
    if response.status == "error":
        raise read_failure(response.error)
    if response.result is None:
        raise ProviderError("the answer has no result")
    return [*result_events(response.result, Gathered()), Done()]


def result_events(result: dict[str, Any], streamed: Gathered) -> list[Event]:
    """A result as events, after those that were streamed before it.

    What they add up to is not said again. A result that is a text alone is told as text, so that
    every dialect can carry it.
    """
    if streamed.result() == result:
        return []
    text = result.get(TEXT)
    if isinstance(text, str) and text and len(result) == 1 and not streamed.has_text:
        return [Text(text)]
    return [Extension(RESULT, result)]
