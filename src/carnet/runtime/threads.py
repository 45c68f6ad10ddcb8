"""Plain functions beside the event loop, each in a thread of its own.

Law 1. Whoever waits can leave at any time: the thread goes on, since Python cannot stop it, and
       nobody reads what it gives.
Law 2. A thread that never ends does not keep the process from ending.
Law 3. At most `most` run at once; the rest wait.
Law 4. A generator runs in one thread from its beginning to its end, and only `MOST_AHEAD` values
       before whoever reads. It ends at its next `yield` when nobody reads any more.
"""

import asyncio
import contextvars
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import closing
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")

MOST_AT_ONCE = 64
MOST_AHEAD: Final = 16  # values of a generator that nobody has read yet


class Threads:
    """Runs plain functions for one agent."""

    def __init__(self, *, most: int = MOST_AT_ONCE) -> None:
        """`most` is how many may run at once, those nobody waits for any more among them."""
        self._room = asyncio.Semaphore(most)

    async def run(self, function: Callable[..., T], /, *args: Any, **more: Any) -> T:
        """Call the function in a thread, with the context of whoever asks, and wait for it."""
        await self._room.acquire()
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[T] = loop.create_future()
        context = contextvars.copy_context()

        def end(value: T | None, error: BaseException | None) -> None:
            self._room.release()
            if ended.done():  # nobody waits
                return
            if error is None:
                ended.set_result(value)  # type: ignore[arg-type]  # None only if T is
            elif isinstance(error, StopIteration):  # a future cannot carry it
                ended.set_exception(RuntimeError("the function raised StopIteration"))
            else:
                ended.set_exception(error)

        def work() -> None:
            value, error = None, None
            try:
                value = context.run(function, *args, **more)
            except BaseException as raised:  # noqa: BLE001  told to whoever waits
                error = raised
            _tell(loop, end, value, error)

        try:
            threading.Thread(target=work, name="carnet-skill", daemon=True).start()
        except BaseException:  # the system has no more of them
            self._room.release()
            raise
        return await ended

    async def iterate(
        self, function: Callable[..., Generator[T, Any, Any]], /, *args: Any, **more: Any
    ) -> AsyncGenerator[T, None]:
        """Run a generator in a thread and give what it yields, as it does."""
        speech: _Speech[T] = _Speech(asyncio.get_running_loop())
        speaking = asyncio.ensure_future(self.run(speech.speak, function, *args, **more))
        speaking.add_done_callback(lambda _: speech.end())
        try:
            while (item := await speech.next()) is not None:
                yield item[0]
            error = await speaking
            if error is not None:
                raise error
        finally:
            speech.leave()
            speaking.cancel()


class _Speech(Generic[T]):
    """What a generator has yielded in its thread and nobody has read yet."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._items: asyncio.Queue[tuple[T] | None] = asyncio.Queue()
        self._room = threading.Semaphore(MOST_AHEAD)
        self._is_left = False

    def speak(
        self, function: Callable[..., Generator[T, Any, Any]], /, *args: Any, **more: Any
    ) -> BaseException | None:
        """Run it to its end, in the thread; gives what it raised: a task could not carry it all."""
        try:
            with closing(function(*args, **more)) as generator:
                for item in generator:
                    self._room.acquire()
                    if self._is_left:
                        return None
                    self._loop.call_soon_threadsafe(self._items.put_nowait, (item,))
        except BaseException as error:  # noqa: BLE001  told to whoever reads
            return error
        return None

    async def next(self) -> tuple[T] | None:
        """The next value; None when there is no more."""
        item = await self._items.get()
        self._room.release()
        return item

    def end(self) -> None:
        """Nothing comes after what has come."""
        self._items.put_nowait(None)

    def leave(self) -> None:
        """Let the generator end at its next value."""
        self._is_left = True
        self._room.release()


def _tell(loop: asyncio.AbstractEventLoop, end: Callable[..., None], *how: object) -> None:
    try:
        loop.call_soon_threadsafe(end, *how)
    except RuntimeError:  # the loop has closed: the process is ending
        return
