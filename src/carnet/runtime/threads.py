"""Plain functions beside the event loop, each in a thread of its own.

Law 1. Whoever waits can leave at any time: the thread goes on, since Python cannot stop it, and
       nobody reads what it gives.
Law 2. A thread that never ends does not keep the process from ending.
Law 3. At most `most` run at once; the rest wait.
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

MOST_AT_ONCE = 64


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


def _tell(loop: asyncio.AbstractEventLoop, end: Callable[..., None], *how: object) -> None:
    try:
        loop.call_soon_threadsafe(end, *how)
    except RuntimeError:  # the loop has closed: the process is ending
        return
