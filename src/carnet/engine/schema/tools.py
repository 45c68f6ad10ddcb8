"""Tools for a model that cannot call any: it writes JSON of a schema, and we read what it wants.

It stands before such a model and is asked as any other is.

Law 1. Whoever asks sees no difference: text as it comes, a tool call when it is whole.
Law 2. An answer in the form of `engine.schema.form` is one call or text. What is in no form at all
       is text: a provider may know no schemas, and a model that just answers has answered.
Law 3. A call that was broken off is none.
Law 4. `tool_choice` is obeyed here, and not passed on: the provider is offered no tools.
"""

import json
import re
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from carnet.core.messages.events import Done, Event, Text, ToolCall, Usage
from carnet.core.messages.output import Sink
from carnet.core.messages.parameters import Tool
from carnet.engine.schema.form import ANSWER, ARGUMENTS, TOOL, form_of, shown
from carnet.errors import InvalidJson
from carnet.ports.engine.model import LanguageModel, ModelAsk
from carnet.wire.grammar import json as strict_json

TOOL_CALLS: Final = "tool_calls"
_BROKEN_OFF: Final = "length"
_OF_TOOLS: Final = frozenset({"tool_choice", "parallel_tool_calls"})  # parameters

_OPENING: Final = re.compile(rf'\s*\{{\s*"{ANSWER}"\s*:\s*"')
_SPACES: Final = re.compile(r"\s+")
_HIGH: Final = r"\\u[dD][89abAB][0-9a-fA-F]{2}"
_LOW: Final = r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
# What of the inside of a string is whole: no half escape, and no half of a pair of surrogates.
_WHOLE: Final = re.compile(
    rf'(?:[^"\\]++|\\[^u]|{_HIGH}{_LOW}|{_HIGH}(?=[^\\]|\\[^u]|\\u[^dD]|\\u[dD][^c-fC-F])'
    r"|\\u(?![dD][89abAB])[0-9a-fA-F]{4})*+"
)


class SchemaTools:
    """A model that calls tools, made of one that does not."""

    def __init__(self, model: LanguageModel) -> None:
        """Ask this one."""
        self._model = model

    async def __call__(self, ask: ModelAsk, sink: Sink, /) -> Done:
        """Ask it for an answer in the form, and pass on what that says."""
        choice = _chosen(ask)
        parameters = {
            name: ask.parameters[name] for name in ask.parameters if name not in _OF_TOOLS
        }
        if not choice.tools:
            messages = shown(ask.messages)
            return await self._model(
                replace(ask, messages=messages, tools=(), parameters=parameters), sink
            )
        asked = replace(
            ask,
            messages=shown(ask.messages, choice.tools),
            tools=(),
            schema=form_of(choice.tools, ask.schema, may_answer=choice.may_answer),
            parameters=parameters,
        )
        reading = _FormSink(sink)
        return await reading.ended(await self._model(asked, reading))


class _Choice(Struct, frozen=True):
    tools: tuple[Tool, ...]
    may_answer: bool


def _chosen(ask: ModelAsk) -> _Choice:
    """What may be used, by the `tool_choice` of chat completions."""
    choice = ask.parameters.get("tool_choice")
    if choice == "none":
        return _Choice((), may_answer=True)
    function = choice.get("function") if isinstance(choice, dict) else None
    if isinstance(function, dict):
        named = [tool for tool in ask.tools if tool.name == function.get("name")]
        return _Choice(tuple(named), may_answer=False)
    return _Choice(ask.tools, may_answer=choice != "required")


class _FormSink:
    """Takes an answer in the form, and passes on the text of it as it comes."""

    __slots__ = ("_has_called", "_reader", "_sink")

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._reader = FormReader()
        self._has_called = False

    async def write(self, event: Event, /) -> None:
        if not isinstance(event, Text):  # a call, of a model that can after all
            self._has_called = self._has_called or isinstance(event, ToolCall)
            await self._sink.write(event)
            return
        text = self._reader.feed(event.text)
        if text:
            await self._sink.write(Text(text))

    def usage(self, usage: Usage, /) -> None:
        self._sink.usage(usage)

    async def ended(self, done: Done) -> Done:
        """Pass on what is left; why the answer ended."""
        last = self._reader.close(is_whole=done.reason != _BROKEN_OFF)
        if isinstance(last, ToolCall):
            await self._sink.write(last)
            self._has_called = True
        elif last:
            await self._sink.write(Text(last))
        return Done(TOOL_CALLS) if self._has_called else done


class FormReader:
    """Reads one answer, in pieces. However they are cut, its time grows as the answer does."""

    __slots__ = ("_pieces", "_rest", "_state")

    def __init__(self) -> None:
        self._pieces: list[str] = []  # of what has come, until it is known to be an answer
        self._rest = ""  # what has come of that and is not read
        self._state: Literal["open", "answer", "text", "other", "over"] = "open"

    def feed(self, piece: str) -> str:
        """The text in it that can be shown."""
        match self._state:
            case "open":
                return self._open(piece)
            case "answer":
                self._rest += piece
                return self._inside()
            case "text":
                return piece
            case "other":
                self._pieces.append(piece)
        return ""

    def close(self, *, is_whole: bool) -> ToolCall | str:
        """What is left: a call, or text."""
        if self._state not in {"open", "other"}:
            return ""
        whole = "".join(self._pieces)
        call = read_form(whole)
        if call is None:
            return whole if is_whole else ""
        return call

    def _open(self, piece: str) -> str:
        """Find out what it is; the text in it that can be shown."""
        self._pieces.append(piece)
        if not piece.strip():  # some models write blanks without an end
            return ""
        whole = "".join(self._pieces)
        found = _OPENING.match(whole)
        if found:
            self._state, self._rest = "answer", whole[found.end() :]
            return self._inside()
        if f'{{"{ANSWER}":"'.startswith(_SPACES.sub("", whole)):
            return ""
        self._state = "other" if whole.lstrip().startswith("{") else "text"
        return whole if self._state == "text" else ""

    def _inside(self) -> str:
        """What has come of an answer that is a string."""
        found = _WHOLE.match(self._rest)
        end = found.end() if found else 0
        whole, self._rest = self._rest[:end], self._rest[end:]
        if self._rest.startswith('"'):
            self._state = "over"
        return _unescaped(whole)


def read_form(text: str) -> ToolCall | str | None:
    """A call or an answer that has come as a whole; None for what has another form."""
    try:
        found = strict_json.read_object(text.strip().encode(errors="replace"))
    except InvalidJson:
        return None
    name, arguments = found.get(TOOL), found.get(ARGUMENTS, {})
    if isinstance(name, str) and isinstance(arguments, dict):
        return ToolCall("", name, strict_json.write_text(arguments))
    return _text_of(found[ANSWER]) if ANSWER in found else None


def _text_of(answer: object) -> str:
    return answer if isinstance(answer, str) else strict_json.write_text(answer)


def _unescaped(inside: str) -> str:
    try:
        text: str = json.loads(f'"{inside}"', strict=False)
    except ValueError:  # an escape that there is not: shown as it was written
        return inside
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
