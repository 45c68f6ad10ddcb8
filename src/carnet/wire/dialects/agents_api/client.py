"""agents-api toward others: requests that leave, answers that come.

    write_message, write_decision    the body of a request
    read_answer                      a whole answer, as events

Law 1. The same question is the same bytes, and the same bytes are the same events.
Law 2. What a stream has told in deltas, its last frame does not tell again.
Law 3. Of what the other side wrote, an error keeps words that we know and none of its text.
Law 4. Who waits is no failure: what it waits for is an end like any other.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from carnet.core.call import Ask
from carnet.core.messages.events import (
    Data,
    DataPart,
    Done,
    Event,
    Failed,
    File,
    Link,
    Message,
    Text,
    ToolCall,
    Usage,
    Waiting,
)
from carnet.core.messages.interrupt import Resolution
from carnet.core.money.amount import parse_amount
from carnet.errors import (
    CarnetError,
    DepthExceeded,
    InvalidJson,
    InvalidRequest,
    PeerBusy,
    PeerRefused,
    ProviderError,
)
from carnet.wire.dialects.agents_api.actions import read_actions
from carnet.wire.dialects.agents_api.parts import (
    events_of,
    write_data,
    write_file,
    write_text,
)
from carnet.wire.dialects.refusal import BY_PEER, UNRECOGNISED, unexplained
from carnet.wire.grammar import json
from carnet.wire.grammar.retry_after import read_wait

PATH: Final = "/agents-api/v1/agent/"
RESOLVE: Final = "agents/resolve-pending-action"

_ROLES: Final = {"user": "user", "assistant": "agent"}
_WORD: Final = re.compile(r"[a-z0-9_]{1,64}", re.ASCII)
_FAILURES: Final = frozenset({"failed", "stalled", "budget_exceeded", "cancelled", "interrupted"})
_DEEP: Final = "chain_depth_exceeded"


def path_of(agent: str) -> str:
    """Where an agent is asked, after the address of its host."""
    return PATH + agent


# ------------------------------------------------------------------ requests


def write_message(ask: Ask, *, run: str, session: str | None, stream: bool) -> bytes:
    """The request for what is asked."""
    message = {"role": "user", "kind": "message", "messageId": run, "parts": _parts(ask)}
    params: dict[str, Any] = {"id": run, "message": message}
    if session is not None:
        params["sessionId"] = session
    method = "message/stream" if stream else "message/send"
    return _request(run, method, params)


def write_decision(action: str, answer: Resolution, *, resolver: str, name: str) -> bytes:
    """The request that decides an action."""
    params: dict[str, Any] = {
        "action_id": action,
        "decision": answer.outcome,
        "resolver": resolver,
    }
    if answer.value is not None:
        params["payload"] = {"value": answer.value}
    return _request(name, RESOLVE, params)


def _request(name: str, method: str, params: dict[str, Any]) -> bytes:
    return json.write({"jsonrpc": "2.0", "id": name, "method": method, "params": params})


def _parts(ask: Ask) -> list[dict[str, Any]]:
    """What is asked, in parts: what was said before and the tools that were run as data."""
    calls = {call.id: call for each in ask.messages for call in each.tool_calls}
    spoken = ask.spoken
    parts: list[dict[str, Any]] = []
    for message in ask.messages:
        parts += _written(message, calls, is_last=message is spoken)
    return parts


def _written(
    message: Message, calls: Mapping[str, ToolCall], *, is_last: bool
) -> list[dict[str, Any]]:
    if message.role == "tool":
        call = calls.get(message.tool_call_id or "")
        return [] if call is None else _pair(call, message)
    if is_last:
        return [_part(part) for part in message.parts if part != ""]
    role = _ROLES.get(message.role)
    if role is None or not message.text.strip():
        return []
    return [write_data({"role": role, "text": message.text})]


def _pair(call: ToolCall, result: Message) -> list[dict[str, Any]]:
    """A tool that was run, and what came of it."""
    given: dict[str, Any] = {"toolCallId": call.id, "toolId": call.name}
    return [
        write_data({**given, "arguments": _read(call.arguments or "{}")}),
        write_data({**given, "result": _read(result.text)}),
    ]


def _read(text: str) -> object:
    """A value that was written as JSON; the text itself, if it was not."""
    try:
        return json.read(text.encode())
    except InvalidJson:
        return text


def _part(part: str | DataPart | File | Link) -> dict[str, Any]:
    if isinstance(part, str):
        return write_text(part)
    if isinstance(part, DataPart):
        return write_data(part.value)
    return {"type": "file", "file": write_file(part)}


# ------------------------------------------------------------------ answers


def read_answer(body: bytes, *, currency: str) -> list[Event]:
    """The events of a whole answer, the last of them an end; raises what it was refused with."""
    try:
        frame = json.read_object(body)
    except InvalidJson:
        raise ProviderError("the answer is not JSON") from None
    return [*read_frame(frame, currency=currency)]


def read_frame(
    frame: Mapping[str, Any], *, currency: str, spoken: int = 0, called: Collection[str] = ()
) -> Iterator[Event]:
    """The events of a terminal frame.

    So many characters of its text were `spoken` before, and so were the tools that were `called`.
    """
    error = frame.get("error")
    if error is not None:
        raise read_error(error, currency=currency)
    result = frame.get("result")
    if isinstance(result, Mapping) and "action_id" in result:
        result = result.get("result")
        if not isinstance(result, Mapping) or "status" not in result:  # what came of the action
            yield from () if result is None else (Data(result),)
            yield Done()
            return
    if not isinstance(result, Mapping):
        raise ProviderError("the answer has neither a result nor an error")
    yield from _task(result, currency, spoken, called)


def _task(
    task: Mapping[str, Any], currency: str, spoken: int, called: Collection[str]
) -> Iterator[Event]:
    status = member(task, "status")
    parts = member(status, "message").get("parts")
    metadata = member(task, "metadata")
    asked = read_actions(_data(parts), currency=currency)
    events = [*events_of(parts)]
    if asked:
        events = [event for event in events if not _is_envelope(event)]
    if spoken == 0 and asked and _text(events) == asked[0].message:
        events = [event for event in events if type(event) is not Text]  # it stands for the action
    left = spoken
    for event in events:
        if type(event) is Text:
            text, left = event.text[left:], max(0, left - len(event.text))
            if text:
                yield Text(text)
        elif type(event) is not ToolCall or event.id not in called:
            yield event
    used = read_usage(metadata.get("usage"), currency)
    if used is not None:
        yield used
    yield _end(status.get("state"), member(metadata, "run_outcome"), asked, events)


def _end(
    state: object, outcome: Mapping[str, Any], asked: tuple[Any, ...], events: Sequence[Event]
) -> Event:
    if asked:
        return Waiting(asked)
    if outcome.get("status") in _FAILURES or state in {"failed", "canceled", "rejected"}:
        raise ProviderError("the run has not been completed there")
    if state == "completed":
        return Done()
    if any(type(event) is ToolCall and not event.is_own for event in events):
        return Done("tool_calls")
    raise ProviderError("the run waits for something that it does not name")


def member(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A member that is an object; empty where it is none."""
    found = value.get(name)
    return found if isinstance(found, Mapping) else {}


def _data(parts: object) -> list[object]:
    listed = parts if isinstance(parts, list) else []
    return [part.get("data") for part in listed if isinstance(part, dict)]


def _is_envelope(event: Event) -> bool:
    value = event.value if isinstance(event, Data) else None
    return isinstance(value, dict) and "payload" in value and "schema" in value


def _text(events: Sequence[Event]) -> str:
    return "".join([event.text for event in events if type(event) is Text])


def read_usage(value: object, currency: str) -> Usage | None:
    """What was used, where the other side says so; money in our currency or not at all."""
    if not isinstance(value, Mapping):
        return None
    cost = run_cost = None
    if value.get("currency") == currency:
        cost, run_cost = _amount(value.get("cost")), _amount(value.get("run_cost"))
    tokens_in, tokens_out = [
        read_count(value.get(name)) for name in ("input_tokens", "output_tokens")
    ]
    if tokens_in is tokens_out is cost is None:
        return None
    return Usage(tokens_in, tokens_out, cost, run_cost, None if cost is None else currency)


def _amount(value: object) -> int | None:
    try:
        return parse_amount(value) if isinstance(value, str) else None
    except InvalidRequest:
        return None


def read_count(value: object) -> int | None:
    """A whole number that may be there."""
    return value if type(value) is int and 0 <= value <= json.MAX_INTEGER else None


# ------------------------------------------------------------------ refusals


def read_error(error: object, *, currency: str) -> CarnetError:
    """What the error of a frame stands for."""
    del currency
    found = error if isinstance(error, Mapping) else {}
    code, word = found.get("code"), word_in(member(found, "data"))
    if word == UNRECOGNISED and type(code) is int and -(10**6) < code < 0:
        word = f"jsonrpc_{-code}"
    outcome = member(member(found, "data"), "run_outcome")
    if outcome:  # it was run, and this is what came of it
        return ProviderError("the run has failed there", by=BY_PEER)
    return PeerRefused(peer_status=200, peer_code=word)


def word_in(value: Mapping[str, Any]) -> str:
    """The word for an error, if it is one."""
    word = value.get("code")
    return word if isinstance(word, str) and _WORD.fullmatch(word) else UNRECOGNISED


def read_refusal(
    status: int, body: bytes, *, retry_after: str | None, date: str | None
) -> CarnetError:
    """What an answer stands for that is none, by its status and its word."""
    wait = read_wait(retry_after, date)
    if status < 400:  # noqa: PLR2004  neither an answer nor a refusal
        return ProviderError(f"the answer has the status {status}")
    try:
        found: Mapping[str, Any] = json.read_object(body)
    except InvalidJson:
        found = {}
    word, data = word_in(found), member(found, "data")
    if word.endswith(_DEEP):
        facts = {
            "observed": read_count(data.get("chain_depth")),
            "limit": read_count(data.get("ceiling")),
        }
        return Failed(
            DepthExceeded.code, {name: fact for name, fact in facts.items() if fact is not None}
        ).error()
    error = unexplained(status, wait)
    if word != UNRECOGNISED and isinstance(error, PeerRefused | PeerBusy):
        error.facts["peer_code"] = word
    return error
