"""A function of the operator's that calls wait for: a policy, or a verifier of payments.

Law 1. It cannot hold up the event loop: plain functions run in threads, coroutines in a loop of
       their own, whose thread is theirs alone.
Law 2. Who asks much waits for its own turns: one actor has `MOST_OF_ACTOR` of the places at once.
Law 3. What it has not answered in its time it has not answered.
Law 4. What hangs is at the cost of whom it was asked for, until it ends: the actor's place is kept,
       and nobody else's. At most `MOST_LEFT` hang at once.
Law 5. A coroutine that holds its loop up is left behind with it: others go on in a new one.
"""

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

from carnet.runtime.threads import Threads

MOST_AT_ONCE: Final = 16  # that somebody waits for
MOST_OF_ACTOR: Final = 4
MOST_LEFT: Final = 256  # threads, with those that nobody waits for any more
MOST_LOOPS: Final = 16  # that were left behind
END_SECONDS: Final = 1.0  # for coroutines that are cancelled


class _Actor:
    """The places of one actor, and how many use them or wait for one."""

    __slots__ = ("count", "room")

    def __init__(self) -> None:
        self.count = 0
        self.room = asyncio.Semaphore(MOST_OF_ACTOR)


class OperatorFunction:
    """Asks one function."""

    def __init__(self, function: Callable[..., Any], *, seconds: float) -> None:
        """After `seconds` nobody waits for it any more."""
        self._function = function
        self._seconds = seconds
        self._threads = Threads(most=MOST_LEFT)
        self._loop = _Loop()
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004  an object that is called
        )
        self._places = asyncio.Semaphore(MOST_AT_ONCE)
        self._of_actor: dict[str, _Actor] = {}

    async def ask(self, actor: str, /, *given: object) -> object:
        """What it answers for a caller; TimeoutError, or whatever it raises."""
        until = asyncio.get_running_loop().time() + self._seconds
        own = self._of_actor.setdefault(actor, _Actor())
        own.count += 1
        try:
            async with asyncio.timeout_at(until):
                await own.room.acquire()
        except BaseException:
            self._leave(actor, own)
            raise
        working: asyncio.Future[object] | None = None
        try:
            async with asyncio.timeout_at(until), self._places:
                working = asyncio.ensure_future(self._work(given))
                return await asyncio.shield(working)
        finally:
            if working is None or working.done():
                self._end(actor, own, working)
            else:
                working.add_done_callback(lambda done: self._end(actor, own, done))
                self._loop.give_up(working)

    async def _work(self, given: tuple[object, ...]) -> object:
        """Have it answer; ends when it has, however long that takes."""
        if self._is_async:
            return await self._loop.run(self._function, *given)
        try:
            answer = await self._threads.run(self._function, *given)
        except SystemExit:  # of its thread, and not of the gateway
            raise RuntimeError("the function raised SystemExit") from None
        if inspect.isawaitable(answer):
            return await self._loop.run(_awaiting, answer)
        return answer

    def _end(self, actor: str, own: _Actor, working: asyncio.Future[object] | None) -> None:
        own.room.release()
        self._leave(actor, own)
        if working is not None and not working.cancelled():
            working.exception()  # nobody may have waited for it

    def _leave(self, actor: str, own: _Actor) -> None:
        own.count -= 1
        if not own.count:
            self._of_actor.pop(actor, None)

    def close(self) -> None:
        """Let its loop go."""
        self._loop.close()


async def _awaiting(awaitable: Awaitable[object]) -> object:
    return await awaitable


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop until it is let go, and then what it has begun as far as it ends."""
    loop.run_forever()
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.wait(tasks, timeout=END_SECONDS))
    loop.close()


class _Job:
    """One call in the other loop, as this one sees it."""

    __slots__ = ("begun", "ended", "loop", "task")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.begun = False
        self.task: asyncio.Task[Any] | None = None
        self.ended: asyncio.Future[object] = asyncio.get_running_loop().create_future()

    def end(self, value: object, error: BaseException | None) -> None:
        """Tell what came of it, if anybody is told."""
        if self.ended.done():
            return
        if error is None:
            self.ended.set_result(value)
        elif isinstance(error, StopIteration | SystemExit | asyncio.CancelledError):
            # A future cannot carry it, or would carry it on to the gateway.
            self.ended.set_exception(RuntimeError(f"the function raised {type(error).__name__}"))
        else:
            self.ended.set_exception(error)


class _Loop:
    """An event loop in a thread of its own, begun when it is first needed."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._left = 0  # loops that are held up
        self._jobs: dict[asyncio.Future[object], _Job] = {}

    async def run(self, function: Callable[..., Any], /, *args: object) -> object:
        """Call a coroutine function there, and wait for what it gives."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(
                target=_serve, args=(self._loop,), name="carnet-operator", daemon=True
            ).start()
        job, here = _Job(self._loop), asyncio.get_running_loop()

        async def call() -> None:
            value, error = None, None
            job.begun, job.task = True, asyncio.current_task()
            try:
                value = await function(*args)
            except BaseException as raised:  # noqa: BLE001  told to whoever waits
                error = raised
            with suppress(RuntimeError):  # whoever waited is gone with its loop
                here.call_soon_threadsafe(job.end, value, error)

        asyncio.run_coroutine_threadsafe(call(), job.loop)
        task = asyncio.current_task()
        if task is not None:
            self._jobs[task] = job
        try:
            return await job.ended
        finally:
            if task is not None:
                self._jobs.pop(task, None)

    def give_up(self, working: asyncio.Future[object]) -> None:
        """Nobody waits for a call any more: it is cancelled, and ends when it lets itself be."""
        job = self._jobs.get(working)
        if job is None:
            return
        if job.task is not None:
            job.loop.call_soon_threadsafe(job.task.cancel)
        if job.begun:
            return
        job.end(None, TimeoutError())  # it never will: something holds its loop up
        if self._loop is job.loop and self._left < MOST_LOOPS:
            self._left += 1
            self.close()

    def close(self) -> None:
        """Let it end, as soon as nothing holds it up."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._loop = None
