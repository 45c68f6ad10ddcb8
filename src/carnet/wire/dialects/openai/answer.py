"""A whole answer: the events of a turn as one chat completion, and back; the list of models.

It writes answers that are complete. A turn that failed has no answer: `write_answer` raises its
error, and `refusals.write_error` writes that.

Law 1. The bytes are a function of (turn, events, model, currency): a repeat gets the same ones.
Law 2. What this dialect cannot carry is left out: tools that the agent has run itself, interrupts
       and extensions. The result of a skill is text if there is no other, and stands by itself in
       the member `carnet`.
Law 3. Reading takes fields that we do not know and refuses wrong types of those that we do; what
       is not an answer raises `ProviderError`, with nothing of the peer's in its safe text.
Law 4. A cost in a currency that is not ours is unknown, never converted and never 0.

A peer's answer is decoded straight into the few fields we use, which is several times as fast as
the strict reader. A key twice is then read as its last value: nothing is decided by these fields
that the peer could not have said outright.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

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
from carnet.core.money.amount import format_amount, parse_amount
from carnet.errors import AgentNotFound, Internal, InvalidJson, InvalidRequest, ProviderError
from carnet.wire.dialects.results import data_text
from carnet.wire.grammar import json

MOST_TOOL_CALLS: Final = 128
MOST_RESULT_BYTES: Final = 240_000  # of one that a stream shows by itself: it is one frame
MOST_LEVELS: Final = 64  # of a peer's result: a deeper one could be read and never be written
MOST_TOKENS: Final = 10**12  # of one call: beyond it a count is a mistake, and a bill overflows

_STOP: Final = "stop"
_FINISH_WORDS: Final = frozenset({_STOP, "length", "tool_calls", "content_filter", "function_call"})
_BROKEN_WORDS: Final = frozenset({"error", "abort"})  # how some servers end what went wrong

# What a decoder raises for bytes that are not what they should be: msgspec's errors and those of
# UTF-8 are ValueErrors; a recursion limit is what deep nesting runs into.
UNREADABLE: Final = (ValueError, RecursionError)


# ------------------------------------------------------------------ writing


def completion_id(turn: Turn) -> str:
    """The same for every writing of a turn, and silent about how many turns there are."""
    name = f"{turn.n}\0{turn.created}\0{turn.run}\0{turn.turn}"
    return f"chatcmpl-{blake2b(name.encode(), digest_size=12).hexdigest()}"


def created_seconds(turn: Turn) -> int:
    """When the turn was claimed, in the unit of this dialect."""
    return turn.created // 1_000_000


def write_answer(turn: Turn, events: Sequence[Event], *, model: str, currency: str) -> bytes:
    """The chat completion that the events of a turn add up to."""
    parts = _gather(events)
    if parts.reason is None:
        raise Internal("an answer was to be written before its terminal event")
    content = "".join(parts.texts) or data_text(shown_data(parts.data, parts.result))
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if parts.calls:
        message["content"] = content or None
        message["tool_calls"] = parts.calls
    answer = {
        "id": completion_id(turn),
        "object": "chat.completion",
        "created": created_seconds(turn),
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": parts.reason}],
        "usage": usage_object(parts.usage, currency),
    }
    if parts.result is not None:
        answer["carnet"] = {"result": parts.result}
    return json.write(answer)


def digest_content(events: Sequence[Event]) -> dict[str, Any]:
    """What the digest of a receipt covers: the same for an answer whole or streamed, ours or read.

    The events of a turn that failed raise its error.
    """
    parts = _gather(events)
    shown = "".join(parts.texts) or data_text(shown_data(parts.data, parts.result))
    answer: dict[str, Any] = {"text": shown}
    if parts.calls:
        answer["tool_calls"] = parts.calls
    result = parts.result
    if result is not None and shown != data_text((result,)) and fits_a_frame(result):
        answer["result"] = result  # which the text does not tell
    return answer


class _Parts:
    """What an answer is made of."""

    __slots__ = ("calls", "data", "reason", "result", "texts", "usage")

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.data: list[object] = []
        self.calls: list[dict[str, Any]] = []
        self.usage: Usage | None = None
        self.result: object = None
        self.reason: str | None = None

    def add(self, event: Event) -> None:
        """Take one of those that most answers have none of."""
        match event:
            case ToolCall(is_own=False):
                self.calls.append(tool_call_object(event.id, event.name, event.arguments))
            case Data():
                self.data.append(event.value)
            case Extension(name=name, payload=payload) if name == RESULT:
                self.result = payload


def _gather(events: Sequence[Event]) -> _Parts:
    parts = _Parts()
    for event in events:
        match event:
            case Text():
                parts.texts.append(event.text)
            case Usage():
                parts.usage = event
            case Done():
                parts.reason = finish_word(event.reason)
            case Failed() | Waiting():
                raise event.error()
            case _:
                parts.add(event)
    return parts


def shown_data(data: Sequence[object], result: object) -> Sequence[object]:
    """What is shown as text where there is none: the result, else what was said before it."""
    return data if result is None else (result,)


def fits_a_frame(result: object) -> bool:
    """Whether a result stands by itself also in a stream; a larger one is text alone there."""
    return len(json.write(result)) <= MOST_RESULT_BYTES


def tool_call_object(id: str, name: str, arguments: str) -> dict[str, Any]:
    """A tool call as a message holds it."""
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def usage_object(usage: Usage | None, currency: str) -> dict[str, Any]:
    """Tokens and costs; a cost that nobody knows is null, not 0."""
    usage = usage or Usage()
    tokens_in, tokens_out = usage.tokens_in or 0, usage.tokens_out or 0
    return {
        "prompt_tokens": tokens_in,
        "completion_tokens": tokens_out,
        "total_tokens": tokens_in + tokens_out,
        "cost": None if usage.cost is None else format_amount(usage.cost),
        "currency": currency,
        "run_cost": None if usage.run_cost is None else format_amount(usage.run_cost),
    }


def charge_member(usage: Usage | None, currency: str | None) -> dict[str, Any]:
    """What stands beside an error: the usage of a call that failed and yet cost something."""
    currency = currency or (usage.currency if usage else None)
    if usage is None or not usage.cost or currency is None:
        return {}
    return {"usage": usage_object(usage, currency)}


def write_models(names: Sequence[str], *, owner: str, created: int) -> bytes:
    """The agents as a list of models. `created` is in seconds since the epoch."""
    return json.write({"object": "list", "data": [_model(name, owner, created) for name in names]})


def write_model(names: Sequence[str], *, owner: str, created: int) -> bytes:
    """The agent that was asked for, as it stands in the list; nobody finds what is not there."""
    if not names:
        raise AgentNotFound
    return json.write(_model(names[0], owner, created))


def _model(name: str, owner: str, created: int) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": created, "owned_by": owner}


# ------------------------------------------------------------------ reading

_Count = Annotated[int, Meta(ge=0, le=MOST_TOKENS)]  # a negative count would lower a bill
_Name = Annotated[str, Meta(min_length=1)]


class ReportedUsage(Struct, gc=False):
    """What a peer says the call used. Its amounts are judged by `read_usage`."""

    prompt_tokens: _Count | None = None
    completion_tokens: _Count | None = None
    cost: object = None
    run_cost: object = None
    currency: object = None


class _Function(Struct, gc=False):
    name: _Name
    arguments: str


class _Call(Struct, gc=False):
    id: _Name
    function: _Function


class _Message(Struct, gc=False):
    content: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(Struct, gc=False):
    message: _Message
    finish_reason: str | None = None


class ReportedResult(Struct, gc=False):
    """What a Carnet says beside its text."""

    result: dict[str, Any] | None = None


class _Completion(Struct, gc=False):
    choices: Annotated[list[_Choice], Meta(min_length=1)]
    usage: ReportedUsage | None = None
    carnet: ReportedResult | None = None


_COMPLETION: Final = msgspec.json.Decoder(_Completion)


def read_answer(body: bytes, *, currency: str) -> list[Event]:
    """The events of a whole answer: text, tool calls, usage and the end of it."""
    try:
        completion = _COMPLETION.decode(body)
    except UNREADABLE as error:
        raise ProviderError(f"the answer is not a chat completion: {error}") from None
    choice = completion.choices[0]
    calls = choice.message.tool_calls or []
    if calls and len(calls) > MOST_TOOL_CALLS:
        raise ProviderError(f"the answer has more than {MOST_TOOL_CALLS} tool calls")
    result = None if completion.carnet is None else read_result(completion.carnet)
    events = _read_content(choice.message.content or "", result)
    for index, call in enumerate(calls):
        events.append(ToolCall(call.id, call.function.name, call.function.arguments, index))
    if completion.usage is not None:
        events += (read_usage(completion.usage, currency),)
    return [*events, Done(read_finish(choice.finish_reason, has_calls=bool(calls)))]


def _read_content(text: str, result: dict[str, Any] | None) -> list[Event]:
    """What was said. A text that is the result over again says nothing of its own.

    Any other text leaves out a result that no receipt would cover.
    """
    if result is not None and text == data_text((result,)):
        return [Extension(RESULT, result)]
    found: list[Event] = [Text(text)] if text else []
    if result is not None and fits_a_frame(result):
        found.append(Extension(RESULT, result))
    return found


def read_result(reported: ReportedResult | None) -> dict[str, Any] | None:
    """The result of a skill, if a peer has told one that we could pass on."""
    if reported is None or reported.result is None:
        return None
    try:
        json.refuse_depth(reported.result, MOST_LEVELS)
    except InvalidJson as error:
        raise ProviderError(f"the result cannot be read: {error.safe_text}") from None
    return reported.result


def read_usage(reported: ReportedUsage, currency: str) -> Usage:
    """What a peer reports, with its amounts only where they are in our currency."""
    if reported.currency != currency:
        return Usage(reported.prompt_tokens, reported.completion_tokens)
    return Usage(
        reported.prompt_tokens,
        reported.completion_tokens,
        _read_amount(reported.cost),
        _read_amount(reported.run_cost),
        currency,
    )


def _read_amount(value: object) -> int | None:
    if not isinstance(value, str):
        return None  # a float has been rounded already
    try:
        return parse_amount(value)
    except InvalidRequest:
        return None


def finish_word(reason: str) -> str:
    """A reason as the clients of this dialect know it; their list is closed."""
    return reason if reason in _FINISH_WORDS else _STOP


def read_finish(reason: str | None, *, has_calls: bool) -> str:
    """Why a peer's answer ended, in one of the words we know."""
    if reason is None:
        return "tool_calls" if has_calls else _STOP
    if reason in _BROKEN_WORDS:
        raise ProviderError("the answer ended in an error")
    return finish_word(reason)
