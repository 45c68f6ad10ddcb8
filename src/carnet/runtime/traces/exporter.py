"""Sends spans to a collector, by OTLP over HTTP.

Law 1. It costs no call anything: what waits is bounded, more is dropped, and counted.
Law 2. A collector that is slow, away or wrong is tried `TRIES` times with what waits for it, and is
       then given up for these spans; the log says so, once until it works again.
Law 3. Requests leave by the one way out, as others do: no redirect, no proxy of the environment.
"""

import asyncio
import logging
from collections import deque
from typing import Final

import msgspec

from carnet.core.people.identity import Secret
from carnet.errors import CarnetError
from carnet.ports.world.http_client import Bounds, HttpClient, Outbound
from carnet.runtime.traces.spans import Span, request_of

logger = logging.getLogger("carnet.traces")

PATH: Final = "/v1/traces"
BATCH: Final = 256  # spans of one request
TRIES: Final = 3
PAUSE_SECONDS: Final = 1.0  # before another try; doubled
CLOSE_SECONDS: Final = 2.0  # for what waits when the gateway stops
_OK: Final = range(200, 300)
_BOUNDS: Final = Bounds(
    connect_seconds=3, first_byte_seconds=10, idle_seconds=5, total_seconds=15, max_bytes=64 * 1024
)


class SpanExporter:
    """Spans on their way to one collector."""

    def __init__(
        self,
        http: HttpClient,
        url: str,
        *,
        domain: str,
        most: int,
        authorization: Secret | None = None,
    ) -> None:
        """`url` is the collector's, `most` how many spans wait for it."""
        self._http = http
        self._url = url.rstrip("/") + PATH
        self._domain = domain
        self._most = most
        self._secrets = {} if authorization is None else {"authorization": authorization}
        self._waiting: deque[Span] = deque()
        self._there = asyncio.Event()  # that something waits
        self._task: asyncio.Task[None] | None = None
        self._is_failing = False
        self.counts = {"sent": 0, "dropped": 0, "failed": 0}

    def start(self) -> None:
        """Begin to send."""
        self._task = asyncio.create_task(self._run())

    def offer(self, span: Span) -> None:
        """Have it sent, if there is room."""
        if len(self._waiting) >= self._most:
            self.counts["dropped"] += 1
            return
        self._waiting.append(span)
        self._there.set()

    async def close(self) -> None:
        """Send what waits while there is time; the rest is dropped."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                while self._waiting and await self._send_batch():
                    pass
        except TimeoutError:
            pass
        self.counts["dropped"] += len(self._waiting)
        self._waiting.clear()

    async def _run(self) -> None:
        while True:
            await self._there.wait()
            tries = 0
            while self._waiting and not await self._send_batch(is_last=tries + 1 >= TRIES):
                await asyncio.sleep(PAUSE_SECONDS * 2**tries)
                tries = (tries + 1) % TRIES
            if not self._waiting:
                self._there.clear()

    async def _send_batch(self, *, is_last: bool = True) -> bool:
        """Send some; False if they could not be sent. After the last try they are gone."""
        count = min(BATCH, len(self._waiting))
        batch = [self._waiting[place] for place in range(count)]
        wrong = await self._send(batch)
        if wrong is None or is_last:
            for _ in range(count):
                self._waiting.popleft()
            self.counts["sent" if wrong is None else "failed"] += count
        if wrong is not None and is_last and not self._is_failing:
            logger.warning("spans are not taken", extra={"path": self._url, "detail": wrong})
        self._is_failing = wrong is not None and (is_last or self._is_failing)
        return wrong is None

    async def _send(self, batch: list[Span]) -> str | None:
        """What was wrong; None if they were taken."""
        request = Outbound(
            url=self._url,
            body=msgspec.json.encode(request_of(batch, self._domain)),
            headers={"content-type": "application/json"},
            secrets=self._secrets,
            bounds=_BOUNDS,
        )
        try:
            async with self._http.send(request) as answer:
                await answer.read()
                return None if answer.status in _OK else f"it answered {answer.status}"
        except (CarnetError, OSError) as error:
            return str(error) or type(error).__name__
