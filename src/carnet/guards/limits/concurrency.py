"""How many calls are open at once?

Law. Counted in this process, per caller and in all; whoever enters leaves, whatever happens.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from carnet.errors import Overloaded, TooManyCalls, TooManyStreams


class Concurrency:
    """The open calls of each caller, and how many of them are streamed."""

    def __init__(self, *, per_caller: int, in_all: int, streams: int | None = None) -> None:
        """All bounds hold; `streams` is for each caller, by default as many as calls."""
        self._per_caller = per_caller
        self._in_all = in_all
        self._most_streams = per_caller if streams is None else streams
        self._open: dict[str, int] = {}
        self._streams: dict[str, int] = {}
        self.total = 0

    def enter(self, actor: str, *, stream: bool = False) -> None:
        """Count one more, or refuse."""
        here = self._open.get(actor, 0)
        if here >= self._per_caller:
            raise TooManyCalls(limit=self._per_caller, retry_after=1)
        if self.total >= self._in_all:
            raise Overloaded(retry_after=1)
        if stream:
            self._enter_stream(actor)
        self._open[actor] = here + 1
        self.total += 1

    def leave(self, actor: str, *, stream: bool = False) -> None:
        """Count one less, of the kind that entered."""
        left = self._open[actor] - 1
        if left:
            self._open[actor] = left
        else:
            del self._open[actor]
        if stream:
            self._leave_stream(actor)
        self.total -= 1

    @contextmanager
    def watching(self, actor: str) -> Iterator[None]:
        """Count a stream that is no call: somebody follows the events of a run."""
        self._enter_stream(actor)
        try:
            yield
        finally:
            self._leave_stream(actor)

    def _enter_stream(self, actor: str) -> None:
        streams = self._streams.get(actor, 0)
        if streams >= self._most_streams:
            raise TooManyStreams(limit=self._most_streams, retry_after=1)
        self._streams[actor] = streams + 1

    def _leave_stream(self, actor: str) -> None:
        left = self._streams.pop(actor) - 1
        if left:
            self._streams[actor] = left
