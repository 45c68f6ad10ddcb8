"""Stops a loop from outside: because nobody wants its answer, or because its process ends.

It needs no help of the loop, which is cancelled as any work is.

Law 1. What runs is cancelled at once, the call of a model too, and the answer ends with a reason.
Law 2. A cancellation that came from elsewhere is not swallowed.
Law 3. Asked before the loop has begun, it does not begin; asked afterwards, nothing happens.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Any

from carnet.core.messages.events import Done, Waiting


class LoopStop:
    """Asks one loop to stop. While it is entered, asking cancels whoever entered it."""

    __slots__ = ("_reason", "_task")

    def __init__(self) -> None:
        self._reason: str | None = None
        self._task: asyncio.Task[object] | None = None

    def ask(self, reason: str) -> None:
        """Stop it; the first reason counts."""
        if self._reason is not None:
            return
        self._reason = reason
        if self._task is not None:
            self._task.cancel()

    @property
    def end(self) -> Done | None:
        """The end of what was stopped; None where nobody asked."""
        return None if self._reason is None else Done(self._reason)

    async def run(self, work: Coroutine[Any, Any, Done | Waiting]) -> Done | Waiting:
        """Its end: that of the work, or that it was stopped."""
        if self._reason is not None:
            work.close()
            return Done(self._reason)
        async with self:
            return await work
        return self.end or Done()

    async def __aenter__(self) -> "LoopStop":
        self._task = asyncio.current_task()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        """Whether what ended it was our own cancellation."""
        del error, trace
        task, self._task = self._task, None
        if self._reason is None or task is None:
            return False
        if kind is not asyncio.CancelledError:  # it is on its way, and must meet nobody else
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
        others = task.uncancel()
        return kind is asyncio.CancelledError and not others
