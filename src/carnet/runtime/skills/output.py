"""What a skill says on its way, and the result that it ends with.

Law 1. Text is a Text chunk, an event stays one, and anything else is a Data chunk in plain JSON.
Law 2. There is at most one result: a `Result`, or an instance of the output type. Where a generator
       gives none, it is what it said: `{"text": ...}`, or `{"chunks": [...]}` if not all was text.
"""

import inspect
from typing import Any

from carnet.core.messages.events import Data, Event, Interrupted, Resolved, Text, Waiting
from carnet.core.messages.interrupt import Interrupt
from carnet.core.people.skill import Result
from carnet.runtime.skills.types import Shape, plain


class Chunks:
    """Listens to one skill."""

    def __init__(self, output: Shape) -> None:
        """`output` is the shape of the result."""
        self._output = output
        self._chunks: list[Any] = []
        self._result: dict[str, Any] | None = None
        self.has_text = False

    def take(self, item: object) -> Event | None:
        """The event of what a generator yields; None if it is its result."""
        if isinstance(item, Result):
            self.give(item.value)
            return None
        if self._output.is_one(item):
            self.give(item)
            return None
        event = as_event(item)
        if isinstance(event, Data):
            self._chunks.append(event.value)
        elif isinstance(event, Text):
            self.has_text = True
            self._chunks.append(event.text)
        return event

    def give(self, value: object) -> None:
        """Take note of the result."""
        if self._result is not None:
            raise TypeError("the skill gave two results")
        value = value.value if isinstance(value, Result) else value
        refuse_misuse(value)
        self._result = self._output.write(value)

    def result(self) -> dict[str, Any]:
        """What it ends with."""
        if self._result is not None:
            return self._result
        if all(isinstance(chunk, str) for chunk in self._chunks):
            return {"text": "".join(self._chunks)}
        return {"chunks": self._chunks}


def as_event(item: object) -> Event:
    """What was yielded as an event."""
    if isinstance(item, str):
        return Text(item)
    refuse_misuse(item)
    if isinstance(item, Event) and not isinstance(item, Data):
        return item
    return Data(plain(item.value if isinstance(item, Data) else item))


def refuse_misuse(item: object) -> None:
    """Tell whoever wrote the agent what he forgot."""
    if inspect.iscoroutine(item):
        item.close()
        raise TypeError("the agent gave a coroutine; did you forget 'await'?")
    if inspect.isasyncgen(item):
        raise TypeError("the agent gave a stream; pass it on with 'async for' and 'yield'")
    if isinstance(item, Interrupt | Interrupted | Resolved | Waiting):
        raise TypeError("interrupts come in a later release")
