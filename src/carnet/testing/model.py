"""A model that answers as a script says: for exact assertions about whoever asks it.

Each answer is what it says in its order: texts, events, what it used, something to wait for, and an
error or an end if it has one of its own. `asked` is what it was asked with, each time.
"""

from collections.abc import Awaitable, Callable, Sequence

from carnet.core.messages.events import Done, Event, Text, ToolCall, Usage
from carnet.core.messages.output import Sink
from carnet.ports.engine.model import ModelAsk

Line = str | Event | Exception | Callable[[], Awaitable[object]]


class ScriptedModel:
    """Gives one answer after the other; who asks more often than there are answers is told so."""

    def __init__(self, *answers: Sequence[Line]) -> None:
        """Answer with these."""
        self._answers = list(answers)
        self.asked: list[ModelAsk] = []

    async def __call__(self, ask: ModelAsk, sink: Sink, /) -> Done:
        self.asked.append(ask)
        wants_tools = False
        for line in self._answers.pop(0):
            match line:
                case Exception():
                    raise line
                case Done():
                    return line
                case Usage():
                    sink.usage(line)
                case str():
                    await sink.write(Text(line))
                case _ if callable(line):
                    await line()
                case _:
                    wants_tools = wants_tools or isinstance(line, ToolCall)
                    await sink.write(line)
        return Done("tool_calls" if wants_tools else "stop")
