"""The answer to a turn of a chat: a task, the output of a chat, or what came of a decision.

Law 1. Whatever becomes of a run is an answer: also that it failed, in a frame with an error.
Law 2. A stream has one terminal frame, and nothing after it; its deltas are what the terminal frame
       tells in whole.
Law 3. What is told again is told in the same bytes: there is no clock in it but the record's.
"""

from collections.abc import Sequence
from typing import Any, Final

from carnet.core.call import Call
from carnet.core.messages.events import (
    Done,
    Event,
    Failed,
    Text,
    ToolCall,
    Usage,
    Waiting,
    is_terminal,
    joined_text,
)
from carnet.core.money.amount import format_amount
from carnet.errors import Internal
from carnet.wire.dialects.agents_api.actions import write_envelopes
from carnet.wire.dialects.agents_api.form import form_of
from carnet.wire.dialects.agents_api.outcome import TOOL_CALLS, outcome_of
from carnet.wire.dialects.agents_api.parts import parts_of, write_data, write_text
from carnet.wire.dialects.agents_api.refusals import http_body, row_of, rpc_frame
from carnet.wire.dialects.dialect import Fields, GatewayFacts, Reply
from carnet.wire.dialects.policy import addressed
from carnet.wire.grammar import json, sse

_JSON: Final = (b"content-type", b"application/json")
_NO_STORE: Final = (b"cache-control", b"no-store")
# agents-api:stream:headers
STREAMED: Final = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache, no-store, must-revalidate"),
    (b"x-accel-buffering", b"no"),
)


class RunWriter:
    """Writes the answer to one turn."""

    __slots__ = ("_call", "_events", "_form", "_gateway", "_is_rpc", "_task")

    def __init__(self, call: Call, gateway: GatewayFacts, *, rpc: bool) -> None:
        """`rpc` says which of the two forms an answer has."""
        if call.task is None:
            raise Internal("a call of this dialect is a task")
        self._call = call
        self._task = call.task
        self._form = form_of(call)
        self._gateway = gateway
        self._is_rpc = rpc
        self._events: list[Event] = []  # by a stream, for its last frame

    @property
    def _run(self) -> str:
        """What the run is called: by its caller, or by us."""
        return self._form.run or f"run_{self._task}"

    def headers(self, *, stream: bool) -> Fields:
        """The fields of an answer; the run is told as in every dialect."""
        carnet = self._call.carnet
        chain = [
            (b"x-tangle-runid", carnet.run.encode()),
            (b"x-tangle-turnid", carnet.turn.encode()),
        ]
        return [*chain, *(STREAMED if stream else (_JSON, _NO_STORE))]

    # -------------------------------------------------------------- whole

    def whole(self, events: Sequence[Event], /) -> bytes:
        """The run as it has ended."""
        return json.write(self._answer(events))

    def _answer(self, events: Sequence[Event]) -> dict[str, Any]:
        form = self._form
        if form.decision is not None:
            decided: Any = {"action_id": form.action, "decision": form.decision}
            decided["result"] = self._written(events)
            return self._framed(decided) if self._is_rpc else decided
        return self._framed(self._written(events)) if self._is_rpc else self._output(events)

    def _framed(self, result: dict[str, Any]) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": self._form.id, "result": result}

    def _written(self, events: Sequence[Event]) -> dict[str, Any]:
        """The run as a task."""
        outcome, parts = self._outcome(events), self._parts(events)
        return {
            "id": self._run,
            "sessionId": self._call.ask.context,
            "status": {
                "state": "completed" if outcome["completed"] else "input-required",
                "message": {
                    "role": "agent",
                    "kind": "message",
                    "messageId": f"{self._run}-message",
                    "parts": parts,
                },
            },
            "metadata": {"run_outcome": outcome, **self._facts(events)},
        }

    def _output(self, events: Sequence[Event]) -> dict[str, Any]:
        """The run as the output of a chat."""
        outcome, parts = self._outcome(events), self._parts(events)
        envelopes = [part["data"] for part in parts if _is_envelope(part)]
        others = [part for part in parts[1:] if not _is_envelope(part)]
        return {
            "session_id": self._call.ask.context,
            "run_id": self._run,
            "reply": parts[0]["text"],
            **({"messages": envelopes} if envelopes else {}),
            **({"parts": others} if others else {}),
            "completed": outcome["completed"],
            "status": outcome["status"],
            "run_outcome": outcome,
            "metadata": self._facts(events),
        }

    def _outcome(self, events: Sequence[Event]) -> dict[str, Any]:
        end = events[-1]
        if not is_terminal(end):
            raise Internal("an answer ends with its end")
        if end == Done(TOOL_CALLS) and not any(map(_is_wanted, events)):
            end = Done()  # the tools that it names were run by the agent itself
        return outcome_of(end)

    def _parts(self, events: Sequence[Event]) -> list[dict[str, Any]]:
        """What was said; of a run that waits, what it waits for as well."""
        end = events[-1]
        parts = parts_of(events)
        if isinstance(end, Waiting):  # agents-api:action:envelope
            asked = addressed(end, self._call.agent, self._gateway.domain)
            created = self._call.record.created
            envelopes = write_envelopes(asked, self._task, created=created)
            words = joined_text(events) or asked.interrupts[0].message
            parts = [write_text(words), *parts[1:], *map(write_data, envelopes)]
        return parts

    def _facts(self, events: Sequence[Event]) -> dict[str, Any]:
        """What else is known of a run: what it has used."""
        used = next((event for event in events if type(event) is Usage), None)
        return {} if used is None else {"usage": self._used(used)}

    def _used(self, usage: Usage) -> dict[str, Any]:
        given = {
            "input_tokens": usage.tokens_in,
            "output_tokens": usage.tokens_out,
            "cost": None if usage.cost is None else format_amount(usage.cost),
            "run_cost": None if usage.run_cost is None else format_amount(usage.run_cost),
            "currency": self._gateway.currency,
        }
        return {name: value for name, value in given.items() if value is not None}

    # -------------------------------------------------------------- other ends

    def refusal(self, failed: Failed, usage: Usage | None, /) -> Reply:
        """A run that has failed."""
        error = failed.error()
        error.run = self._call.carnet.run
        if self._is_rpc:
            body = json.write(self._failure(failed, usage))
            return Reply(200, self.headers(stream=False), body)
        fields = self.headers(stream=False)
        if error.retry_after is not None:
            fields.append((b"retry-after", str(error.retry_after).encode()))
        return Reply(row_of(type(error)).status, fields, http_body(error, rpc=False))

    def _failure(self, failed: Failed, usage: Usage | None) -> dict[str, Any]:
        error = failed.error()
        error.run = self._call.carnet.run
        frame = rpc_frame(error, self._form.id)
        data = frame["error"]["data"]
        data["run_outcome"] = outcome_of(failed)
        if usage is not None:
            data["usage"] = self._used(usage)
        return frame

    def waiting(self, waiting: Waiting, usage: Usage | None, partial: str, /) -> Reply:
        """A run that waits: an answer, with what it waits for beside what was said so far."""
        content: tuple[Event, ...] = (Text(partial),) if partial else ()
        used: tuple[Event, ...] = () if usage is None else (usage,)
        body = self.whole((*content, *used, waiting))
        return Reply(200, self.headers(stream=False), body)

    # -------------------------------------------------------------- streams

    def write(self, events: Sequence[Event], /) -> bytes:
        """The deltas of a batch, and the last frame with its end."""
        frames: list[bytes] = []
        for event in events:
            if is_terminal(event):
                frames.append(sse.write_event(json.write(self._terminal(event))))
                continue
            self._events.append(event)
            deltas = deltas_of(event) if self._form.deltas else []
            frames += [sse.write_event(json.write(self._delta(each))) for each in deltas]
        return b"".join(frames)

    def _terminal(self, end: Event) -> dict[str, Any]:
        if isinstance(end, Failed):
            used = next((event for event in self._events if type(event) is Usage), None)
            return self._failure(end, used)
        return self._answer((*self._events, end))

    def _delta(self, delta: dict[str, Any]) -> dict[str, Any]:
        params = {"id": self._run, "delta": delta}
        return {"jsonrpc": "2.0", "method": "message/delta", "params": params}


def _is_wanted(event: Event) -> bool:
    """Whether the caller is to run a tool."""
    return type(event) is ToolCall and not event.is_own


def _is_envelope(part: dict[str, Any]) -> bool:
    data = part.get("data")
    return isinstance(data, dict) and data.get("schema") == "agents-api.message"


def deltas_of(event: Event) -> list[dict[str, Any]]:
    """What a stream tells of an event as it comes."""  # agents-api:stream:delta
    if type(event) is Text:
        return [{"deltaType": "content", "content": event.text}]
    if type(event) is not ToolCall:
        return []
    call = {"toolCallId": event.id, "toolCallIndex": event.index}
    name = {"deltaType": "tool_name", "content": event.name, "toolCallName": event.name, **call}
    arguments = {"deltaType": "tool_argument", "content": event.arguments, **call}
    return [name, arguments] if event.arguments else [name]
