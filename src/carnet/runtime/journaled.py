"""An Agent that records what it says before anybody hears it, and can say it again.

Law 1. Claimed turns run once, whoever reads; repeats are answered from the record.
Law 2. A stream's events are durable before they are shown; a call without a stream is written
       once, with its end.
Law 3. The end (events, state, ledger) is one transaction; then readers see the terminal event.
Law 4. A turn that nobody reads any more is cancelled unless its agent finishes on its own.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Sequence

import msgspec

from carnet.core.call import Call
from carnet.core.events import Done, Event, Failed, Usage, read_events
from carnet.core.turn import Turn
from carnet.errors import Cancelled, CarnetError, Internal, OutcomeUnknown, ShuttingDown
from carnet.ports.agent import Router, Target
from carnet.ports.clock import Clock, Ids
from carnet.ports.turns import Fenced, Turns
from carnet.runtime.closing import closing
from carnet.runtime.live import Live
from carnet.runtime.recording import Recording

logger = logging.getLogger("carnet.runtime")

STOP_SECONDS = 5.0  # how long a cancelled turn may take to be recorded
POLL_SECONDS = 0.1  # how often a turn that runs in another process is looked at


class Execution:
    """A turn that is running. It can be stopped while its agent speaks, not in its recording."""

    __slots__ = ("listening", "live", "run", "stopped", "task")

    task: asyncio.Task[None]

    def __init__(self, live: Live, run: str) -> None:
        """The task is set when it has been made."""
        self.live = live
        self.run = run
        self.listening = False
        self.stopped = False

    def stop(self) -> None:
        """Cancel the agent, or keep it from being started."""
        if not self.stopped:
            self.stopped = True
            if self.listening:
                self.task.cancel()


async def _stop(executions: Sequence[Execution]) -> None:
    for running in executions:
        running.stop()
    if executions:
        await asyncio.wait([running.task for running in executions], timeout=STOP_SECONDS)


class Journaled:
    """Runs turns, shows them to readers, and replays them."""

    def __init__(
        self, *, router: Router, turns: Turns, clock: Clock, ids: Ids, currency: str
    ) -> None:
        """`router` gives the agent that answers; `turns` keeps what it said."""
        self._router = router
        self._turns = turns
        self._clock = clock
        self._ids = ids
        self._currency = currency
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
            return running.live.read(heartbeat)
        if call.known:
            return self._replay(call)
        return self._start(call).read(heartbeat)

    async def cancel(self, run: str) -> int:
        """Cancel what is running in a run here."""
        found = [running for running in self._running.values() if running.run == run]
        await _stop(found)
        return len(found)

    async def drain(self, seconds: float) -> int:
        """Wait for what is running; end what has not ended by then. The number that was ended."""
        self._draining = True
        if self._running:
            tasks = [running.task for running in self._running.values()]
            await asyncio.wait(tasks, timeout=seconds)
        late = list(self._running.values())
        await _stop(late)
        return len(late)

    def _start(self, call: Call) -> Live:
        n = call.record.n
        target = self._router.find(call.agent)

        def abandoned() -> None:
            if target.on_disconnect == "cancel":
                running.stop()

        live = Live(abandoned)
        running = self._running[n] = Execution(live, call.carnet.run)
        running.task = asyncio.get_running_loop().create_task(self._run(running, call, target))
        return live

    async def _run(self, running: "Execution", call: Call, target: Target) -> None:
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
            if not live.ended:  # the finish itself failed: nobody may wait for ever
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
            if task is not None:
                task.uncancel()
            return self._cancelled()
        except CarnetError as error:
            logger.info("call failed", extra=self._fields(call, error.code, str(error)))
            return Failed.of(error)
        except Exception as error:  # an agent's fault must end in a terminal event
            internal = Internal(str(error), incident=self._ids.uuid())
            fields = self._fields(call, internal.code, str(error))
            logger.exception(
                "agent raised", extra={**fields, "incident": internal.facts["incident"]}
            )
            return Failed.of(internal)
        return Done()  # a stream that simply ends is complete

    def _cancelled(self) -> Failed:
        return Failed.of(ShuttingDown() if self._draining else Cancelled())

    async def _finish(
        self, recording: Recording, live: Live, call: Call, end: Done | Failed
    ) -> None:
        try:
            batch, record = await recording.finish(end, now=self._clock.wall_us())
        except Fenced:
            logger.warning("turn taken over", extra=self._fields(call, "fenced", ""))
            return
        except CarnetError as error:
            logger.exception("turn not recorded", extra=self._fields(call, error.code, str(error)))
            live.publish((Usage(), Failed.of(error)), last=True)
            return
        live.publish((*batch, self._usage(call, record), end), last=True)

    def _usage(self, call: Call, record: Turn) -> Usage:
        # A forwarded credential of our own issue is billed by us; the forwarder owes nothing.
        ours = call.payer.by_forwarding and call.payer.own_issue
        return Usage(
            record.tokens_in,
            record.tokens_out,
            0 if ours else record.cost,
            0 if ours else record.run_cost,
            self._currency,
        )

    async def _replay(self, call: Call) -> AsyncGenerator[Sequence[Event], None]:
        record = call.record
        while record.state in {"running", "queued"}:  # in another process
            await asyncio.sleep(POLL_SECONDS)
            record = await self._turns.reload(record)
        events: list[Event] = []
        for data in await self._turns.events(record):
            events += read_events(data)
        if events and isinstance(events[-1], Done | Failed):
            yield (*events[:-1], self._usage(call, record), events[-1])
        else:  # the process that ran it died; the caller may send it again
            yield (*events, Usage(), Failed.of(OutcomeUnknown()))

    @staticmethod
    def _fields(call: Call, code: str, detail: str) -> dict[str, object]:
        carnet = call.carnet
        return {
            "run": carnet.run,
            "turn": carnet.turn,
            "agent": call.agent,
            "code": code,
            "detail": detail,
        }
