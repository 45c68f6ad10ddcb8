"""Large bodies: how many of one caller are on their way at a time, and who is read when.

They are parsed on one thread beside the event loop, which it shares the interpreter with.

Law 1. Of one caller `PLACES` large bodies are received, read and admitted at a time. Others of its
       own wait before more of them is taken from their connections; nobody else waits for them.
Law 2. Of one caller one body is parsed at a time, and the next one once it has rested `REST` times
       as long as that took: one caller's bodies take a quarter of the interpreter at the most.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

T = TypeVar("T")
U = TypeVar("U")

LARGE_BYTES: Final = 64 * 1024  # as the edge counts them
PLACES: Final = 4
REST: Final = 3

_THREAD: Final = ThreadPoolExecutor(1, "carnet-bodies")  # one: more would only share the lock


class _Caller:
    """What one caller has on its way."""

    __slots__ = ("count", "places", "reading", "rests_until", "seconds")

    def __init__(self) -> None:
        self.count = 0  # of its bodies, with those that wait for a place
        self.places = asyncio.Semaphore(PLACES)
        self.reading = asyncio.Lock()
        self.rests_until = 0.0
        self.seconds = 0.0  # that its last one took


class LargeBody:
    """One large body of a caller, until its request is admitted."""

    __slots__ = ("_bodies", "_caller", "_name")

    def __init__(self, bodies: "LargeBodies", name: str, caller: _Caller) -> None:
        self._bodies = bodies
        self._name = name
        self._caller = caller

    async def read(self, read: Callable[[T], U], what: T) -> U:
        """Have the body parsed, once it is the caller's turn."""
        caller, loop = self._caller, asyncio.get_running_loop()
        async with caller.reading:
            await asyncio.sleep(max(0.0, caller.rests_until - loop.time()))
            parsed = loop.run_in_executor(_THREAD, self._timed, read, what)
            try:
                return await asyncio.shield(parsed)
            except asyncio.CancelledError:
                await asyncio.wait([parsed])  # to come and go gives nobody more of the thread
                raise
            finally:
                caller.rests_until = loop.time() + REST * caller.seconds

    def _timed(self, read: Callable[[T], U], what: T) -> U:
        began = time.thread_time()
        try:
            return read(what)
        finally:
            self._caller.seconds = time.thread_time() - began

    def leave(self) -> None:
        """Make room for the caller's next one."""
        self._caller.places.release()
        self._bodies.leave(self._name)


class LargeBodies:
    """The places of all callers."""

    def __init__(self) -> None:
        self._callers: dict[str, _Caller] = {}

    async def enter(self, name: str) -> LargeBody:
        """A place for one body of the caller of that name, once there is one."""
        caller = self._callers.get(name)
        if caller is None:
            caller = self._callers[name] = _Caller()
        caller.count += 1
        try:
            await caller.places.acquire()
        except BaseException:
            self.leave(name)
            raise
        return LargeBody(self, name, caller)

    def leave(self, name: str) -> None:
        """Forget a caller that has nothing on its way, when it has rested."""
        caller = self._callers[name]
        caller.count -= 1
        if not caller.count:
            loop = asyncio.get_running_loop()
            loop.call_at(caller.rests_until, self._forget, name, caller)

    def _forget(self, name: str, caller: _Caller) -> None:
        if not caller.count and self._callers.get(name) is caller:
            del self._callers[name]
