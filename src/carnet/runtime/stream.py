"""How a wrapper holds the stream of the Agent within it.

Law. Whoever stops listening closes the stream at once: an unclosed generator keeps its socket
until somebody collects it.
"""

from collections.abc import AsyncIterator
from types import TracebackType
from typing import Generic, TypeVar

T = TypeVar("T")


class closing(Generic[T]):  # noqa: N801  used like contextlib.aclosing
    """Close a stream on the way out, whatever the reason; one without `aclose` is let be."""

    __slots__ = ("_stream",)

    def __init__(self, stream: AsyncIterator[T]) -> None:
        self._stream = stream

    async def __aenter__(self) -> AsyncIterator[T]:
        return self._stream

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        close = getattr(self._stream, "aclose", None)
        if close is not None:
            await close()
