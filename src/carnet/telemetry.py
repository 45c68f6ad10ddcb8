"""Log lines and metrics: what the operator sees.

Law 1. One JSON object a line on stdout, with the same first fields always; control characters are
       escaped, values cut at 1 KiB, tracebacks at 4.
Law 2. Fields come from an allow list of ours; a redaction pattern is the second net.
Law 3. A blocked or closed stdout never holds up a call: lines are dropped and counted.
"""

import logging
import re
import sys
import threading
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, ClassVar

import msgspec
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

MOST_VALUE = 1024
MOST_DETAIL = 4096  # an exception with its traceback; a line is then 8 KiB at the most
MOST_WAITING = 10_000
WRITE_SECONDS = 0.05

FIELDS = (
    "agent",
    "code",
    "status",
    "seconds",
    "actor",
    "depth",
    "cost",
    "incident",
    "detail",
    "peer",
    "count",
    "path",
    "kind",
    "state",
)

_SECRETS = re.compile(
    r"(sk-[A-Za-z0-9_-]{6,}|ck_[A-Za-z0-9_-]{8,}|[Bb]earer\s+[^\s\"\\]{8,}"
    r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_.-]+|-----BEGIN[^-]+-----)"
)


_SIGNS = ("earer", "sk-", "ck_", "eyJ", "-----BEGIN")  # one of them is in every match


def redact(text: str) -> str:
    """Blank out whatever looks like a credential."""
    if any(sign in text for sign in _SIGNS):  # seldom, and cheaper than the pattern
        return _SECRETS.sub("***", text)
    return text


class JsonLines(logging.Formatter):
    """A log record as one JSON line."""

    def format(self, record: logging.LogRecord) -> str:
        """Write the fixed fields, then those of the allow list that are set."""
        run = getattr(record, "run", None)
        line: dict[str, Any] = {
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "correlation_id": getattr(record, "correlation_id", None) or run,
            "component": record.name.removeprefix("carnet."),
            "level": record.levelname.lower(),
            "message": _cut(record.getMessage()),
            "run": run,
            "turn": getattr(record, "turn", None),
        }
        for name in FIELDS:
            value = getattr(record, name, None)
            if value is not None:
                line[name] = _cut(value) if isinstance(value, str) else value
        if record.exc_info:
            line["detail"] = _cut(self.formatException(record.exc_info), MOST_DETAIL)
        return redact(msgspec.json.encode(line).decode())


def _cut(text: str, most: int = MOST_VALUE) -> str:
    """A value that fits its line and can be encoded, whatever somebody put into it."""
    sound = text if text.isascii() else text.encode(errors="replace").decode()
    return sound if len(sound) <= most else sound[: most - 1] + "…"


class Sink(logging.Handler):
    """Writes lines from a thread of its own, so that a slow stdout holds up nobody."""

    def __init__(self, stream: Any = None) -> None:
        """`stream` is stdout unless a test gives another."""
        super().__init__()
        self._stream = stream or sys.stdout
        self._lines: deque[logging.LogRecord] = deque()
        self._ending = threading.Event()
        self.dropped = 0
        self._thread = threading.Thread(target=self._write, name="carnet-log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a record; drop it when the writer is far behind."""
        if len(self._lines) >= MOST_WAITING:
            self.dropped += 1
            return
        self._lines.append(record)

    def _write(self) -> None:
        # Woken by the clock and not by each line: a thread that is woken takes the interpreter
        # from the event loop, which costs more than the line.
        while not self._ending.wait(WRITE_SECONDS) or self._lines:
            batch: list[str] = []
            while self._lines and len(batch) < MOST_WAITING:
                batch.append(self._format(self._lines.popleft()))
            if batch:
                self._put("\n".join(batch) + "\n")

    def _format(self, record: logging.LogRecord) -> str:
        try:
            return self.format(record)
        except Exception:  # noqa: BLE001  one odd line must not end the log
            self.dropped += 1
            return (
                '{"level":"error","component":"telemetry","message":"a line could not be written"}'
            )

    def _put(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # stdout is gone; the journal has what must not be lost
            self.dropped += 1

    def close(self) -> None:
        """Write what is queued and stop."""
        self._ending.set()
        self._thread.join(timeout=2.0)
        super().close()


def start_logging(level: str = "INFO", stream: Any = None) -> Sink:
    """Send every log line of the process through one sink."""
    sink = Sink(stream)
    sink.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [sink]
    root.setLevel(level)
    for noisy in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio", "aiohttp"):
        logging.getLogger(noisy).handlers.clear()
        logging.getLogger(noisy).propagate = True
    logging.getLogger("uvicorn.access").disabled = True
    return sink


class Metrics:
    """The numbers of one gateway."""

    content_type: ClassVar[str] = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(
        self,
        *,
        open_calls: Callable[[], int] = lambda: 0,
        circuits: Callable[[], int] = lambda: 0,
    ) -> None:
        """A registry of its own: two gateways in one test do not share numbers.

        The functions give the calls being answered and the upstreams that are left alone.
        """
        self.registry = CollectorRegistry()
        self.calls = Counter(
            "carnet_calls", "Calls answered", ["agent", "state"], registry=self.registry
        )
        self.refusals = Counter(
            "carnet_refusals", "Requests refused, by code", ["code"], registry=self.registry
        )
        self.seconds = Histogram(
            "carnet_call_seconds",
            "Time from admission to the last byte",
            buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300),
            registry=self.registry,
        )
        Gauge("carnet_open_calls", "Calls being answered", registry=self.registry).set_function(
            lambda: float(open_calls())
        )
        Gauge(
            "carnet_open_circuits", "Upstreams left alone for a moment", registry=self.registry
        ).set_function(lambda: float(circuits()))
        self._bound: dict[tuple[str, str], Counter] = {}

    def called(self, agent: str, state: str, seconds: float) -> None:
        """Count one answered call."""
        key = (agent, state)
        counter = self._bound.get(key)
        if counter is None:
            counter = self._bound[key] = self.calls.labels(agent, state)
        counter.inc()
        self.seconds.observe(seconds)

    def text(self) -> bytes:
        """The exposition format."""
        return generate_latest(self.registry)
