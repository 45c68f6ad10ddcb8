"""What is shown while it changes: read once for all who watch it, and sent as server-sent events.

Law 1. However many watch the same, it is read once at a time, and no more often than every quarter
       of a second. What nobody watches is not read.
Law 2. What is shared is shared among those who see the same: the key holds whose view it is, and
       for whom it is read.
Law 3. Who watches is counted among the streams of whoever that is, and sees no more once its token
       or its session has ended (R54), or gives other rights than when it began. It watches at most
       `MOST_WATCHED` at a time.
Law 4. What tells of its changes is read when it has told of one, and else every `REST_SECONDS`.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable, Iterator
from contextlib import aclosing, contextmanager
from typing import Final, Protocol, Self

from msgspec import Struct

from carnet.core.people.identity import Caller
from carnet.errors import CarnetError, TooManyStreams
from carnet.guards.limits import Concurrency
from carnet.http.exchange import Disconnected, DisconnectWatch, Exchange
from carnet.ports.world.clock import Clock
from carnet.wire.grammar import sse

MOST_WATCHED: Final = 16  # by one caller at a time
LOOK_SECONDS: Final = 1.0  # between two looks, where nobody tells of a change
REST_SECONDS: Final = 10.0  # between two looks, where somebody would have told of one
PAUSE_SECONDS: Final = 0.25  # between two frames
CHANGED: Final = "changed"  # the event that says that the mark is another one
END: Final = "end"  # the event that says that nothing more will come
_STREAM: Final = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
    (b"x-content-type-options", b"nosniff"),
]


class LiveFrame(Struct, frozen=True):
    """What is shown."""

    page: bytes  # on one line
    is_last: bool = False
    mark: str = ""  # where it changes, a page is told to read its other parts again


Read = Callable[[], Awaitable[LiveFrame]]


class Change(Protocol):
    """Tells that something may have changed."""

    async def changed(self, seconds: float) -> bool: ...


class Ticks:
    """Knows nothing: what it stands for may have changed after a while."""

    async def changed(self, seconds: float) -> bool:
        await asyncio.sleep(seconds)
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to leave."""


class SharedView:
    """What several watch."""

    def __init__(self, clock: Clock) -> None:
        self.watchers = 0
        self._clock = clock
        self._lock = asyncio.Lock()
        self._began = -1.0
        self._frame = LiveFrame(b"")

    async def read(self, read: Read) -> LiveFrame:
        """What is shown now; if somebody has begun to read since this was asked for, hers."""
        asked = self._clock.monotonic()
        async with self._lock:
            if self._began < asked:
                began = self._clock.monotonic()
                self._frame = await read()
                self._began = began
            return self._frame


class Live:
    """The views that somebody watches."""

    def __init__(
        self, concurrency: Concurrency, has_left: Callable[[Caller], bool], clock: Clock
    ) -> None:
        """`has_left` tells whether the token or session of a caller has ended, or its rights."""
        self._concurrency = concurrency
        self._has_left = has_left
        self._clock = clock
        self._views: dict[Hashable, SharedView] = {}
        self._watched: Counter[str] = Counter()  # by the name of who watches

    @contextmanager
    def _joined(self, key: Hashable) -> Iterator[SharedView]:
        view = self._views.setdefault(key, SharedView(self._clock))
        view.watchers += 1
        try:
            yield view
        finally:
            view.watchers -= 1
            if not view.watchers:
                del self._views[key]

    @contextmanager
    def _watching(self, actor: str) -> Iterator[None]:
        """Count one more of a caller's, or refuse."""
        if self._watched[actor] >= MOST_WATCHED:
            raise TooManyStreams(limit=MOST_WATCHED, retry_after=1)
        with self._concurrency.watching(actor):
            self._watched[actor] += 1
            try:
                yield
            finally:
                self._watched[actor] -= 1
                if not self._watched[actor]:
                    del self._watched[actor]

    async def follow(
        self, exchange: Exchange, caller: Caller, key: Hashable, change: Change, read: Read
    ) -> None:
        """Answer with what is shown, again whenever it is another, until it is the last."""
        with self._watching(caller.actor.name), self._joined(key) as view:
            frames = self._frames(caller, view, change, read)
            try:
                with DisconnectWatch(exchange.line):
                    await exchange.start(200, _STREAM)
                    if exchange.method != "HEAD":
                        async with aclosing(frames) as written:
                            async for frame in written:
                                await exchange.write(frame)
                    await exchange.write(b"", more=False)
            except Disconnected:
                return

    async def _frames(
        self, caller: Caller, view: SharedView, change: Change, read: Read
    ) -> AsyncGenerator[bytes, None]:
        shown: LiveFrame | None = None
        while not self._has_left(caller):
            try:
                frame = await view.read(read)
            except CarnetError:  # what she may no longer see, or what is gone
                break
            if shown is None or frame.page != shown.page:
                yield sse.write_event(frame.page)
            if shown is not None and frame.mark != shown.mark:
                yield sse.write_event(b"{}", event=CHANGED)
            shown = frame
            if frame.is_last:
                break
            await self._next(caller, change)
        yield sse.write_event(b"{}", event=END)

    async def _next(self, caller: Caller, change: Change) -> None:
        """Wait until it is to be read again, or its watcher has left."""
        rested = self._clock.monotonic() + REST_SECONDS
        while not await change.changed(LOOK_SECONDS):
            if self._clock.monotonic() >= rested or self._has_left(caller):
                break
        await asyncio.sleep(PAUSE_SECONDS)
