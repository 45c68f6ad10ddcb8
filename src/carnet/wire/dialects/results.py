"""What the events of an answer add up to, for every dialect that tells a result and no more.

Law. A result is an object. A skill says what it is; of an agent that only talks it is its text, or
what it said in data.
"""

from collections.abc import Sequence
from typing import Any, Final

from carnet.core.messages.events import RESULT, Data, Done, Event, Extension, Failed, Text, Waiting
from carnet.wire.grammar import json

TEXT: Final = "text"


class Gathered:
    """What an answer is made of, as it comes."""

    __slots__ = ("_data", "_result", "_texts", "is_done")

    def __init__(self) -> None:
        self.is_done = False
        self._texts: list[str] = []
        self._data: list[object] = []
        self._result: object = None

    def add(self, *events: Event) -> None:
        """Take the next events; a failure is raised, and so is what is waited for."""
        for event in events:
            match event:
                case Text():
                    self._texts.append(event.text)
                case Data():
                    self._data.append(event.value)
                case Extension(name=name, payload=payload) if name == RESULT:
                    self._result = payload
                case Done():
                    self.is_done = True
                case Failed() | Waiting():
                    raise event.error()

    @property
    def has_text(self) -> bool:
        """Whether anything was said."""
        return bool(self._texts)

    def result(self) -> dict[str, Any]:
        """The object that the caller gets."""
        if self._result is None:
            text = "".join(self._texts)
            return {TEXT: data_text(self._data) if self._data and not text else text}
        if isinstance(self._result, dict):
            return self._result
        return {"result": self._result}


def result_of(events: Sequence[Event]) -> dict[str, Any]:
    """What the events of an answer add up to, as callers in Python get it."""
    gathered = Gathered()
    gathered.add(*events)
    return gathered.result()


def data_text(values: Sequence[object]) -> str:
    """Structured output as text, for an answer that has no other: one JSON value a line."""
    return "\n".join([json.write_text(value) for value in values])
