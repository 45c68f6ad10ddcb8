"""A function of the operator's that calls wait for: a policy, or a verifier of payments.

Law 1. It cannot hold up the event loop: plain functions run in threads, coroutines in a loop of
       their own, whose thread is theirs alone.
Law 2. Who asks much waits for its own turns: one actor has `MOST_OF_ACTOR` of the places at once.
       A thread that nobody waits for any more, since it was late, keeps its place until it ends.
Law 3. What it has not answered in its time it has not answered.
"""

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
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
        self._threads = Threads(most=2 * MOST_AT_ONCE)  # the places bound them: nobody waits here
        self._loop = _Loop()
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004  an object that is called
        )
        self._places = asyncio.Semaphore(MOST_AT_ONCE)
        self._of_actor: dict[str, tuple[asyncio.Semaphore, int]] = {}

    async def ask(self, actor: str, /, *given: object) -> object:
        """What it answers for a caller; TimeoutError, or whatever it raises."""
        async with asyncio.timeout(self._seconds):
            place = await self._enter(actor)
            try:
                if self._is_async:
                    return await self._loop.run(self._function, *given)
                answer = await self._in_thread(place, *given)
                if inspect.isawaitable(answer):
                    return await self._loop.run(_awaiting, answer)
                return answer
            finally:
                place.leave()

    async def _in_thread(self, place: "_Place", *given: object) -> object:
        loop, place.is_running = asyncio.get_running_loop(), True

        def work() -> object:
            try:
                return self._function(*given)
            finally:
                with suppress(RuntimeError):  # the loop has closed: the process is ending
                    loop.call_soon_threadsafe(place.end)

        try:
            return await self._threads.run(work)
        except Exception:  # it has ended, or has never begun
            place.is_running = False
            raise

    async def _enter(self, actor: str) -> "_Place":
        """A place among those that are asked for at once, of which one actor has a few."""
        own, count = self._of_actor.get(actor) or (asyncio.Semaphore(MOST_OF_ACTOR), 0)
        self._of_actor[actor] = (own, count + 1)
        held: list[asyncio.Semaphore] = []

        def give_back() -> None:
            for each in held:
                each.release()
            own, count = self._of_actor[actor]
            if count > 1:
                self._of_actor[actor] = (own, count - 1)
            else:
                del self._of_actor[actor]

        try:
            for each in (own, self._places):
                await each.acquire()
                held.append(each)
        except BaseException:
            give_back()
            raise
        return _Place(give_back)

    def close(self) -> None:
        """Let its loop go."""
        self._loop.close()


class _Place:
    """One of those that are asked for at once: held until whoever asks and the thread have left."""

    def __init__(self, give_back: Callable[[], None]) -> None:
        self._give_back = give_back
        self._is_left = False
        self.is_running = False  # a thread, which cannot be stopped

    def leave(self) -> None:
        """Nobody waits for it any more."""
        self._is_left = True
        if not self.is_running:
            self._give_back()

    def end(self) -> None:
        """The thread has ended."""
        if self.is_running:
            self.is_running = False
            if self._is_left:
                self._give_back()


async def _awaiting(awaitable: Awaitable[object]) -> object:
    return await awaitable


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


class _Loop:
    """An event loop in a thread of its own, begun when it is first needed."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, function: Callable[..., Any], /, *args: object) -> object:
        """Call a coroutine function there, and wait for what it gives."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(
                target=_serve, args=(self._loop,), name="carnet-operator", daemon=True
            ).start()

        async def call() -> object:
            return await function(*args)

        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call(), self._loop))

    def close(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._loop = None
