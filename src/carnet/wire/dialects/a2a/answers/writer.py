"""The answer to a message: a task as it has ended, or as it goes on, in the form it was asked in.

Law 1. An agent that fails has answered: its task is told as failed, and the request has succeeded.
Law 2. A stream begins with its task, before the agent has said anything.
Law 3. What is told again is told in the same bytes: there is no clock in an answer but that of the
       record.
"""

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from carnet.core.call import Call
from carnet.core.messages.events import (
    MESSAGE,
    Done,
    Event,
    Extension,
    Failed,
    Text,
    Usage,
    Waiting,
    is_terminal,
)
from carnet.errors import Internal
from carnet.wire.dialects.a2a import extensions
from carnet.wire.dialects.a2a.answers.answer import artifacts_of, plain_status, status_of
from carnet.wire.dialects.a2a.answers.facts import facts_of_call, with_events
from carnet.wire.dialects.a2a.answers.history import history_of
from carnet.wire.dialects.a2a.answers.stream import Seen, TaskStream
from carnet.wire.dialects.a2a.answers.task import moment, write_task
from carnet.wire.dialects.a2a.form import JSON, Binding, Form, form_of
from carnet.wire.dialects.a2a.legacy import older
from carnet.wire.dialects.a2a.message import write_message
from carnet.wire.dialects.a2a.states import COMPLETED, SUBMITTED, WORKING, waiting_state
from carnet.wire.dialects.dialect import Fields, GatewayFacts, Reply
from carnet.wire.dialects.policy import addressed
from carnet.wire.grammar import json, sse

_EXTENSIONS: Final = extensions.HEADER.encode()
_DIGITS: Final = 16
_COUNTS: Final = 2  # of events, and of pieces of one
_NO_STORE: Final = (b"cache-control", b"no-store")
_PLAIN: Final = (b"content-type", JSON.encode())
_STREAMED: Final = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"x-accel-buffering", b"no"),
)


def wrapped(form: Form, result: dict[str, Any], kind: str) -> dict[str, Any]:
    """A result as the binding and the version of its request carry it."""
    written = older(result, kind) if form.version == "0.3" else result
    return (
        {"jsonrpc": "2.0", "id": form.id, "result": written} if form.binding == "rpc" else written
    )


def head_of(form: Form, *, stream: bool = False) -> Fields:
    """The fields of an answer that is no error."""
    fields: Fields = [_NO_STORE]
    active = extensions.echoed(form.extensions) if form.extensions else ()
    if active:
        fields.append((_EXTENSIONS, ", ".join(active).encode()))
    if stream:
        return [*fields, *_STREAMED]
    return [*fields, _PLAIN if form.media == JSON else (b"content-type", form.media.encode())]


def write_reply(form: Form, result: dict[str, Any], kind: str, status: int = 200) -> Reply:
    """A whole answer."""
    return Reply(status, head_of(form), json.write(wrapped(form, result, kind)))


def _seen(named: str | None, fence: int) -> Seen:
    """What a reader has seen of this attempt, by the last frame that it names."""
    attempt, *counts = (named or "").split(".")
    is_of_it = attempt == str(fence) and 1 <= len(counts) <= _COUNTS
    if not is_of_it or not all(
        each.isascii() and each.isdigit() and len(each) < _DIGITS for each in counts
    ):
        return (0, 0)
    return (int(counts[0]), int(counts[1]) if len(counts) == _COUNTS else 0)


class MessageWriter:
    """Writes the answer to one message."""

    __slots__ = ("_call", "_context", "_facts", "_form", "_gateway", "_stream", "_task")

    def __init__(self, call: Call, gateway: GatewayFacts, binding: Binding) -> None:
        """`binding` is that of the answer: of what a task was asked in, or is told in later."""
        if call.task is None:
            raise Internal("a call of this dialect is a task")
        self._call = call
        self._task = call.task
        self._context = call.ask.context or ""
        form = form_of(call)
        self._form = form if form.binding == binding else replace(form, binding=binding)
        self._gateway = gateway
        self._facts = facts_of_call(call, call.task, gateway.domain, form)
        self._stream: TaskStream | None = None

    def _new_stream(self) -> TaskStream:
        seen = _seen(self._form.seen, self._call.record.fence)
        return TaskStream(
            self._facts,
            self._context,
            currency=self._gateway.currency,
            extensions=self._form.extensions,
            seen=seen,
        )

    def headers(self, *, stream: bool) -> Fields:
        """The fields of an answer; the run is told as in every dialect."""
        carnet = self._call.carnet
        return [
            (b"x-tangle-runid", carnet.run.encode()),
            (b"x-tangle-turnid", carnet.turn.encode()),
            *head_of(self._form, stream=stream),
        ]

    def whole(self, events: Sequence[Event], /) -> bytes:
        """The task with all that was said, or the word that stands for it."""
        for event in events:
            if type(event) is Extension and event.name == MESSAGE:
                return self._write({"message": self._message(events)})
        end = events[-1]
        if type(end) is Done and not self._form.extensions:  # nothing is to be said of it
            return self._write({"task": self._written({"state": COMPLETED}, events)})
        if not is_terminal(end):
            raise Internal("an answer ends with its end")
        status = status_of(
            end,
            task=self._task,
            context=self._context,
            extensions=self._form.extensions,
            events=events,
        )
        return self._write({"task": self._written(status, events)})

    def _message(self, events: Sequence[Event]) -> dict[str, Any]:
        found = [part for artifact in artifacts_of(events) for part in artifact["parts"]]
        facts = with_events(self._facts, events, self._gateway.currency)
        metadata = extensions.write_task(facts, self._form.extensions)
        parts = found or [{"text": ""}]
        name = f"{self._task}.answer"
        return write_message(name, parts, contextId=self._context, metadata=metadata)

    def _written(self, status: dict[str, Any], events: Sequence[Event] = ()) -> dict[str, Any]:
        form, context = self._form, self._context
        return write_task(
            context=context,
            status=status,
            artifacts=artifacts_of(events),
            history=history_of(form.message, task=self._task, context=context, form=form),
            facts=with_events(self._facts, events, self._gateway.currency),
            form=form,
        )

    def write(self, events: Sequence[Event], /) -> bytes:
        """The frames of a batch; the first has the task before them."""
        frames = b""
        if self._stream is None:
            self._stream = self._new_stream()
            status = plain_status(self._first_state(events), moment(self._call.record.created))
            frames = self._frame((0, 0), {"task": self._written(status)})
        addressed_events = [self._addressed(event) for event in events]
        return frames + b"".join(
            [self._frame(*update) for update in self._stream.updates(addressed_events)]
        )

    def _first_state(self, events: Sequence[Event]) -> str:
        """The state of a task when its reader came; who calls comes when it begins."""
        call = self._call
        if call.record.state == "waiting" and not call.ask.messages:
            waits = [each for each in events if isinstance(each, Waiting)]
            return waiting_state(waits[-1].interrupts if waits else ())
        return SUBMITTED if call.record.state == "queued" else WORKING

    def _addressed(self, event: Event) -> Event:
        if isinstance(event, Waiting):
            return addressed(event, self._call.agent, self._gateway.domain)
        return event

    def _frame(self, seen: Seen, update: dict[str, Any]) -> bytes:
        body = json.write(wrapped(self._form, update, "stream"))
        count, piece = seen
        more = f".{piece}" if piece else ""
        return sse.write_event(body, id=f"{self._call.record.fence}.{count}{more}")

    def refusal(self, failed: Failed, usage: Usage | None, /) -> Reply:
        """A task that has failed."""
        events: tuple[Event, ...] = (failed,) if usage is None else (usage, failed)
        return Reply(200, self.headers(stream=False), self.whole(events))

    def waiting(self, waiting: Waiting, usage: Usage | None, partial: str, /) -> Reply:
        """A task that waits: what for, beside what was said so far."""
        asked = addressed(waiting, self._call.agent, self._gateway.domain)
        content: tuple[Event, ...] = (Text(partial),) if partial else ()
        used: tuple[Event, ...] = () if usage is None else (usage,)
        return Reply(200, self.headers(stream=False), self.whole((*content, *used, asked)))

    def accepted(self) -> Reply:
        """A task that was taken on."""
        record = self._call.record
        state = SUBMITTED if record.state == "queued" else WORKING
        status = plain_status(state, moment(record.created))
        body = self._write({"task": self._written(status)})
        return Reply(200, self.headers(stream=False), body)

    def _write(self, result: dict[str, Any]) -> bytes:
        return json.write(wrapped(self._form, result, "send"))
