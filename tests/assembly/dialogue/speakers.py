"""Participants whose answers, costs and failures a test chooses."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import carnet

Say = str | BaseException | Callable[[carnet.Visit], Any]


class Speaker:
    """Says its lines one after the other, and notes how it was called; as a function."""

    def __init__(self, name: str, *lines: Say, cost: int | None = None) -> None:
        """A line is text, an error that is raised, or a coroutine function of the visit.

        The last one is repeated; without any it counts: `a-1`, `a-2`.
        """
        self.__name__ = name
        self.__qualname__ = f"Speaker.{name}"
        self.lines = lines
        self.cost = cost
        self.visits: list[Any] = []

    @property
    def calls(self) -> int:
        """How often it was called."""
        return len(self.visits)

    def __call__(self, visit: carnet.Visit) -> AsyncIterator[object]:
        return self._speak(visit)

    async def _speak(self, visit: carnet.Visit) -> AsyncIterator[object]:
        self.visits.append(visit)
        if self.cost is not None:
            yield carnet.Usage(cost=self.cost)
        line: Say = f"{self.__name__}-{self.calls}"
        if self.lines:
            line = self.lines[min(self.calls, len(self.lines)) - 1]
        if isinstance(line, BaseException):
            raise line
        if callable(line):
            line = await line(visit)
        yield line


def texts(result: carnet.ConversationResult) -> list[str]:
    """What was spoken."""
    return [turn.text for turn in result.transcript]


def speakers(result: carnet.ConversationResult) -> list[str]:
    """Who spoke."""
    return [turn.speaker for turn in result.transcript]
