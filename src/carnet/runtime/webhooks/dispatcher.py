"""Sending letters: what is due is leased, sent and marked, in every gateway of a store.

Law 1. A letter is marked after it was answered. What a crash leaves unmarked is sent again when its
       lease has run out, under the same id.
Law 2. Letters leave through the one way out: the address of each attempt is judged anew, and no
       redirect is followed. Of an answer nothing is kept but its status, and how long to wait.
Law 3. A receiver has at most two letters on their way, and all of them together sixteen.
Law 4. That a letter died is told to the operator, as a letter. That such a notice died is not.
"""

import asyncio
import contextlib
import logging
from collections.abc import Sequence
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
from carnet.ports.world.clock import Clock, Ids
from carnet.ports.world.http_client import Answer, Door
from carnet.ports.world.outbox import Letter, Outbox, Outcome, Posted
from carnet.runtime.webhooks.callbacks import PREFIX, queue_of
from carnet.runtime.webhooks.payload import Webhooks
from carnet.runtime.webhooks.schedule import SECOND_US, Attempt, Deliveries
from carnet.telemetry import Metrics
from carnet.wire.grammar import json
from carnet.wire.grammar.retry_after import read_wait

logger = logging.getLogger("carnet.outbox")

AT_ONCE: Final = 16
PER_RECEIVER: Final = 2
LEASE_SECONDS: Final = 60
LOOK_SECONDS: Final = 1.0  # how late a letter is seen that another process has written
HELD_SECONDS: Final = 0.2  # before those are looked at again that are due and cannot be sent yet
NOTIFY: Final = "notify"  # whose secret signs what is told to the operator
DEAD: Final = "outbox.dead"


class Dispatcher:
    """Sends the letters of one store."""

    def __init__(
        self,
        *,
        outbox: Outbox,
        door: Door,
        webhooks: Webhooks,
        deliveries: Deliveries,
        clock: Clock,
        ids: Ids,
        metrics: Metrics,
        notify: Sequence[str] = (),
    ) -> None:
        """Take what it works with.

        Args:
            outbox: Where letters wait.
            door: The way out.
            webhooks: Signs an attempt.
            deliveries: Decides what becomes of a letter.
            clock: Tells the time.
            ids: Names notices.
            metrics: Counts attempts.
            notify: Where the operator wants to hear of letters that died.
        """
        self._outbox = outbox
        self._door = door
        self._webhooks = webhooks
        self._deliveries = deliveries
        self._clock = clock
        self._ids = ids
        self._metrics = metrics
        self._notify = tuple(notify)
        self._woken = asyncio.Event()
        self._ending = False
        self._looking: asyncio.Task[None] | None = None
        self._sending: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Look for letters until it is drained."""
        self._looking = asyncio.create_task(self._keep_looking(), name="carnet-outbox")

    def wake(self) -> None:
        """Look at once: a letter was written."""
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
                logger.warning("letters could not be looked for", extra={"detail": str(error)})
                seconds = LOOK_SECONDS
            except Exception:  # a task has no caller; the next look may be well
                logger.exception("letters could not be looked for")
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
        for posted in leased:
            self._begin(posted)
        return 0.0 if leased else HELD_SECONDS

    async def settled(self) -> None:
        """Wait until nothing is on its way."""
        while self._sending:
            await asyncio.wait(self._sending)

    # ------------------------------------------------------------------ sending

    def _begin(self, posted: Posted) -> None:
        task = asyncio.create_task(self._deliver(posted))
        self._sending.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._sending.discard(task)
        self._woken.set()

    async def _deliver(self, posted: Posted) -> None:
        began = self._clock.monotonic()
        attempt = await self._attempt(posted.letter)
        outcome = self._deliveries.outcome(posted, attempt, self._clock.wall_us())
        try:
            point("outbox.before_mark")
            is_ours = await self._outbox.mark(posted, outcome)
            point("outbox.after_mark")
            self._note(posted, outcome, self._clock.monotonic() - began)
            if is_ours and outcome.state == "dead" and posted.letter.kind != "notice":
                await self._tell(posted, outcome)
        except CarnetError as error:  # it is sent again when its lease has run out
            extra = {"letter": posted.letter.id, "detail": str(error)}
            logger.warning("what became of a letter could not be written", extra=extra)

    async def _attempt(self, letter: Letter) -> Attempt:
        point("outbox.before_send")
        try:
            return await self._send(letter)
        except CarnetError as error:
            reason = _reason(error)
        except Exception:  # whatever is wrong with it: it is not tried for ever
            logger.exception("a letter could not be sent", extra={"letter": letter.id})
            reason = "it could not be sent"
        finally:
            point("outbox.after_send")
        return Attempt(reason=reason)

    async def _send(self, letter: Letter) -> Attempt:
        async with self._door.send(self._webhooks.request(letter)) as answer:
            wait = read_wait(answer.header("retry-after"), answer.header("date"))
            await _drop(answer)
            return Attempt(status=answer.status, wait=wait)

    def _note(self, posted: Posted, outcome: Outcome, seconds: float) -> None:
        letter = posted.letter
        state = "failed" if outcome.state == "pending" else outcome.state
        self._metrics.posted(letter.kind, state)
        log = logger.info if state == "delivered" else logger.warning
        log(
            f"letter {state}",
            extra={
                "letter": letter.id,
                "kind": letter.kind,
                "peer": letter.host,
                "state": outcome.state,
                "status": outcome.status,
                "count": posted.attempts + 1,
                "seconds": round(seconds, 6),
                "detail": outcome.reason,
            },
        )

    async def _tell(self, posted: Posted, outcome: Outcome) -> None:
        """Tell the operator of a letter that died."""
        if not self._notify:
            return
        body = notice_of(posted, outcome)
        letters = [
            Letter(
                id=PREFIX + self._ids.ordered_uuid(),
                kind="notice",
                url=url,
                receiver=queue_of(url, NOTIFY),
                body=body,
                secret_of=NOTIFY,
                learned=False,
            )
            for url in self._notify
        ]
        await self._outbox.put(letters, outcome.now)
        self.wake()


def notice_of(posted: Posted, outcome: Outcome) -> bytes:
    """What is told of a letter that died. The path of a callback may be a secret: it is not."""
    letter = posted.letter
    return json.write(
        {
            "type": DEAD,
            "timestamp": datetime.fromtimestamp(outcome.now / SECOND_US, UTC).isoformat(),
            "data": {
                "letter": letter.id,
                "taskId": letter.task,
                "receiver": letter.host,
                "attempts": posted.attempts + 1,
                "status": outcome.status,
                "reason": outcome.reason,
                "gone": outcome.gone,
            },
        }
    )


async def _drop(answer: Answer) -> None:
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
