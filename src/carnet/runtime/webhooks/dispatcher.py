"""The dispatcher: every gateway of a store leases the deliveries that are due, and sends them.

Law 1. The outcome of an attempt is written after the receiver has answered. What a crash leaves
       without an outcome is sent again when its lease has run out, under the same id.
Law 2. Webhooks are sent by the one HTTP client: the address is judged anew at each attempt, and no
       redirect is followed. Of an answer nothing is kept but its status, and how long to wait.
Law 3. At most two deliveries are on their way to one receiver, and sixteen in all.
Law 4. The operator gets a notice of each delivery that is dead, as a webhook. Of a notice that is
       dead there is none.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Final

from carnet.errors import (
    CarnetError,
    EgressRefused,
    ProviderError,
    ProviderTimeout,
    ProviderUnavailable,
)
from carnet.faults import point
from carnet.ports.calls.tasks import Callback
from carnet.ports.world.clock import Clock, Ids
from carnet.ports.world.http_client import HttpAnswer, HttpClient
from carnet.ports.world.outbox import Delivery, Outbox, Outcome, StoredDelivery
from carnet.runtime.webhooks.callbacks import NOTIFY, PREFIX, queue_of
from carnet.runtime.webhooks.payload import Webhooks
from carnet.runtime.webhooks.schedule import SECOND_US, DeliveryAttempt, DeliverySchedule
from carnet.telemetry import Metrics
from carnet.wire.grammar import json
from carnet.wire.grammar.retry_after import read_wait

logger = logging.getLogger("carnet.outbox")

AT_ONCE: Final = 16
PER_RECEIVER: Final = 2
LEASE_SECONDS: Final = 60
LOOK_SECONDS: Final = 1.0  # how late a delivery of another process is seen
HELD_SECONDS: Final = 0.2  # before those are looked at again that are due and cannot be sent yet
DEAD: Final = "outbox.dead"


Callbacks = Callable[[str], Awaitable[Sequence[Callback]]]  # of a task


async def _none(_: str) -> Sequence[Callback]:
    return ()


class Dispatcher:
    """Sends the webhooks of one store."""

    def __init__(
        self,
        *,
        outbox: Outbox,
        http: HttpClient,
        webhooks: Webhooks,
        schedule: DeliverySchedule,
        clock: Clock,
        ids: Ids,
        metrics: Metrics,
        notify: Sequence[str] = (),
    ) -> None:
        """Take what it works with.

        Args:
            outbox: Where deliveries wait.
            http: Sends the requests.
            webhooks: Signs an attempt.
            schedule: Decides what becomes of a delivery.
            clock: Tells the time.
            ids: Names notices.
            metrics: Counts attempts.
            notify: Where the operator is told of deliveries that are dead.
        """
        self._outbox = outbox
        self._http = http
        self._webhooks = webhooks
        self._schedule = schedule
        self._clock = clock
        self._ids = ids
        self._metrics = metrics
        self.notify = tuple(notify)
        self.callbacks: Callbacks = _none  # what whoever named an address wants to be shown there
        self._woken = asyncio.Event()
        self._ending = False
        self._looking: asyncio.Task[None] | None = None
        self._sending: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Look for deliveries until it is drained."""
        self._looking = asyncio.create_task(self._keep_looking(), name="carnet-outbox")

    def wake(self) -> None:
        """Look at once: a delivery was written."""
        self._woken.set()

    async def drain(self, seconds: float) -> None:
        """Begin nothing new, and let what is on its way arrive."""
        self._ending = True
        self._woken.set()
        if self._looking is not None:
            await asyncio.wait([self._looking], timeout=seconds)
        if self._sending:
            await asyncio.wait(self._sending, timeout=seconds)

    async def close(self) -> None:
        """End at once. What was on its way is sent again by whoever comes next."""
        self._ending = True
        tasks = [task for task in (self._looking, *self._sending) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    # ------------------------------------------------------------------ looking

    async def _keep_looking(self) -> None:
        while not self._ending:
            self._woken.clear()
            try:
                seconds = await self.look()
            except CarnetError as error:  # the next look may succeed
                logger.warning("the outbox could not be read", extra={"detail": str(error)})
                seconds = LOOK_SECONDS
            except Exception:  # a task has no caller; the next look may be well
                logger.exception("the outbox could not be read")
                seconds = LOOK_SECONDS
            if not self._ending:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._woken.wait(), seconds)

    async def look(self) -> float:
        """Begin to send what is due; the seconds until there is more to do."""
        now = self._clock.wall_us()
        room = AT_ONCE - len(self._sending)
        if not room:
            return LOOK_SECONDS  # the first that ends wakes us
        due = await self._outbox.next_due(now, per_receiver=PER_RECEIVER)
        if due is None or due > now:
            return LOOK_SECONDS if due is None else min((due - now) / SECOND_US, LOOK_SECONDS)
        leased = await self._outbox.lease(
            now, until=now + LEASE_SECONDS * SECOND_US, at_most=room, per_receiver=PER_RECEIVER
        )
        for stored in leased:
            self._begin(stored)
        return 0.0 if leased else HELD_SECONDS

    async def settled(self) -> None:
        """Wait until nothing is on its way."""
        while self._sending:
            await asyncio.wait(self._sending)

    # ------------------------------------------------------------------ sending

    def _begin(self, stored: StoredDelivery) -> None:
        task = asyncio.create_task(self._deliver(stored))
        self._sending.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._sending.discard(task)
        self._woken.set()

    async def _deliver(self, stored: StoredDelivery) -> None:
        began = self._clock.monotonic()
        attempt = await self._attempt(stored.delivery)
        outcome = self._schedule.outcome(stored, attempt, self._clock.wall_us())
        try:
            point("outbox.before_mark")
            is_ours = await self._outbox.mark(stored, outcome)
            point("outbox.after_mark")
            self._note(stored, outcome, self._clock.monotonic() - began)
            if is_ours and outcome.state == "dead" and stored.delivery.kind != "notice":
                await self._tell(stored, outcome)
        except CarnetError as error:  # it is sent again when its lease has run out
            extra = {"delivery": stored.delivery.id, "detail": str(error)}
            logger.warning("the outcome of a delivery could not be written", extra=extra)

    async def _attempt(self, delivery: Delivery) -> DeliveryAttempt:
        point("outbox.before_send")
        try:
            return await self._send(delivery)
        except CarnetError as error:
            reason = _reason(error)
        except Exception:  # whatever is wrong with it: it is not tried for ever
            logger.exception("a webhook could not be sent", extra={"delivery": delivery.id})
            reason = "it could not be sent"
        finally:
            point("outbox.after_send")
        return DeliveryAttempt(reason=reason)

    async def _send(self, delivery: Delivery) -> DeliveryAttempt:
        request = self._webhooks.request(delivery, await self._named(delivery))
        async with self._http.send(request) as answer:
            wait = read_wait(answer.header("retry-after"), answer.header("date"))
            await _drop(answer)
            return DeliveryAttempt(status=answer.status, wait=wait)

    async def _named(self, delivery: Delivery) -> Callback | None:
        """The address of a task as its caller named it, if it is still named."""
        if delivery.kind != "callback" or delivery.task is None:
            return None
        named = await self.callbacks(delivery.task)
        return next((each for each in named if each.url == delivery.url), None)

    def _note(self, stored: StoredDelivery, outcome: Outcome, seconds: float) -> None:
        delivery = stored.delivery
        state = "failed" if outcome.state == "pending" else outcome.state
        self._metrics.count_delivery_attempt(delivery.kind, state)
        log = logger.info if state == "delivered" else logger.warning
        log(
            f"webhook {state}",
            extra={
                "delivery": delivery.id,
                "kind": delivery.kind,
                "peer": delivery.host,
                "state": outcome.state,
                "status": outcome.status,
                "count": stored.attempts + 1,
                "seconds": round(seconds, 6),
                "detail": outcome.reason,
            },
        )

    async def _tell(self, stored: StoredDelivery, outcome: Outcome) -> None:
        """Tell the operator of a delivery that is dead."""
        if not self.notify:
            return
        body = notice_of(stored, outcome)
        deliveries = [
            Delivery(
                id=PREFIX + self._ids.ordered_uuid(),
                kind="notice",
                url=url,
                receiver=queue_of(url, NOTIFY),
                body=body,
                secret_of=NOTIFY,
                learned=False,
            )
            for url in self.notify
        ]
        await self._outbox.put(deliveries, outcome.now)
        self.wake()


def notice_of(stored: StoredDelivery, outcome: Outcome) -> bytes:
    """The notice of a dead delivery. It leaves out the path of the URL, which may be secret."""
    delivery = stored.delivery
    return json.write(
        {
            "type": DEAD,
            "timestamp": datetime.fromtimestamp(outcome.now / SECOND_US, UTC).isoformat(),
            "data": {
                "delivery": delivery.id,
                "taskId": delivery.task,
                "receiver": delivery.host,
                "attempts": stored.attempts + 1,
                "status": outcome.status,
                "reason": outcome.reason,
                "gone": outcome.gone,
            },
        }
    )


async def _drop(answer: HttpAnswer) -> None:
    """Take the body of an answer, within its bounds. Its status says all, whatever comes of it."""
    with contextlib.suppress(CarnetError):
        async for _ in answer.chunks():
            pass


def _reason(error: CarnetError) -> str:
    """Why there was no answer, in our own words."""
    if isinstance(error, EgressRefused):
        return "its address may not be dialled"
    if isinstance(error, ProviderTimeout):
        return "it did not answer in time"
    if isinstance(error, ProviderUnavailable):
        return "it could not be reached" + (f" ({error.detail})" if error.detail else "")
    if isinstance(error, ProviderError):
        return "its answer could not be read"
    return f"it could not be sent ({error.code})"
