"""The stream that a person's client reads: events into frames, in its own spelling (R17).

    text-delta        {delta}
    tool-call         {id, name, input, label?}
    tool-result       {id, status, output}
    approval-request  {request_id, tool_name, summary, kind, ...}
    approval-result   {request_id, decision, by, edited, arguments?}
    relay             {message_id, author, code}: what follows is said by another agent
    done              {conversation_id, message_id, finish_reason, usage, context_window?}
    error             {code, message, hint, retryable, conversation_id, message_id}

Law 1. There is one end, `done` or `error`, and nothing after it. What waits for somebody ends with
       `done` and the reason `approval_required`; what it waits for stands before.
Law 2. An error has our sentence and our facts, never the raw detail.
"""

from collections.abc import Sequence
from typing import Any, Final

from carnet.core.call import Thread
from carnet.core.messages.events import (
    CONTEXT_WINDOW,
    RELAYED,
    Data,
    Done,
    Event,
    Extension,
    Failed,
    Interrupted,
    Resolved,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    Waiting,
)
from carnet.core.messages.interrupt import Interrupt, Resolution
from carnet.core.money.amount import format_amount
from carnet.errors import CarnetError
from carnet.wire.dialects.dialect import Fields, Reply
from carnet.wire.dialects.engine_chat.refusals import APPROVAL_REQUIRED
from carnet.wire.dialects.engine_chat.request import arguments_of
from carnet.wire.dialects.engine_chat.writer import (
    DONE,
    ERROR,
    MOST_CHARACTERS,
    TEXT_DELTA,
    TOOL_CALL,
    TOOL_RESULT,
)
from carnet.wire.grammar import json, sse

APPROVAL_REQUEST: Final = "approval-request"
APPROVAL_RESULT: Final = "approval-result"
RELAY: Final = "relay"
CONVERSATION_ID: Final = b"x-conversation-id"
MESSAGE_ID: Final = b"x-message-id"
_DECISIONS: Final = {"accepted": "approved", "rejected": "denied"}


def thread_fields(thread: Thread) -> Fields:
    """The headers that name a conversation, and the message that its answer becomes."""
    return [
        (CONVERSATION_ID, thread.conversation.encode()),
        (MESSAGE_ID, thread.answer.encode()),
    ]


class ClientWriter:
    """Writes the stream of one answer."""

    __slots__ = ("_asked", "_currency", "_relayed", "_thread", "_usage", "_window")

    def __init__(self, thread: Thread, currency: str) -> None:
        """`currency` is that of what it costs."""
        self._thread = thread
        self._currency = currency
        self._usage = Usage()
        self._asked: set[str] = set()  # questions that stand in the stream already
        self._relayed = 0  # messages that others have said
        self._window: object = None  # how much of what its model can read is used

    def headers(self, *, stream: bool) -> Fields:
        """The fields of an answer; there is none that is no stream."""
        del stream
        return [
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"cache-control", b"no-store"),
            (b"x-accel-buffering", b"no"),
            *thread_fields(self._thread),
        ]

    def write(self, events: Sequence[Event], /) -> bytes:
        """The frames of a batch of events; empty if there is nothing to see yet."""
        return b"".join([self._frames(event) for event in events])

    def whole(self, events: Sequence[Event], /) -> bytes:
        """All of them at once."""
        return self.write(events)

    def refusal(self, failed: Failed, usage: Usage | None, /) -> Reply:
        """A failure, told in the stream as every other."""
        return Reply(200, self.headers(stream=True), self.write([usage or Usage(), failed]))

    def waiting(self, waiting: Waiting, usage: Usage | None, partial: str, /) -> Reply:
        """What it waits for, told in the stream after what it has answered so far."""
        texts = [Text(partial)] if partial else []
        body = self.write([*texts, usage or Usage(), waiting])
        return Reply(200, self.headers(stream=True), body)

    def _frames(self, event: Event) -> bytes:
        match event:
            case Usage():
                self._usage = event
            case Extension(name=name) if name == RELAYED:
                return self._relay(event.payload)
            case Extension(name=name) if name == CONTEXT_WINDOW:
                self._window = event.payload
            case Waiting():
                return self._ask(event.interrupts) + self._done(APPROVAL_REQUIRED)
            case Interrupted():
                return self._ask((event.interrupt,))
            case Done() | Failed():
                return self._end(event)
        return _frames(event)

    def _ask(self, interrupts: Sequence[Interrupt]) -> bytes:
        """Those of these questions that do not stand in the stream yet."""
        new = [each for each in interrupts if each.id not in self._asked]
        self._asked.update([each.id for each in new])
        return b"".join([_asked(each) for each in new])

    def _relay(self, mark: dict[str, Any]) -> bytes:
        self._relayed += 1
        id = f"{self._thread.answer}.{self._relayed}"
        data = {"message_id": id, "author": mark["author"], "code": mark["code"]}
        return _frame(RELAY, data)

    def _named(self) -> dict[str, str]:
        return {
            "conversation_id": self._thread.conversation,
            "message_id": self._thread.answer,
        }

    def _end(self, end: Done | Failed) -> bytes:
        return self._done(end.reason) if isinstance(end, Done) else self._error(end.error())

    def _done(self, reason: str) -> bytes:
        used = self._usage
        usage = {
            "prompt_tokens": used.tokens_in or 0,
            "completion_tokens": used.tokens_out or 0,
            "cost": None if used.cost is None else format_amount(used.cost),
            "currency": self._currency,
        }
        window = {} if self._window is None else {"context_window": self._window}
        return _frame(DONE, {**self._named(), "finish_reason": reason, "usage": usage, **window})

    def _error(self, error: CarnetError) -> bytes:
        error_page = {"code": error.sent_as or error.code, "message": error.safe_text}
        helps = {"hint": error.next_step, "retryable": error.retryable}
        return _frame(ERROR, {**error_page, **helps, **self._named()})


def _frames(event: Event) -> bytes:
    """What is said on the way to the end."""
    match event:
        case Text() | Data():
            return _text(event.text if isinstance(event, Text) else json.write_text(event.value))
        case ToolCall():
            return _call(event)
        case ToolResult():
            return _frame(
                TOOL_RESULT, {"id": event.id, "status": event.status, "output": event.output}
            )
        case Resolved():
            return _answered(event.interrupt_id, event.resolution)
    return b""


def _answered(id: str, answer: Resolution) -> bytes:
    """Who has decided what; a value stands in the place of the arguments that were asked for."""
    is_edited = answer.value is not None
    page = {"request_id": id, "decision": _DECISIONS[answer.outcome], "by": answer.resolver}
    more = {"edited": is_edited} | ({"arguments": answer.value} if is_edited else {})
    return _frame(APPROVAL_RESULT, page | more)


def _asked(asked: Interrupt) -> bytes:
    more = asked.more or {}
    page: dict[str, Any] = {
        "request_id": asked.id,
        "tool_name": more.get("tool"),
        "summary": asked.message,
        "kind": asked.kind,
        "arguments": more.get("arguments"),
        "asked_by": asked.origin,
        "amount": None if asked.amount is None else format_amount(asked.amount),
        "currency": asked.currency,
        "url": asked.url,
        "options": list(asked.options) or None,
        "without": asked.without or None,  # "go on without" is one of its answers
        "expires_at": asked.expires_at,
    }
    shown = {"request_id", "tool_name", "summary", "kind"}
    kept = {name: page[name] for name in page if page[name] is not None or name in shown}
    return _frame(APPROVAL_REQUEST, kept)


def _text(text: str) -> bytes:
    pieces = [text[at : at + MOST_CHARACTERS] for at in range(0, len(text), MOST_CHARACTERS)]
    return b"".join([_frame(TEXT_DELTA, {"delta": piece}) for piece in pieces])


def _call(call: ToolCall) -> bytes:
    data = {"id": call.id, "name": call.name, "input": arguments_of(call) or {}}
    return _frame(TOOL_CALL, data | {"label": call.label} if call.label else data)


def _frame(event: str, data: dict[str, Any]) -> bytes:
    return sse.write_event(json.write(data), event=event)
