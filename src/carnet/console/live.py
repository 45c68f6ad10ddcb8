"""What is shown while it changes: read once for all who watch it, and sent as server-sent events.

Law 1. However many watch the same, it is read once at a time, and no more often than every quarter
       of a second. What nobody watches is not read.
Law 2. What is shared is shared among those who see the same: the key holds whose view it is, and
       for whom it is read.
Law 3. Who watches is counted among the streams of whoever that is, and sees no more once its token
       or its session has ended (R54), or gives other rights than when it began. It watches at most
       `MOST_WATCHED` at a time.
Law 4. What tells of its changes is read when it has told of one, and else every `REST_SECONDS`.
Law 5. Calls go before those who watch them: all that is watched is read at `BYTES_A_SECOND`, of
       which every caller has the same part, however much one has opened. The more there is to read,
       the longer it rests, up to `REST_SECONDS`.
"""

import asyncio
import math
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable, Iterable, Iterator
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
# A few hundredths of the time of a core at the most (`make bench ARGS=consoles`).
BYTES_A_SECOND: Final = 64 * 1024
READ_BYTES: Final = 16 * 1024  # that a read counts for, beside what it shows
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
    """Knows nothing: nobody tells of a change."""

    async def changed(self, seconds: float) -> bool:
        await asyncio.sleep(seconds)
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to leave."""


class SharedView:
    """What several watch."""

    def __init__(self, owner: str, clock: Clock) -> None:
        """`owner` is who has opened it first: it is read in her part of the time."""
        self.owner = owner
        self.watchers = 0
        self.due = 0.0  # when it may be read again
        self._clock = clock
        self._lock = asyncio.Lock()
        self._began = -math.inf
        self._frame = LiveFrame(b"")

    def is_newer(self, since: float) -> bool:
        """Whether it was read since a moment."""
        return self._began > since

    async def read(self, read: Read, since: float, parts: Callable[[str], int]) -> LiveFrame:
        """What was shown at a moment or since then; read now where nobody has.

        `parts` tells in how many the time for reading is divided, of which this view has one.
        """
        async with self._lock:
            if not self.is_newer(since):
                began = self._clock.monotonic()
                self._frame = await read()
                self._began = began
                counted = (len(self._frame.page) + READ_BYTES) * parts(self.owner)
                rest = min(counted / BYTES_A_SECOND, REST_SECONDS)
                self.due = began + max(rest, PAUSE_SECONDS)
            return self._frame


def parts_of(owners: Iterable[str], owner: str) -> int:
    """In how many the time is divided for a view of hers, where these have opened one each.

    Everybody has the same part of the time, and each of her views the same part of hers.
    """
    opened = Counter(owners)
    return len(opened) * opened[owner]


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

    def _parts(self, owner: str) -> int:
        return parts_of((view.owner for view in self._views.values()), owner)

    @contextmanager
    def _joined(self, key: Hashable, actor: str) -> Iterator[SharedView]:
        view = self._views.setdefault(key, SharedView(actor, self._clock))
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
        self,
        exchange: Exchange,
        caller: Caller,
        key: Hashable,
        change: Change,
        read: Read,
        *,
        rest: float = REST_SECONDS,
        mark: str | None = None,
    ) -> None:
        """Answer with what is shown, again whenever it is another, until it is the last.

        It is looked at after a `rest` also if no `change` was told of. `mark` is the one of the
        page that watches: where the first look has another one, the page is told so at once.
        """
        actor = caller.actor.name
        with self._watching(actor), self._joined(key, actor) as view:
            frames = self._frames(caller, view, change, read, rest, mark)
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
        self,
        caller: Caller,
        view: SharedView,
        change: Change,
        read: Read,
        rest: float,
        mark: str | None,
    ) -> AsyncGenerator[bytes, None]:
        shown: LiveFrame | None = None
        since = self._clock.monotonic()
        while await self._is_due(caller, view, since):
            try:
                frame = await view.read(read, since, self._parts)
            except CarnetError:  # what she may no longer see, or what is gone
                break
            if self._has_left(caller):  # while it was read
                break
            if shown is None or frame.page != shown.page:
                yield sse.write_event(frame.page)
            if mark is not None and frame.mark != mark:
                yield sse.write_event(b"{}", event=CHANGED)
            shown, mark = frame, frame.mark
            if frame.is_last:
                break
            since = await self._next(caller, change, rest)
        yield sse.write_event(b"{}", event=END)

    async def _is_due(self, caller: Caller, view: SharedView, since: float) -> bool:
        """Wait until it may be read, or somebody else has; False if its watcher has left."""
        while not self._has_left(caller):
            left = view.due - self._clock.monotonic()
            if left <= 0 or view.is_newer(since):
                return True
            await asyncio.sleep(min(left, LOOK_SECONDS))
        return False

    async def _next(self, caller: Caller, change: Change, rest: float) -> float:
        """Wait until it is to be shown again, or its watcher has left; how old it may be then."""
        rested = self._clock.monotonic() + rest
        while not await change.changed(LOOK_SECONDS):
            now = self._clock.monotonic()
            if now >= rested or self._has_left(caller):
                return now - rest  # nobody told of a change: what others were shown is as good
        return self._clock.monotonic()
