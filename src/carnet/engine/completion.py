"""One answer of a model, as it comes: what is shown at once, and what is gathered.

Law 1. Text is passed on as it comes, from its first visible character on: an answer of nothing but
       blanks has said nothing, and may be asked for again.
Law 2. Tool calls are gathered: whether they are to be run is known at the end alone. An answer that
       was broken off (`length`) wants none.
Law 3. Every call has an id of its own in its turn, whatever the model calls it: what somebody says
       of one call is never taken for another.
Law 4. `Completion.read(x.written()) == x`: what is kept is what was said.
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from itertools import chain, count
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from carnet.core.messages.events import (
    CONTEXT_WINDOW,
    ECHO,
    Done,
    Event,
    Extension,
    Message,
    Text,
    ToolCall,
    Usage,
)
from carnet.core.messages.output import Sink
from carnet.wire.dialects.engine_chat.request import arguments_of, is_name

_COMPLETE: Final = frozenset({"stop", "tool_calls", "function_call"})
STOP: Final = "stop"
NO_NAME: Final = "unreadable.name"  # of a call whose tool has a name that nobody can read


class Completion(Struct, frozen=True):
    """What a model has answered."""

    text: str
    calls: tuple[ToolCall, ...]
    reason: str
    tokens: int = 0
    echo: Any = None  # as the provider of the model wants it back

    @property
    def is_empty(self) -> bool:
        """Whether it has said nothing, and does not say why."""
        return not self.calls and not self.text.strip() and self.reason in _COMPLETE

    @property
    def message(self) -> Message:
        """As the model is shown it again; providers refuse arguments that are no object."""
        calls = [
            call if arguments_of(call) is not None else replace(call, arguments="{}")
            for call in self.calls
        ]
        echo = None if self.echo is None else {ECHO: self.echo}
        return Message("assistant", (self.text,), tool_calls=tuple(calls), metadata=echo)

    @property
    def end(self) -> Done:
        """The end of an answer that wants no tools."""
        return Done(STOP if self.reason in _COMPLETE else self.reason)

    def written(self) -> dict[str, Any]:
        """As JSON, to be kept."""
        calls = [[call.id, call.name, call.arguments, call.index] for call in self.calls]
        kept = {"text": self.text, "calls": calls, "reason": self.reason, "tokens": self.tokens}
        return kept if self.echo is None else {**kept, "echo": self.echo}

    @classmethod
    def read(cls, kept: dict[str, Any]) -> "Completion":
        """What was kept."""
        calls = tuple([ToolCall(*call) for call in kept["calls"]])
        return cls(kept["text"], calls, kept["reason"], kept["tokens"], kept.get("echo"))


class CompletionSink:
    """Takes the answer of a model, and passes on what is to be seen."""

    __slots__ = (
        *("_calls", "_echo", "_place", "_sink", "_texts", "_tokens", "_used", "_warned"),
        "is_visible",
    )

    def __init__(
        self,
        sink: Sink,
        place: int,
        used: AbstractSet[str] = frozenset(),
        warned: set[bool] | None = None,
    ) -> None:
        """`place` is that of the answer among those of its turn, `used` the ids of its calls.

        `warned` is what was told in it of a window that fills, and is told once: that it does, and
        that something was left out.
        """
        self._warned = set() if warned is None else warned
        self._sink = sink
        self._place = place
        self._used = used
        self._texts: list[str] = []
        self._calls: list[ToolCall] = []
        self._tokens = 0
        self._echo: Any = None
        self.is_visible = False  # something of it has been seen

    async def write(self, event: Event, /) -> None:
        match event:
            case Text():
                await self._text(event.text)
            case ToolCall():
                self._calls.append(event)
            case Extension(name=name) if name == ECHO:
                self._echo = event.payload
            case Extension(name=name) if name == CONTEXT_WINDOW:
                await self._warn(event)

    async def _warn(self, event: Extension) -> None:
        is_managed = bool(event.payload["managed"])
        if is_managed not in self._warned:
            self._warned.add(is_managed)
            await self._sink.write(event)

    async def _text(self, text: str) -> None:
        self._texts.append(text)
        if self.is_visible:
            await self._sink.write(Text(text))
        elif text.strip():
            self.is_visible = True
            await self._sink.write(Text("".join(self._texts)))

    def usage(self, usage: Usage, /) -> None:
        self._tokens += (usage.tokens_in or 0) + (usage.tokens_out or 0)
        self._sink.usage(usage)

    def ended(self, done: Done) -> Completion:
        """The whole answer."""
        calls = self._named() if done.reason in _COMPLETE else ()
        return Completion("".join(self._texts), calls, done.reason, self._tokens, self._echo)

    def _named(self) -> tuple[ToolCall, ...]:
        found: dict[str, ToolCall] = {}
        for index, call in enumerate(self._calls):
            id = next(id for id in self._ids(call, index) if id not in found)
            name = call.name if is_name(call.name) else NO_NAME
            found[id] = replace(call, id=id, name=name, index=index)
        return tuple(found.values())

    def _ids(self, call: ToolCall, index: int) -> Iterator[str]:
        """The names that a call may have, that of the model first."""
        ours = f"call_{self._place}_{index}"
        for id in chain((call.id, ours), (f"{ours}_{n}" for n in count(1))):
            if is_name(id) and id not in self._used:
                yield id
