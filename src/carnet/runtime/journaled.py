"""An Agent that records what it says before anybody hears it, and can say it again.

Law 1. Claimed turns run once, whoever reads; repeats are answered from the record.
Law 2. A stream's events are durable before they are shown; a call without a stream is written
       once, with its end.
Law 3. The end (events, state, ledger) is one transaction; then readers see the terminal event.
Law 4. A turn that nobody reads any more is cancelled unless its agent finishes on its own. While
       its end is being recorded nothing can cancel it.
Law 5. No turn stays running: one whose end could not be recorded is ended as unknown as soon as
       the store can be written again.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Sequence

import msgspec

from carnet.core.call import Call
from carnet.core.events import (
    UNKNOWN_COST,
    Done,
    Event,
    Extension,
    Failed,
    Usage,
    read_events,
)
from carnet.core.turn import Turn
from carnet.errors import (
    AgentFailed,
    Cancelled,
    CarnetError,
    InProgress,
    Internal,
    OutcomeUnknown,
    ShuttingDown,
)
from carnet.ports.agent import Router, Target
from carnet.ports.clock import Clock, Ids
from carnet.ports.turns import Fenced, Turns
from carnet.runtime.closing import closing
from carnet.runtime.live import Live
from carnet.runtime.recording import Recording
from carnet.runtime.settling import end_as_unknown, settle

logger = logging.getLogger("carnet.runtime")

STOP_SECONDS = 5.0  # how long a cancelled turn may take to be recorded
POLL_SECONDS = 0.1  # how often a turn that runs in another process is looked at
ORPHAN_SECONDS = 2.0  # how long a claimed turn of ours may wait for its execution to begin


class Execution:
    """A turn that is running. It can be stopped while its agent speaks, not in its recording."""

    __slots__ = ("listening", "live", "stopped", "task")

    task: asyncio.Task[None]

    def __init__(self, live: Live) -> None:
        """The task is set when it has been made."""
        self.live = live
        self.listening = False
        self.stopped = False

    def stop(self) -> None:
        """Cancel the agent, or keep it from being started."""
        if not self.stopped:
            self.stopped = True
            if self.listening:
                self.task.cancel()


class Journaled:
    """Runs turns, shows them to readers, and replays them."""

    def __init__(
        self, *, router: Router, turns: Turns, clock: Clock, ids: Ids, currency: str, worker: str
    ) -> None:
        """`router` gives the agent that answers; `turns` keeps what it said, `worker` is us."""
        self._router = router
        self._turns = turns
        self._clock = clock
        self._ids = ids
        self._currency = currency
        self._worker = worker
        self._running: dict[int, Execution] = {}
        self._draining = False

    @property
    def running(self) -> int:
        """How many turns are running here."""
        return len(self._running)

    async def __call__(self, call: Call, /) -> AsyncIterator[Event]:
        """One event at a time, for callers in process."""
        async with closing(self.batches(call)) as batches:
            async for batch in batches:
                for event in batch:
                    yield event

    def batches(
        self, call: Call, /, heartbeat: float | None = None
    ) -> AsyncGenerator[Sequence[Event], None]:
        """Committed groups of events; the last holds one Usage and the terminal event."""
        running = self._running.get(call.record.n)
        if running is not None:
            return self._attach(running, heartbeat)
        if call.known:
            return self._replay(call, heartbeat)
        return self._start(call).read(heartbeat)

    def _attach(
        self, running: Execution, heartbeat: float | None
    ) -> AsyncGenerator[Sequence[Event], None]:
        if running.stopped and not running.live.ended:
            raise InProgress(retry_after=1)  # it is being cancelled; then it may run again
        return running.live.read(heartbeat)

    async def cancel(self, turns: Collection[int]) -> int:
        """Cancel those of these turns that are running here."""
        found = [self._running[n] for n in turns if n in self._running]
        await _stop(found)
        return len(found)

    async def drain(self, seconds: float) -> int:
        """Wait for what is running; end what has not ended by then. The number that was ended."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._running:  # a call that was admitted just now may still begin
                    await asyncio.wait([running.task for running in self._running.values()])
        self._draining = True
        late = list(self._running.values())
        await _stop(late)
        return len(late)

    def _start(self, call: Call) -> Live:
        target = self._router.find(call.agent)

        def abandoned() -> None:
            if target.on_disconnect == "cancel":
                running.stop()

        live = Live(abandoned)
        running = self._running[call.record.n] = Execution(live)
        running.task = asyncio.get_running_loop().create_task(self._run(running, call, target))
        return live

    async def _run(self, running: Execution, call: Call, target: Target) -> None:
        live = running.live
        recording = Recording(turns=self._turns, call=call, target=target, live=live)
        try:
            running.listening = True
            if running.stopped:
                end: Done | Failed = self._cancelled()
            else:
                end = await self._listen(recording, call, target)
            running.listening = False
            await self._finish(recording, live, call, end)
        finally:
            self._running.pop(call.record.n, None)
            if not live.ended:  # nobody may wait for ever
                live.publish((Usage(), Failed.of(OutcomeUnknown())), last=True)

    async def _listen(self, recording: Recording, call: Call, target: Target) -> Done | Failed:
        inner = call if call.onward is None else msgspec.structs.replace(call, carnet=call.onward)
        try:
            async with closing(target.agent(inner)) as events:
                async for event in events:
                    if isinstance(event, Done | Failed):
                        return event
                    await recording.hear(event)
        except asyncio.CancelledError:
            # The end must still be recorded: the task was told to stop, not to forget.
            task = asyncio.current_task()
            if task is None or not task.cancelling():
                return Failed.of(AgentFailed("a cancellation that nobody asked for"))
            task.uncancel()
            return self._cancelled()
        except Exception as error:  # noqa: BLE001  whatever an agent raises must end its turn
            return self._failed(call, error)
        return Done()  # a stream that simply ends is complete

    def _failed(self, call: Call, error: Exception) -> Failed:
        if isinstance(error, Fenced):
            return Failed.of(OutcomeUnknown(str(error)))
        if isinstance(error, CarnetError):
            logger.info("call failed", extra=_fields(call, error.code, str(error)))
            return Failed.of(error)
        internal = Internal(str(error), incident=self._ids.uuid())
        fields = {**_fields(call, internal.code, str(error)), **internal.facts}
        logger.error("agent raised", exc_info=error, extra=fields)
        return Failed.of(internal)

    def _cancelled(self) -> Failed:
        return Failed.of(ShuttingDown() if self._draining else Cancelled())

    async def _finish(
        self, recording: Recording, live: Live, call: Call, end: Done | Failed
    ) -> None:
        try:
            batch, record = await recording.finish(end, now=self._clock.wall_us())
        except Fenced:
            logger.warning("turn taken over", extra=_fields(call, "fenced", ""))
            return
        except Exception as error:  # whatever it is, the turn must not stay running
            told = error if isinstance(error, CarnetError) else Internal(str(error))
            logger.exception("turn not recorded", extra=_fields(call, told.code, str(error)))
            live.publish((Usage(), Failed.of(told)), last=True)
            await settle(self._turns, call, self._clock, is_over=lambda: self._draining)
            return
        live.publish((*batch, self._usage(call, record, batch), end), last=True)

    def _usage(self, call: Call, record: Turn, events: Sequence[Event]) -> Usage:
        # A forwarded credential of our own issue is billed by us; the forwarder owes nothing.
        ours = call.payer.by_forwarding and call.payer.own_issue and not call.is_child
        unknown = any(type(event) is Extension and event.name == UNKNOWN_COST for event in events)
        return Usage(
            record.tokens_in,
            record.tokens_out,
            0 if ours else None if unknown else record.cost,
            0 if ours else record.run_cost,
            self._currency,
        )

    async def _replay(
        self, call: Call, heartbeat: float | None
    ) -> AsyncGenerator[Sequence[Event], None]:
        record, waited = call.record, 0.0
        while record.state in {"running", "queued"}:
            running = self._running.get(record.n)
            if running is not None:  # claimed a moment ago, and begun since
                async with closing(running.live.read(heartbeat)) as batches:
                    async for batch in batches:
                        yield batch
                return
            if record.worker == self._worker and waited >= ORPHAN_SECONDS:
                await end_as_unknown(self._turns, call, record, self._clock.wall_us())
            await asyncio.sleep(POLL_SECONDS)
            waited += POLL_SECONDS
            record = await self._turns.reload(record)
        events = await self._recorded(call, record)
        if events and isinstance(events[-1], Done | Failed):
            yield (*events[:-1], self._usage(call, record, events), events[-1])
        else:  # the process that ran it died; the caller may send it again
            yield (*events, Usage(), Failed.of(OutcomeUnknown()))

    async def _recorded(self, call: Call, record: Turn) -> list[Event]:
        try:
            batches = await self._turns.events(record)
        except Internal as damaged:  # the row is named in the log; nothing of it is served
            internal = Internal(damaged.detail, incident=self._ids.uuid())
            fields = {**_fields(call, internal.code, damaged.detail), **internal.facts}
            logger.error("a record is damaged", extra=fields)  # noqa: TRY400  no fault of ours
            raise internal from None
        return [event for data in batches for event in read_events(data)]


async def _stop(executions: Sequence[Execution]) -> None:
    for running in executions:
        running.stop()
    if executions:
        await asyncio.wait([running.task for running in executions], timeout=STOP_SECONDS)


def _fields(call: Call, code: str, detail: str) -> dict[str, object]:
    carnet = call.carnet
    return {
        "run": carnet.run,
        "turn": carnet.turn,
        "agent": call.agent,
        "code": code,
        "detail": detail,
    }
