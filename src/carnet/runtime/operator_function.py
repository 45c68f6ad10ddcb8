"""A function of the operator's that calls wait for: a policy, or a verifier of payments.

Law 1. It cannot hold up the event loop: plain functions run in threads, coroutines in a loop of
       their own, whose thread is theirs alone.
Law 2. Who asks much waits for its own turns: one actor has `MOST_OF_ACTOR` of the places at once.
Law 3. What it has not answered in its time it has not answered.
"""

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from carnet.runtime.threads import Threads

MOST_AT_ONCE: Final = 16
MOST_OF_ACTOR: Final = 4


class OperatorFunction:
    """Asks one function."""

    def __init__(self, function: Callable[..., Any], *, seconds: float) -> None:
        """After `seconds` nobody waits for it any more."""
        self._function = function
        self._seconds = seconds
        self._threads = Threads(most=MOST_AT_ONCE)
        self._loop = _Loop()
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004  an object that is called
        )
        self._places = asyncio.Semaphore(MOST_AT_ONCE)
        self._of_actor: dict[str, tuple[asyncio.Semaphore, int]] = {}

    async def ask(self, actor: str, /, *given: object) -> object:
        """What it answers for a caller; TimeoutError, or whatever it raises."""
        async with asyncio.timeout(self._seconds), self._place(actor):
            if self._is_async:
                return await self._loop.run(self._function, *given)
            answer = await self._threads.run(self._function, *given)
            if inspect.isawaitable(answer):
                return await self._loop.run(_awaiting, answer)
            return answer

    @asynccontextmanager
    async def _place(self, actor: str) -> AsyncIterator[None]:
        """A place among those that are asked for at once, of which one actor has a few."""
        own, waiting = self._of_actor.get(actor) or (asyncio.Semaphore(MOST_OF_ACTOR), 0)
        self._of_actor[actor] = (own, waiting + 1)
        try:
            async with own, self._places:
                yield
        finally:
            own, waiting = self._of_actor[actor]
            if waiting > 1:
                self._of_actor[actor] = (own, waiting - 1)
            else:
                del self._of_actor[actor]

    def close(self) -> None:
        """Let its loop go."""
        self._loop.close()


async def _awaiting(awaitable: Awaitable[object]) -> object:
    return await awaitable


class _Loop:
    """An event loop in a thread of its own, begun when it is first needed."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, function: Callable[..., Any], /, *args: object) -> object:
        """Call a coroutine function there, and wait for what it gives."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            target = self._loop.run_forever
            threading.Thread(target=target, name="carnet-operator", daemon=True).start()

        async def call() -> object:
            return await function(*args)

        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call(), self._loop))

    def close(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._loop = None
