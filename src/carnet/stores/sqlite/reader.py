"""Queries, on a thread and a connection of their own, so that they never wait for a commit."""

import threading
from asyncio import AbstractEventLoop, Future
from collections.abc import Callable, Sequence
from queue import SimpleQueue

from carnet.errors import StorageUnavailable
from carnet.stores.database import Row, Value
from carnet.stores.turn.row import SqlConnection

Query = tuple[str, Sequence[Value], "Future[list[Row]]"]


class SqliteReader:
    """A queue of queries and the thread that answers them, one after another."""

    def __init__(
        self, connection: SqlConnection, loop: AbstractEventLoop, close: Callable[[], object]
    ) -> None:
        self._connection = connection
        self._close = close
        self._loop = loop
        self._inbox: SimpleQueue[Query | None] = SimpleQueue()
        self._stopped: Future[None] = loop.create_future()
        self._is_open = True
        threading.Thread(target=self._work, name="carnet-reader", daemon=True).start()

    def fetch(self, sql: str, args: Sequence[Value]) -> Future[list[Row]]:
        if not self._is_open:
            raise StorageUnavailable("the store is closed")
        future: Future[list[Row]] = self._loop.create_future()
        self._inbox.put((sql, args, future))
        return future

    def _settle(self, future: "Future[list[Row]]", answer: list[Row] | StorageUnavailable) -> None:
        if future.done():
            return
        if isinstance(answer, StorageUnavailable):
            future.set_exception(answer)
        else:
            future.set_result(answer)

    async def stop(self) -> None:
        """Answer what is queued and end the thread."""
        if self._is_open:
            self._is_open = False
            self._inbox.put(None)
        await self._stopped

    # From here on the reader's own thread.

    def _work(self) -> None:
        try:
            self._answer_all()
            self._close()
        finally:
            self._tell(self._stopped.set_result, None)

    def _answer_all(self) -> None:
        while (query := self._inbox.get()) is not None:
            # Told at once: the next one may be somebody else's, and take its time.
            self._tell(self._settle, query[2], self._answer(query))

    def _answer(self, query: Query) -> list[Row] | StorageUnavailable:
        try:
            return self._connection.execute(query[0], query[1]).fetchall()
        except Exception as error:  # noqa: BLE001  a thread has no caller: the one who asked is told
            return StorageUnavailable(f"{type(error).__name__}: {error}")

    def _tell(self, function: Callable[..., object], *args: object) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *args)
        except RuntimeError:  # the loop is closed: nobody is left to be told
            self._inbox.put(None)
