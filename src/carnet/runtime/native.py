"""Agents that are plain Python: any async function or async generator that takes a Visit.

Law. What it returns or yields becomes events: text becomes Text, an event stays one, anything
else becomes Data. What it raises becomes AgentFailed; a CarnetError keeps its meaning.
"""

import inspect
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

from carnet.core.call import Call
from carnet.core.events import Data, Done, Event, Text
from carnet.errors import AgentFailed, CarnetError, ConfigInvalid
from carnet.ports.admission import Dispatch
from carnet.runtime.closing import closing
from carnet.runtime.visit import Visit

logger = logging.getLogger("carnet.agent")

NAME = "__carnet_agent__"


def agent(name: str) -> Callable[[Callable[[Visit], Any]], Callable[[Visit], Any]]:
    """Mark a function as an agent of that name."""

    def mark(function: Callable[[Visit], Any]) -> Callable[[Visit], Any]:
        setattr(function, NAME, name)
        return function

    return mark


def check_function(function: object, target: str) -> Callable[[Visit], Any]:
    """Return `function` if it can be an agent; else say what it should be."""
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        return function
    raise ConfigInvalid(
        key="target",
        reason=f"'{target}' is not an agent: write it as 'async def name(visit)', "
        "with return or yield",
    )


class Native:
    """A user's function as an Agent."""

    def __init__(
        self, function: Callable[[Visit], Any], dispatch: Dispatch, *, last_depth: int
    ) -> None:
        """`dispatch` is its door to other agents."""
        self._function = function
        self._dispatch = dispatch
        self._last_depth = last_depth

    async def __call__(self, call: Call, /) -> AsyncIterator[Event]:
        """Run the function and give what it says as events."""
        visit = Visit(call, self._dispatch, last_depth=self._last_depth)
        failure: CarnetError | None = None
        try:
            async with closing(_items(self._function(visit))) as items:
                async for item in items:
                    for note in visit.take_notes():
                        yield note
                    yield _as_event(item)
        except CarnetError as error:
            failure = error
        except Exception as error:  # the user's code; its text is for our log alone
            carnet = call.carnet
            extra = {"run": carnet.run, "turn": carnet.turn, "agent": call.agent}
            logger.exception("agent raised %s", type(error).__name__, extra=extra)
            failure = AgentFailed(type(error).__name__)
        for note in visit.take_notes():
            yield note
        if failure is not None:
            raise failure
        yield Done()


async def _items(given: Any) -> AsyncIterator[object]:
    if inspect.isasyncgen(given):
        try:
            async for item in given:
                yield item
        finally:
            await given.aclose()
    else:
        value = await given
        if value is not None:
            yield value


def _as_event(item: object) -> Event:
    if isinstance(item, str):
        return Text(item)
    return item if isinstance(item, Event) else Data(item)
