"""An answer as it grows: events into the chunks of a chat completion stream.

It writes batches as they were committed and holds back nothing but what the end needs: the usage,
and structured output in case no text comes.

Law 1. The bytes are a function of (turn, events); where the batches were cut makes no difference.
Law 2. One event is one frame of one line, whatever its text holds (A59). Only a text too long for
       a reader's bound is spread over several.
Law 3. A stream ends with `[DONE]` after `Done`, or with one error frame and no `[DONE]` after
       `Failed` or `Waiting`, which also tells what the call has cost. Nothing is written after.
Law 4. Every stream that is done tells its usage: in a chunk of its own for who asks for that, else
       in the one that says why it ended, so that nobody meets a chunk without choices unasked.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from carnet.core.chain.turn import Turn
from carnet.core.messages.events import (
    RESULT,
    Data,
    Done,
    Event,
    Extension,
    Failed,
    Text,
    ToolCall,
    Usage,
    Waiting,
)
from carnet.wire.dialects.openai.answer import (
    charge_member,
    completion_id,
    created_seconds,
    finish_word,
    fits_a_frame,
    shown_data,
    tool_call_object,
    usage_object,
)
from carnet.wire.dialects.openai.refusals import error_object, waiting_object
from carnet.wire.dialects.policy import addressed
from carnet.wire.dialects.results import data_text
from carnet.wire.grammar import json

# A character takes six bytes at the most (\u0000), so that a frame stays below 256 KiB.
MOST_CHARACTERS: Final = 40_000

_write = json.write  # looked up once, not once an event


class ChunkWriter:
    """Writes the stream of one turn."""

    __slots__ = (
        "_calls",
        "_currency",
        "_data",
        "_domain",
        "_ended",
        "_flows",
        "_head",
        "_include_usage",
        "_lead",
        "_opened",
        "_result",
        "_turn",
        "_usage",
    )

    _TAIL: Final = b'},"finish_reason":null}]}\n\n'

    def __init__(
        self, turn: Turn, *, model: str, include_usage: bool, currency: str, domain: str = ""
    ) -> None:
        """`domain` is ours: the address of an agent that asks for something holds it."""
        chunk = {
            "id": completion_id(turn),
            "object": "chat.completion.chunk",
            "created": created_seconds(turn),
            "model": model,
        }
        self._lead = b"data: " + json.write(chunk)[:-1]  # all but the brace that closes it
        self._head = self._lead + b',"choices":[{"index":0,"delta":{"content":'
        self._turn = turn
        self._domain = domain
        self._currency = currency
        self._include_usage = include_usage
        self._usage: Usage | None = None
        self._data: list[object] = []
        self._result: object = None
        self._calls = 0
        self._opened = False
        self._flows = False  # text has begun and not ended: the next one needs no thought
        self._ended = False

    def write(self, events: Sequence[Event]) -> bytes:
        """The frames of a batch; empty if there is nothing to see yet."""
        frames: list[bytes] = []
        head, tail = self._head, self._TAIL
        for event in events:
            if type(event) is Text and self._flows and len(event.text) <= MOST_CHARACTERS:
                frames += (head, _write(event.text), tail)
            elif not self._ended:
                frames += self._frames(event)
        return b"".join(frames)

    def _frames(self, event: Event) -> Iterator[bytes]:
        match event:
            case Text():
                yield from self._text(event.text)
            case ToolCall(is_own=False):
                yield from self._tool_call(event)
            case Data():
                self._data.append(event.value)
            case Usage():
                self._usage = event
            case Extension(name=name, payload=payload) if name == RESULT:
                self._result = payload
            case Done():
                yield from self._done(event)
            case Failed() | Waiting():
                yield self._unanswered(event)

    def _text(self, text: str) -> Iterator[bytes]:
        yield from self._open()
        self._flows = self._flows or bool(text)
        for piece in _pieces(text):
            yield self._head + _write(piece) + self._TAIL

    def _tool_call(self, call: ToolCall) -> Iterator[bytes]:
        yield from self._open()
        # Readers assemble by index. It is counted here: two calls of one index would become one.
        index = {"index": self._calls}
        self._calls += 1
        first, *others = _pieces(call.arguments)
        yield self._fragment(index | tool_call_object(call.id, call.name, first))
        for piece in others:
            yield self._fragment(index | {"function": {"arguments": piece}})

    def _done(self, event: Done) -> Iterator[bytes]:
        yield from self._open()
        if not self._flows and (shown := shown_data(self._data, self._result)):
            yield from self._text(data_text(shown))
        self._ended, self._flows = True, False
        usage = b',"usage":%b' % _write(usage_object(self._usage, self._currency))
        reason = _write(finish_word(event.reason)) + b"}]" + self._result_member()
        last = b',"choices":[{"index":0,"delta":{},"finish_reason":%b' % reason
        if self._include_usage:  # then it is a chunk of its own, as in OpenAI's interface
            yield self._lead + last + b"}\n\n"
            yield self._lead + b',"choices":[]' + usage + b"}\n\n"
        else:
            yield self._lead + last + usage + b"}\n\n"
        yield b"data: [DONE]\n\n"

    def _result_member(self) -> bytes:
        if self._result is None or not fits_a_frame(self._result):
            return b""  # the text has it in pieces
        return b',"carnet":%b' % _write({"result": self._result})

    def _unanswered(self, event: Failed | Waiting) -> bytes:
        self._ended, self._flows = True, False
        error: Mapping[str, Any]
        if isinstance(event, Failed):
            error = error_object(event.error(), run=self._turn.run)
        else:
            asked = addressed(event, self._turn.agent, self._domain)
            error = waiting_object(asked, run=self._turn.run)
        charge = charge_member(self._usage, self._currency)
        return b"data: %b\n\n" % _write({"error": error, **charge})

    def _open(self) -> Iterator[bytes]:
        if not self._opened:
            self._opened = True
            yield self._delta(b'"role":"assistant","content":""')

    def _fragment(self, call: dict[str, Any]) -> bytes:
        return self._delta(b'"tool_calls":[%b]' % _write(call))

    def _delta(self, members: bytes) -> bytes:
        return self._lead + b',"choices":[{"index":0,"delta":{' + members + self._TAIL


def _pieces(text: str) -> list[str]:
    return [text[at : at + MOST_CHARACTERS] for at in range(0, len(text) or 1, MOST_CHARACTERS)]
