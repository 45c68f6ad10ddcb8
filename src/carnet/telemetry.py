"""Log lines and metrics: what the operator sees.

Law 1. One JSON object a line on stdout, with the same first fields always; control characters are
       escaped, values cut at 1 KiB, tracebacks at 4. On a terminal `log` writes text in its place.
Law 2. Fields come from an allow list of ours; a redaction pattern is the second net. A field that
       is not on it is named in its line, without its value; in the tests it is an error.
Law 3. A blocked or closed stdout never holds up a call: lines are dropped and counted.
"""

import logging
import re
import sys
import threading
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from itertools import accumulate
from queue import SimpleQueue
from typing import Any, ClassVar

import msgspec
from msgspec import Struct
from msgspec.structs import asdict
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

MOST_VALUE = 1024
MOST_DETAIL = 4096  # an exception with its traceback; a line is then 8 KiB at the most
MOST_WAITING = 10_000
WRITE_SECONDS = 0.05  # between two looks for lines, while there are some: none is later than that

FIELDS = (
    *("client", "agent", "code", "status", "seconds", "actor", "caller", "depth", "cost"),
    *("incident", "detail", "peer", "count", "path", "kind", "state", "delivery", "task"),
    *("attempt", "lost", "charged", "limit", "cpu", "tool", "model"),
)
_FIRST = ("correlation_id", "run", "turn")  # fields of every line
_BY_PYTHON = frozenset(  # what a record has without us, and what formatters put into it
    (*vars(logging.makeLogRecord({})), "message", "asctime", "taskName")
)

_SECRETS = re.compile(
    r"(sk-[A-Za-z0-9_-]{6,}|ck_[A-Za-z0-9_-]{8,}|[Bb]earer\s+[^\s\"\\]{8,}"
    r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_.-]+|-----BEGIN[^-\"]+-----|whsec_[A-Za-z0-9+/=]{8,})"
)


_RAW = re.compile("[\x7f-\x9f\u2028\u2029]")  # what JSON does not escape and should not be printed


def redact(text: str) -> str:
    """Blank out whatever looks like a credential."""
    # One of these is in every match: seldom, and no call is made to look for them.
    if "earer" in text or "sk-" in text or "ck_" in text or "eyJ" in text:
        return _SECRETS.sub("***", text)
    return _SECRETS.sub("***", text) if "-----BEGIN" in text or "whsec_" in text else text


def undeclared(record: logging.LogRecord) -> list[str]:
    """The names of its fields that no line would show."""
    return sorted(record.__dict__.keys() - _BY_PYTHON - {*_FIRST, *FIELDS})


class Lines(logging.Formatter):
    """How records and answered calls are written."""

    def note(self, note: "CallNote") -> str:
        """The line of an answered call."""
        return note.line()


class JsonLines(Lines):
    """A log record as one JSON line."""

    def format(self, record: logging.LogRecord) -> str:
        """Write the fixed fields, then those of the allow list that are set."""
        run = getattr(record, "run", None)
        line: dict[str, Any] = {
            "timestamp": _timestamp(record.created),
            "correlation_id": getattr(record, "correlation_id", None) or run,
            "component": record.name.removeprefix("carnet."),
            "level": record.levelname.lower(),
            "message": cut(record.getMessage()),
            "run": run,
            "turn": getattr(record, "turn", None),
        }
        for name in FIELDS:
            value = getattr(record, name, None)
            if value is not None:
                line[name] = cut(value) if isinstance(value, str) else value
        if record.name.startswith("carnet") and (lost := undeclared(record)):
            line["undeclared"] = lost
        if record.exc_info:
            line["detail"] = cut(self.formatException(record.exc_info), MOST_DETAIL)
        return _written(line)


def _written(fields: dict[str, Any]) -> str:
    """One line, also to readers that break lines at U+0085, and without terminal controls."""
    line = redact(msgspec.json.encode(fields).decode())
    return line if line.isascii() and "\x7f" not in line else _RAW.sub(_escape, line)


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def cut(text: str, most: int = MOST_VALUE) -> str:
    """A value that fits its line and can be encoded, whatever somebody put into it."""
    sound = text if text.isascii() else text.encode(errors="replace").decode()
    return sound if len(sound) <= most else sound[: most - 1] + "…"


class CallNote(Struct, frozen=True, kw_only=True):
    """One call that was answered: the line of the hot path, which is no `LogRecord`.

    Everything in it was admitted, so nothing is longer than the guards allow.
    """

    at: int  # microseconds since the epoch
    correlation_id: str
    message: str
    run: str
    turn: str
    client: str | None
    agent: str
    actor: str
    depth: int
    state: str
    seconds: float
    attempt: int | None = None  # of a task
    task: str | None = None  # the beginning of its id; who knows all of it may poll
    caller: str | None = None  # what the caller says of itself: agent@host (claimed)

    def line(self) -> str:
        """The note as `JsonLines` would write it."""
        fields: dict[str, Any] = {
            "timestamp": _timestamp_us(self.at),
            "correlation_id": self.correlation_id,
            "component": "gateway",
            "level": "info",
            "message": self.message,
            "run": self.run,
            "turn": self.turn,
        }
        if self.client is not None:
            fields["client"] = self.client
        fields["agent"], fields["seconds"], fields["actor"] = self.agent, self.seconds, self.actor
        if self.caller is not None:
            fields["caller"] = cut(self.caller)
        fields["depth"], fields["state"] = self.depth, self.state
        if self.attempt is not None or self.task is not None:
            more = {"attempt": self.attempt, "task": self.task}
            fields |= {name: value for name, value in more.items() if value is not None}
        return _written(fields)


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def _timestamp_us(at: int) -> str:
    """The same of microseconds; the lines of one second share most of it."""
    seconds, rest = divmod(at, 1_000_000)
    return f"{_to_the_second(seconds)}.{rest:06d}+00:00"


@lru_cache(maxsize=4)
def _to_the_second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat()


class LogSink(logging.Handler):
    """Writes lines from a thread of its own, so that a slow stdout holds up nobody."""

    def __init__(self, stream: Any = None) -> None:
        """`stream` is stdout unless a test gives another."""
        super().__init__()
        self._stream = stream or sys.stdout
        self._lines: deque[logging.LogRecord | CallNote] = deque()
        self._ending = threading.Event()
        self._bell: SimpleQueue[None] = SimpleQueue()  # a signal may log in the midst of a put
        self.is_resting = False  # the writer, until a line arrives
        self.dropped = 0
        self._thread = threading.Thread(target=self._write, name="carnet-log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord | CallNote) -> None:
        """Queue a record; drop it when the writer is far behind."""
        if len(self._lines) >= MOST_WAITING:
            self.dropped += 1
            return
        self._lines.append(record)
        if self.is_resting:
            self.is_resting = False
            self._bell.put(None)

    def _write(self) -> None:
        # Woken by the clock and not by each line: a thread that is woken takes the interpreter
        # from the event loop, which costs more than the line. The first one after a rest wakes it.
        while not self._ending.wait(WRITE_SECONDS) or self._lines:
            batch: list[str] = []
            while self._lines and len(batch) < MOST_WAITING:
                batch.append(self._format(self._lines.popleft()))
            if batch:
                self._put("\n".join(batch) + "\n")
                continue
            self.is_resting = True
            if not self._lines and not self._ending.is_set():  # who came before that rang no bell
                self._bell.get()
            self.is_resting = False

    def _format(self, record: logging.LogRecord | CallNote) -> str:
        try:
            if not isinstance(record, CallNote):
                return self.format(record)
            return (
                self.formatter.note(record) if isinstance(self.formatter, Lines) else record.line()
            )
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
        """Write what is queued and stop. Python closes it once more, and nothing is waited for."""
        _sinks[:] = [each for each in _sinks if each is not self]
        if not self._ending.is_set():
            self._ending.set()
            self._bell.put(None)
            self._thread.join(timeout=2.0)
        super().close()


_sinks: list[LogSink] = []  # the one that lines go to; a process has one or none
_calls = logging.getLogger("carnet.gateway")


def note_call(note: CallNote) -> None:
    """Write the line of an answered call."""
    if not _calls.isEnabledFor(logging.INFO):
        return
    if _sinks:
        _sinks[-1].emit(note)
    else:  # somebody else has set up logging
        _calls.info(note.line())


def start_logging(
    level: str = "INFO", stream: Any = None, *, lines: Lines | None = None
) -> LogSink:
    """Send every log line of the process through one sink; `lines` are JSON unless given."""
    sink = LogSink(stream)
    sink.setFormatter(lines or JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [sink]
    root.setLevel(level)
    for noisy in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio"):
        logging.getLogger(noisy).handlers.clear()
        logging.getLogger(noisy).propagate = True
    logging.getLogger("uvicorn.access").disabled = True
    _sinks[:] = [sink]
    return sink


_HELD_BUCKETS = (0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class Calls(Collector):
    """How many calls were answered, and how long they took: counted by the event loop alone."""

    def __init__(self) -> None:
        """Nothing has been counted."""
        self._counts: defaultdict[tuple[str, str], int] = defaultdict(int)
        self._slots = [0] * (len(_BUCKETS) + 1)
        self._sum = 0.0

    def add(self, agent: str, state: str, seconds: float) -> None:
        """Count one."""
        self._counts[agent, state] += 1
        self._slots[bisect_left(_BUCKETS, seconds)] += 1
        self._sum += seconds

    def collect(self) -> Iterator[Metric]:
        """What a scrape sees."""
        counts = CounterMetricFamily("carnet_calls", "Calls answered", labels=("agent", "state"))
        for labels, count in self._counts.items():
            counts.add_metric(labels, count)
        yield counts
        limits = [*map(str, _BUCKETS), "+Inf"]
        yield HistogramMetricFamily(
            "carnet_call_seconds",
            "Time from admission to the last byte",
            buckets=list(zip(limits, accumulate(self._slots), strict=True)),
            sum_value=self._sum,
        )


# A counter: its name, what it counts, the names of its labels, and the counts by their values.
Tally = tuple[str, str, tuple[str, ...], Mapping[tuple[str, ...], float]]


class Tallies(Collector):
    """What others count, looked up when somebody asks."""

    def __init__(self) -> None:
        self.look: Callable[[], Iterable[Tally]] = tuple

    def collect(self) -> Iterator[Metric]:
        for name, text, labels, rows in self.look():
            counts = CounterMetricFamily(name, text, labels=labels)
            for values, count in rows.items():
                counts.add_metric(values, count)
            yield counts


class Metrics:
    """The numbers of one gateway."""

    content_type: ClassVar[str] = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(
        self,
        *,
        open_calls: Callable[[], int] = lambda: 0,
        circuits: Callable[[], int] = lambda: 0,
        waiting_tasks: Callable[[], int] = lambda: 0,
        running_tasks: Callable[[], int] = lambda: 0,
    ) -> None:
        """A registry of its own: two gateways in one test do not share numbers.

        The functions give the calls being answered, the upstreams that are left alone, the tasks
        that wait in the store and those that run here.
        """
        self.registry = CollectorRegistry()
        self.refusals = Counter(
            "carnet_refusals", "Requests refused, by code", ["code"], registry=self.registry
        )
        self._deliveries = Counter(
            "carnet_webhook_deliveries",
            "Attempts to deliver a webhook, by their outcome",
            ["kind", "state"],
            registry=self.registry,
        )
        self.tasks = Counter(
            "carnet_tasks",
            "Tasks run to their end, or let go when the gateway stopped",
            ["agent", "state"],
            registry=self.registry,
        )
        self._pruned = Counter(
            "carnet_pruned", "Rows forgotten by retention", ["kind"], registry=self.registry
        )
        self.ticks_dropped = Counter(
            "carnet_ticks_dropped", "Ticks of schedules that began nothing", registry=self.registry
        )
        self.held = Histogram(  # count one of them: its seconds
            "carnet_loop_held_seconds",
            "Times that one piece of work kept everybody else waiting",
            buckets=_HELD_BUCKETS,
            registry=self.registry,
        ).observe
        calls, self.tallies = Calls(), Tallies()
        self.registry.register(calls)
        self.registry.register(self.tallies)
        self.called = calls.add  # count one answered call: its agent, its state, its seconds
        self._watch("carnet_open_calls", "Calls being answered", open_calls)
        self._watch("carnet_open_circuits", "Upstreams left alone for a moment", circuits)
        self._watch("carnet_waiting_tasks", "Tasks that wait in the store", waiting_tasks)
        self._watch("carnet_running_tasks", "Tasks that run in this process", running_tasks)

    def _watch(self, name: str, text: str, count: Callable[[], int]) -> None:
        gauge = Gauge(name, text, registry=self.registry)
        gauge.set_function(lambda: float(count()))

    def count_delivery_attempt(self, kind: str, state: str) -> None:
        """Count one attempt to deliver a webhook: delivered, failed or dead."""
        self._deliveries.labels(kind, state).inc()

    def count_pruned(self, gone: Struct) -> None:
        """Count what was forgotten, by its kind."""
        for kind, count in asdict(gone).items():
            if count:
                self._pruned.labels(kind).inc(count)

    def text(self) -> bytes:
        """The exposition format."""
        return generate_latest(self.registry)
