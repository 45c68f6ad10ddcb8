"""What ends a dialogue from outside: an abort, and the end of its time; and of one attempt.

Law 1. The first of them counts. Whether its time is over is told by the clock that all deadlines
       are told by, not by which timer rings first.
Law 2. Whoever waits for something else is woken by it.
Law 3. It holds against those who decide on the course of a dialogue as well: a function that does
       not answer is cancelled and let go. One that is asked when it is over has a moment.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from carnet.errors import AgentFailed
from carnet.runtime.dialogue.parts import DialogueParts
from carnet.runtime.dialogue.policy import leave, result_of
from carnet.runtime.wrappers.timed import GRACE_SECONDS

StopKind = Literal["abort", "deadline"]


class Stopped(Exception):
    """A dialogue has come to a stop while somebody was waited for."""

    def __init__(self, kind: StopKind) -> None:
        super().__init__(kind)
        self.kind = kind


class DialogueStop:
    """Whether a dialogue has to stop. Used and closed within one event loop."""

    def __init__(self, parts: DialogueParts, ends: float | None) -> None:
        """`ends` is when its time is over, in seconds of the steady clock."""
        self.kind: StopKind | None = None
        self._steady = parts.steady
        self._ends = ends
        self._threads = parts.threads
        self._event = asyncio.Event()
        self._waiter: asyncio.Event | None = None
        self._abort = parts.abort
        self._timer: asyncio.TimerHandle | None = None
        self._watch: asyncio.Task[object] | None = None
        if ends is not None:
            self._wait_for(ends)
        if self._abort is not None:
            self._watch = asyncio.get_running_loop().create_task(self._abort.wait())
            self._watch.add_done_callback(self._aborted)

    def look(self) -> StopKind | None:
        """Why it has to stop, if it has to."""
        if self.kind is None and self._abort is not None and self._abort.is_set():
            self._stop("abort")
        if self.kind is None and self._ends is not None and self._steady() >= self._ends:
            self._stop("deadline")
        return self.kind

    def wake(self, waiter: asyncio.Event) -> None:
        """Set this as well when it comes to a stop."""
        self._waiter = waiter
        if self.kind is not None:
            waiter.set()

    async def sleep(self, seconds: float) -> None:
        """Wait, at the most until it comes to a stop."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return

    async def ask(self, function: Callable[..., Any], /, *args: Any) -> Any:
        """What a function gives of whoever defines the dialogue; Stopped if it comes to a stop.

        A plain one is called in a thread, where there are some.
        """
        if self._threads is not None:
            return await self._answer(self._beside(function, args))
        given = function(*args)
        return await self._answer(_awaited(given)) if inspect.isawaitable(given) else given

    async def _beside(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        try:
            if self._threads is None or inspect.iscoroutinefunction(function):
                return await function(*args)
            given = await self._threads.run(function, *args)
            return await given if inspect.isawaitable(given) else given
        except (KeyboardInterrupt, SystemExit) as error:  # of the function: it ends no gateway
            raise AgentFailed(type(error).__name__) from error

    async def _answer(self, work: Any) -> Any:
        loop = asyncio.get_running_loop()
        answer, stop = loop.create_task(work), loop.create_task(self._event.wait())
        try:
            if self.look():
                await asyncio.wait([answer], timeout=GRACE_SECONDS)
            else:
                await asyncio.wait([answer, stop], return_when=asyncio.FIRST_COMPLETED)
        except BaseException:
            await leave(answer)
            raise
        finally:
            stop.cancel()
        if answer.done():
            return result_of(answer)
        await leave(answer)
        raise Stopped(self.look() or "abort")

    def close(self) -> None:
        """Watch no more."""
        if self._timer is not None:
            self._timer.cancel()
        if self._watch is not None:
            self._watch.cancel()

    def _wait_for(self, ends: float) -> None:
        seconds = max(0.0, ends - self._steady())
        self._timer = asyncio.get_running_loop().call_later(seconds, self._ring, ends)

    def _ring(self, ends: float) -> None:
        """Stop, unless the timer was a little early by the clock that counts."""
        if self.look() is None:
            self._wait_for(ends)

    def _aborted(self, watch: "asyncio.Task[object]") -> None:
        if not watch.cancelled():
            self._stop("abort")

    def _stop(self, kind: StopKind) -> None:
        if self.kind is None:
            self.kind = kind
        self._event.set()
        if self._waiter is not None:
            self._waiter.set()


async def _awaited(given: Awaitable[Any]) -> Any:
    return await given


class Late:
    """Whether the time of an attempt is over."""

    def __init__(self, seconds: float | None, waiter: asyncio.Event) -> None:
        """`waiter` is woken when it is; without a time it never is."""
        self.is_late = False
        self._waiter = waiter
        self._timer: asyncio.TimerHandle | None = None
        if seconds is not None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._ring)

    def close(self) -> None:
        """Wait no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _ring(self) -> None:
        self.is_late = True
        self._waiter.set()
