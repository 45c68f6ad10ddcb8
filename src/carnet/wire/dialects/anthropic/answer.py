"""A whole answer of a model over Anthropic's messages, as events.

Law 1. Fields and blocks that we do not know are passed over; a wrong type of one that we do is no
       answer, which raises `ProviderError` with nothing of the provider's in its safe text.
Law 2. What was read of a cache was read: tokens in are all of them.
Law 3. The thoughts of a model are not shown. Beside calls of tools they are kept, as its provider
       wants them back with the results: the whole answer as it came, or nothing of it.
Law 4. The reasons of an end are told in the words of chat completions.
"""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from carnet.core.messages.events import ECHO, Done, Event, Extension, Text, ToolCall, Usage
from carnet.errors import InvalidJson, ProviderError
from carnet.wire.grammar import json

MOST_TOOL_CALLS: Final = 128
MOST_TOKENS: Final = 10**12  # of one call: beyond it a count is a mistake

UNREADABLE: Final = (ValueError, RecursionError)  # what decoders raise

MOST_ECHO_BYTES: Final = 256 * 1024  # of an answer that is kept to be sent back

_THOUGHTS: Final = frozenset({"thinking", "redacted_thinking"})
_REASONS: Final = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",  # what fitted was said
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}

Tokens = Annotated[int, Meta(ge=0, le=MOST_TOKENS)]


class CountedTokens(Struct, gc=False):
    """What was used, as far as it is said."""

    input_tokens: Tokens | None = None
    cache_creation_input_tokens: Tokens | None = None
    cache_read_input_tokens: Tokens | None = None
    output_tokens: Tokens | None = None

    def after(self, earlier: "CountedTokens | None") -> "CountedTokens":
        """The same, with what only an earlier count has said."""
        if earlier is None:
            return self
        here = msgspec.structs.asdict(self)
        known = {name: value for name, value in here.items() if value is not None}
        return msgspec.structs.replace(earlier, **known)

    def usage(self) -> Usage:
        """In our own terms."""
        read = (self.input_tokens, self.cache_creation_input_tokens, self.cache_read_input_tokens)
        known = [count for count in read if count is not None]
        return Usage(sum(known) if known else None, self.output_tokens)


class ContentBlock(Struct, gc=False):
    """A part of an answer: text, a call of a tool, or something we do not know."""

    type: str
    text: str | None = None
    id: str | None = None
    name: str | None = None
    input: dict[str, Any] | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None

    @property
    def is_thought(self) -> bool:
        """Whether it is of the model's thoughts, which it wants back beside the calls of tools."""
        return self.type in _THOUGHTS

    def echo(self, *, text: str = "", arguments: str = "{}") -> dict[str, Any] | None:
        """As it is sent back, with what came of it in pieces; None for one that cannot be."""
        match self.type:
            case "text":
                return {"type": "text", "text": (self.text or "") + text}
            case "tool_use":
                return {**self._named(), "input": json.read_object(arguments.encode())}
            case "thinking":
                return {"type": self.type, "thinking": (self.thinking or "") + text, **self._sign()}
            case "redacted_thinking":
                return {"type": self.type, "data": self.data or ""}
        return None

    def _named(self) -> dict[str, Any]:
        return {"type": self.type, "id": self.id, "name": self.name}

    def _sign(self) -> dict[str, Any]:
        return {} if self.signature is None else {"signature": self.signature}


class EchoDraft:
    """The blocks of an answer, gathered for when they are to be sent back."""

    __slots__ = ("_blocks", "_has_thoughts", "_is_whole")

    def __init__(self) -> None:
        self._blocks: list[dict[str, Any]] = []
        self._has_thoughts = False
        self._is_whole = True

    def add(self, block: ContentBlock, *, text: str = "", arguments: str = "{}") -> None:
        """Take a block that has ended."""
        self._has_thoughts = self._has_thoughts or block.is_thought
        try:
            echo = block.echo(text=text, arguments=arguments)
        except (InvalidJson, UnicodeEncodeError):
            echo = None
        if echo is None:
            self._is_whole = False
        elif echo.get("text", "x").strip():  # a text without words is refused
            self._blocks.append(echo)

    def event(self) -> Extension | None:
        """What is kept of it; None where nothing need be, or nothing can."""
        is_wanted = self._has_thoughts and self._is_whole
        if not is_wanted or len(json.write(self._blocks)) > MOST_ECHO_BYTES:
            return None
        return Extension(ECHO, self._blocks)


class _Answer(Struct, gc=False):
    type: Literal["message"]
    content: list[ContentBlock]
    stop_reason: str | None = None
    usage: CountedTokens | None = None


_decode = msgspec.json.Decoder(_Answer).decode


def read_answer(body: bytes, /, *, currency: str) -> list[Event]:
    """Its events, the last of them `Done`; ProviderError if it is none."""
    del currency  # what a model costs is ours to say
    try:
        answer = _decode(body)
    except UNREADABLE as error:
        raise ProviderError(f"the answer cannot be read: {error}") from None
    events: list[Event] = []
    calls, echo = 0, EchoDraft()
    for block in answer.content:
        echo.add(block, arguments=json.write_text(block.input or {}))
        if block.type == "text" and block.text:
            events.append(Text(block.text))
        elif block.type == "tool_use":
            events.append(tool_call(block, json.write_text(block.input or {}), calls))
            calls += 1
    kept = echo.event() if calls else None
    if kept is not None:
        events.append(kept)
    if answer.usage is not None:
        events.append(answer.usage.usage())
    return [*events, Done(reason_of(answer.stop_reason, has_calls=calls > 0))]


def tool_call(block: ContentBlock, arguments: str, index: int) -> ToolCall:
    """A call that is whole."""
    if index == MOST_TOOL_CALLS:
        raise ProviderError(f"the answer has more than {MOST_TOOL_CALLS} tool calls")
    if not block.id or not block.name:
        raise ProviderError("a tool call has no id or no name")
    return ToolCall(block.id, block.name, arguments, index)


def reason_of(stop_reason: str | None, *, has_calls: bool) -> str:
    """Why an answer ended, in one of the words that everybody knows."""
    if stop_reason is None:
        raise ProviderError("the answer does not say why it ended")
    return _REASONS.get(stop_reason, "tool_calls" if has_calls else "stop")
