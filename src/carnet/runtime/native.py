"""Agents that are plain Python: any async function or async generator that takes a Visit.

Law. What it returns or yields becomes events: text becomes Text, an event stays one, anything
else becomes Data. What it raises becomes AgentFailed; a CarnetError keeps its meaning.
"""

import inspect
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

from carnet.core.call import Call
from carnet.core.events import Data, Done, Event, Interrupted, Resolved, Text
from carnet.core.interrupt import Interrupt
from carnet.errors import AgentFailed, CarnetError, ConfigInvalid
from carnet.ports.admission import Dispatch
from carnet.runtime.closing import closing
from carnet.runtime.visit import FORWARD_USER, Visit

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
        self,
        function: Callable[[Visit], Any],
        dispatch: Dispatch,
        *,
        last_depth: int,
        auth_source: str = FORWARD_USER,
    ) -> None:
        """`dispatch` is its door to others; `auth_source` says who pays for the calls it makes."""
        self._function = function
        self._dispatch = dispatch
        self._last_depth = last_depth
        self._auth_source = auth_source

    async def __call__(self, call: Call, /) -> AsyncIterator[Event]:
        """Run the function and give what it says as events."""
        visit = Visit(
            call, self._dispatch, last_depth=self._last_depth, auth_source=self._auth_source
        )
        try:
            async with closing(_items(self._function(visit))) as items:
                async for item in items:
                    yield _as_event(item)
        except CarnetError:
            raise
        except (Exception, SystemExit) as error:  # the user's code; its text is for our log alone
            carnet = call.carnet
            extra = {"run": carnet.run, "turn": carnet.turn, "agent": call.agent}
            logger.exception("agent raised %s", type(error).__name__, extra=extra)
            raise AgentFailed(type(error).__name__) from None
        finally:
            visit.close()
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
    if inspect.iscoroutine(item):
        item.close()
        raise TypeError("the agent gave a coroutine; did you forget 'await'?")
    if inspect.isasyncgen(item):
        raise TypeError("the agent gave a stream; pass it on with 'async for' and 'yield'")
    if isinstance(item, Interrupt | Interrupted | Resolved):
        raise TypeError("interrupts come in a later release")
    return item if isinstance(item, Event) else Data(item)
