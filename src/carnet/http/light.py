"""Small stand-ins for parts that uvicorn makes for each connection or request.

An `asyncio.Event` and a `deque` take 760 bytes each before anything is in them: thousands of open
streams are mostly such things.
"""

import asyncio
from typing import TypeVar

T = TypeVar("T")


class Signal:
    """The part of `asyncio.Event` that a connection needs."""

    __slots__ = ("_is_set", "_waiters")

    def __init__(self, *, is_set: bool = False) -> None:
        """`is_set` as it begins."""
        self._is_set = is_set
        self._waiters: list[asyncio.Future[None]] | None = None

    def set(self) -> None:
        """Wake whoever waits."""
        self._is_set = True
        waiters, self._waiters = self._waiters, None
        for waiter in waiters or ():
            if not waiter.done():
                waiter.set_result(None)

    def clear(self) -> None:
        """Make the next one wait."""
        self._is_set = False

    async def wait(self) -> None:
        """Until it is set."""
        while not self._is_set:
            waiter = asyncio.get_running_loop().create_future()
            if self._waiters is None:
                self._waiters = []
            self._waiters.append(waiter)
            await waiter


class Few(list[T]):
    """The part of `deque` that the requests waiting on a connection need; there are seldom any."""

    __slots__ = ()

    def appendleft(self, item: T) -> None:
        """Put one at the front."""
        self.insert(0, item)

    def popleft(self) -> T:
        """Take the one at the front."""
        return self.pop(0)
