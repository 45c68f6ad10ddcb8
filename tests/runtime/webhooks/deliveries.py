"""Deliveries in memory, and somebody to deliver them: for what must be exact to the microsecond."""

import builtins
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from msgspec.structs import replace

from carnet.errors import CarnetError
from carnet.ports.world.http_client import HttpClient, Outbound
from carnet.ports.world.outbox import Delivery, DeliveryState, Outcome, StoredDelivery
from carnet.runtime.webhooks.callbacks import queue_of
from carnet.runtime.webhooks.dispatcher import Dispatcher
from carnet.runtime.webhooks.payload import Webhooks, write_secret
from carnet.runtime.webhooks.schedule import SCHEDULE, DeliverySchedule
from carnet.telemetry import Metrics
from carnet.testing.clock import FakeClock, FakeIds
from tests.runtime.peers.test_signing import Keys, signing

RAW_SECRET = bytes(range(32))
SECRET = write_secret(RAW_SECRET)
SENDER = "agent://sender.example"
BODY = b'{"traceId":"run_1","spanId":"s","status":"ok","result":{"text":"na\xc3\xafve"}}'


def delivery(name: str = "1", url: str = "https://hooks.example/in", **fields: Any) -> Delivery:
    given = {
        "kind": "callback",
        "body": BODY,
        "task": f"task-{name}",
        "secret_of": SENDER,
        **fields,
    }
    receiver = queue_of(url, given["secret_of"])
    return Delivery(id=f"msg_{name}", url=url, receiver=receiver, **given)


class MemoryOutbox:
    """The port over dictionaries, with nothing of a lease but its count."""

    def __init__(self) -> None:
        self.stored: dict[str, StoredDelivery] = {}
        self.paused: dict[str, tuple[int, int]] = {}  # until when, after how many failures
        self.gone: set[tuple[str, str]] = set()

    async def put(self, deliveries: Sequence[Delivery], now: int) -> None:
        for one in deliveries:
            n = len(self.stored) + 1
            self.stored[one.id] = StoredDelivery(n=n, delivery=one, due=now, created=now)

    async def lease(
        self, now: int, *, until: int, at_most: int, per_receiver: int
    ) -> builtins.list[StoredDelivery]:
        del per_receiver
        due = [one for one in self.stored.values() if self._next(one) <= now][:at_most]
        for one in due:
            self.stored[one.delivery.id] = replace(one, due=until, fence=one.fence + 1)
        return [
            replace(one, failures=self.paused.get(one.delivery.receiver, (0, 0))[1]) for one in due
        ]

    async def mark(self, stored: StoredDelivery, outcome: Outcome) -> bool:
        at = stored.delivery
        self.stored[at.id] = replace(
            self.stored[at.id],
            state=outcome.state,
            attempts=stored.attempts + 1,
            due=outcome.due,
            status=outcome.status,
            reason=outcome.reason,
            ended=None if outcome.state == "pending" else outcome.now,
        )
        if outcome.pause_until is not None:
            self.paused[at.receiver] = (outcome.pause_until, stored.failures + 1)
        elif outcome.state == "delivered":
            self.paused.pop(at.receiver, None)
        if outcome.gone:
            self.gone.add((at.secret_of, at.url))
        return True

    async def next_due(self, now: int, *, per_receiver: int = 2) -> int | None:
        del now, per_receiver
        return min(
            (self._next(one) for one in self.stored.values() if one.state == "pending"),
            default=None,
        )

    def _next(self, one: StoredDelivery) -> int:
        if one.state != "pending":
            return 2**63
        return max(one.due, self.paused.get(one.delivery.receiver, (0, 0))[0])

    async def waiting(self, receiver: str, *, most: int) -> int:
        kept = [one for one in self.stored.values() if one.delivery.receiver == receiver]
        return min(sum(one.state == "pending" for one in kept), most)

    async def is_gone(self, url: str, owner: str) -> bool:
        return (owner, url) in self.gone

    async def list(
        self, *, state: DeliveryState | None, limit: int, before: int | None = None
    ) -> builtins.list[StoredDelivery]:
        del before
        return [one for one in self.stored.values() if state in {None, one.state}][:limit]

    async def find(self, delivery: str) -> StoredDelivery | None:
        return self.stored.get(delivery)

    async def replay(self, deliveries: Sequence[str], now: int) -> int:
        for name in deliveries:
            one = self.stored[name]
            self.stored[name] = replace(one, state="pending", attempts=0, due=now, replayed=now)
        return len(deliveries)

    async def forget(self, ended_before: int) -> int:
        del ended_before
        return 0


class Response:
    """What a receiver answers: a status and headers, or the error that sending ends in."""

    def __init__(self, status: int, **headers: str) -> None:
        self.status = status
        self._headers = headers

    def header(self, name: str) -> str | None:
        return self._headers.get(name.replace("-", "_"))

    async def read(self) -> bytes:
        return b""

    async def next(self) -> bytes:
        return b""

    async def chunks(self) -> AsyncIterator[bytes]:
        yield b"nothing that matters"


class ScriptedClient:
    """Answers each request with what comes next, the last of it again and again."""

    def __init__(self, clock: FakeClock, *answers: Response | CarnetError) -> None:
        self._clock = clock
        self._answers = list(answers)
        self.sent: list[tuple[float, Outbound]] = []  # seconds since the start, and what
        self._began = clock.wall_us()

    @asynccontextmanager
    async def send(self, request: Outbound) -> AsyncIterator[Response]:
        self.sent.append(((self._clock.wall_us() - self._began) / 1_000_000, request))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, CarnetError):
            raise answer
        yield answer

    @property
    def times(self) -> list[float]:
        return [at for at, _ in self.sent]


def webhooks(clock: Any, *, timeout: float = 10.0) -> Webhooks:
    keys: Any = Keys()
    return Webhooks(
        signing=signing(clock),
        keys=keys,
        clock=clock,
        secret_of=lambda _: RAW_SECRET,
        timeout=timeout,
    )


def dispatcher(
    outbox: Any,
    http: Any,
    clock: Any,
    *,
    schedule: Sequence[float] = SCHEDULE,
    fraction: float = 0.5,
    timeout: float = 10.0,
    metrics: Metrics | None = None,
    **more: Any,
) -> Dispatcher:
    """With a fraction of a half the jitter is nothing."""
    ids = FakeIds(fraction=fraction)
    opened: HttpClient = http
    return Dispatcher(
        outbox=outbox,
        http=opened,
        webhooks=webhooks(clock, timeout=timeout),
        schedule=DeliverySchedule(schedule, ids),
        clock=clock,
        ids=ids,
        metrics=metrics or Metrics(),
        **more,
    )


async def deliver_all(
    dispatching: Dispatcher, outbox: MemoryOutbox, clock: FakeClock, *, rounds: int = 100
) -> None:
    """Let time pass until nothing waits any more."""
    for _ in range(rounds):
        due = await outbox.next_due(clock.wall_us())
        if due is None:
            return
        clock.advance(max(due - clock.wall_us(), 0) / 1_000_000)
        await dispatching.look()
        await dispatching.settled()
    raise AssertionError("deliveries still wait")
