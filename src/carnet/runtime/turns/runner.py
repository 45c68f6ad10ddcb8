"""Runs agents: records what they say before anybody reads it, and can say it again.

Law 1. Claimed turns run once, whoever reads; repeats are answered from the record.
Law 2. A stream's events are durable before they are shown; a call without a stream is written
       once, with its end.
Law 3. The end (events, state, ledger) is one transaction; then readers see the terminal event.
Law 4. A turn that nobody reads any more, here or in another process, is cancelled unless its agent
       finishes on its own, or it is a task. While its end is being recorded nothing can cancel it.
Law 5. No turn stays running: one whose end could not be recorded is ended as unknown as soon as
       the store can be written again.
Law 6. A turn that ends leaves nothing waiting that was called in it. One for which its caller has
       no place left does not wait: it fails.
Law 7. A task needs no reader, and is never lost: one whose end could not be recorded, or for which
       no time is left when the gateway stops, waits again.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncGenerator, Collection, Coroutine, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from carnet.core.call import Call
from carnet.core.chain.turn import Turn
from carnet.core.messages.events import End, Event, Failed, Usage, Waiting
from carnet.core.messages.interrupt import agreed
from carnet.errors import (
    Cancelled,
    CarnetError,
    InProgress,
    Internal,
    OutcomeUnknown,
    ShuttingDown,
    TooManyWaiting,
)
from carnet.ports.calls.admission import CameBack, HasEnded, never
from carnet.ports.calls.tasks import Tasks
from carnet.ports.calls.turns import Fenced, Tell, Turns
from carnet.ports.world.clock import Clock, Ids
from carnet.ports.world.cluster import Cluster
from carnet.runtime.stream import closing
from carnet.runtime.traces.spans import EndedTurn
from carnet.runtime.turns.execution import (
    STOP_SECONDS,
    ByRule,
    Execution,
    as_before,
    ask_rules,
    listen,
    log_fields,
    note_waits,
    stop_all,
    usage_of,
    waits_or_fails,
)
from carnet.runtime.turns.recording import Recording
from carnet.runtime.turns.replay import Replay, allowed
from carnet.runtime.turns.unfinished import EndsWaiting, end_below, end_waiting, settle
from carnet.runtime.webhooks.callbacks import CallbackDeliveries
from carnet.wire.dialects import DIALECTS
from carnet.wire.dialects.dialect import GatewayFacts

logger = logging.getLogger("carnet.runtime")

LEAVE_SECONDS = 0.25  # how often a turn without a reader here is asked for readers elsewhere
_ENDED = frozenset({"done", "failed", "unknown"})


class TurnRunner:
    """Runs turns, and shows them to their readers."""

    def __init__(
        self,
        *,
        turns: Turns,
        clock: Clock,
        ids: Ids,
        currency: str,
        worker: str,
        cluster: Cluster | None = None,
        tasks: Tasks | None = None,
        deliveries: CallbackDeliveries | None = None,
    ) -> None:
        """`turns` keeps what the agents say, `worker` is us.

        `cluster` reaches other processes on the same store, where there may be any; `tasks` lets
        those wait again that did not end. `deliveries` tells of the end of calls, by webhooks.
        """
        self._turns = turns
        self._clock = clock
        self._ids = ids
        self._currency = currency
        self._cluster = cluster
        self._tasks = tasks
        gateway = GatewayFacts(domain="", currency=currency)
        self._deliveries = deliveries or CallbackDeliveries(DIALECTS, gateway, ids.uuid)
        self._running: dict[int, Execution] = {}
        self._replay = Replay(
            turns=turns,
            clock=clock,
            ids=ids,
            currency=currency,
            worker=worker,
            cluster=cluster,
            here=self._here,
        )
        self._on_left = self._leave  # one for all that run
        self._draining = False
        self.by_rule: ByRule | None = None  # answers what a call asks for, if it may
        self.ends_waiting: EndsWaiting | None = None  # where turns wait for answers
        self.has_ended: HasEnded = never  # whether what let a call in was revoked since
        self.ended: deque[EndedTurn] = deque(maxlen=0)  # to be counted, if somebody does

    @property
    def notify(self) -> Sequence[str]:
        """Where people are told what calls ask for."""
        return self._deliveries.notify

    @notify.setter
    def notify(self, urls: Sequence[str]) -> None:
        self._deliveries.notify = urls

    @property
    def running(self) -> int:
        """How many turns are running here."""
        return len(self._running)

    def batches(
        self, call: Call, /, heartbeat: float | None = None
    ) -> AsyncGenerator[Sequence[Event], None]:
        """Committed groups of events; the last holds one Usage and the terminal event."""
        running = self._here(call.record)
        if running is not None:
            return self._allowed(call, self._attach(running, heartbeat))
        if call.known:
            batches = self._replay.read(call, heartbeat)
            return batches if call.record.state in _ENDED else self._allowed(call, batches)
        return self._start(call).broadcast.read(heartbeat)

    def whole(self, call: Call, /) -> Coroutine[Any, Any, Sequence[Event]]:
        """The same events when all of them are there, for a caller that wants no stream."""
        if call.known or call.record.n in self._running:
            return self._gathered(call)
        return self._start(call).broadcast.whole()

    async def size(self, call: Call, /) -> int:
        """How many bytes were recorded of a turn that is known."""
        return await self._replay.size(call.record)

    async def _gathered(self, call: Call) -> Sequence[Event]:
        async with closing(self.batches(call)) as batches:
            return [event async for batch in batches for event in batch]

    async def run(self, call: Call, /, end: Failed | None = None) -> End | None:
        """Run a task without a reader, or end it with `end` at once.

        How it ended, once that is recorded; None if it waits again or somebody else has it.
        """
        running = self._start(call, end)
        await asyncio.wait([running.task])
        return running.end

    def _here(self, record: Turn) -> Execution | None:
        """The execution of this attempt; one that was taken over may not have noticed yet."""
        running = self._running.get(record.n)
        return running if running is not None and running.fence == record.fence else None

    def _attach(
        self, running: Execution, heartbeat: float | None
    ) -> AsyncGenerator[Sequence[Event], None]:
        if running.stopped and not running.broadcast.ended:
            raise InProgress(retry_after=1)  # it is being cancelled; then it may run again
        return running.broadcast.read(heartbeat)

    def _allowed(
        self, call: Call, batches: AsyncGenerator[Sequence[Event], None]
    ) -> AsyncGenerator[Sequence[Event], None]:
        return allowed(call, batches, has_ended=self.has_ended, clock=self._clock)

    async def cancel(self, turns: Collection[int]) -> int:
        """Cancel those of these turns that are running, here or elsewhere, or wait."""
        found = [self._running[n] for n in turns if n in self._running]
        away = [n for n in turns if n not in self._running]
        await stop_all(found)
        count = len(found)
        if self._tasks is not None:
            now = self._clock.wall_us()
            count += await end_waiting(self._tasks, away, now, self.ends_waiting)
        if self._cluster is None or not away:
            return count
        return count + await self._cluster.cancel(away, seconds=STOP_SECONDS)

    def stop(self, turns: Collection[int]) -> None:
        """Tell those of these turns to stop that are running here."""
        for n in turns:
            if n in self._running:
                self._running[n].stop()

    def came_back(self, returned: CameBack | None) -> None:
        """Note a call that was refused for its chain in the call of ours that it was made in."""
        if returned is None:
            return
        for running in self._running.values():
            if running.has_made(returned):
                running.note(returned)
                return

    def stop_ended(self) -> None:
        """Stop what runs here and was let in by something that has ended (R54)."""
        for running in list(self._running.values()):
            if not running.revoked and self.has_ended(running.call):
                running.revoked = True
                running.stop()

    async def outlast(self) -> None:
        """Wait for what is running now, and for nothing that begins later."""
        tasks = [running.task for running in self._running.values()]
        if tasks:
            await asyncio.wait(tasks)

    async def drain(self, seconds: float) -> int:
        """Wait for what is running; end what has not ended by then. The number that was ended."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._running:  # a call that was admitted just now may still begin
                    await asyncio.wait([running.task for running in self._running.values()])
        self._draining = True
        late = list(self._running.values())
        for running in late:
            running.let_go = running.is_task
        await stop_all(late)
        return len(late)

    def _start(self, call: Call, end: Failed | None = None) -> Execution:
        ends = call.target.on_disconnect == "cancel" and not call.at_once
        running = Execution(call, self._on_left if ends else None)
        self._running[call.record.n] = running
        run = self._run if call.record.fence == call.record.attempt == 1 else self._run_on
        running.task = asyncio.get_running_loop().create_task(run(running, call, end))
        return running

    def _leave(self, running: Execution) -> None:
        if self._cluster is None:
            running.stop()
        elif running.leaving is None:
            running.leaving = asyncio.create_task(self._stop_if_alone(running, self._cluster))

    async def _stop_if_alone(self, running: Execution, cluster: Cluster) -> None:
        """Stop a turn that has no reader here, once it has none elsewhere."""
        while True:
            await asyncio.sleep(LEAVE_SECONDS)  # who lost its connection may come again elsewhere
            if running.broadcast.readers or running.broadcast.ended:
                break
            try:
                is_read = await cluster.are_reading(running.record)
            except CarnetError:  # nobody can read it elsewhere either
                is_read = False
            if not is_read and not running.broadcast.readers:
                running.stop()
                break
        running.leaving = None

    async def _run(self, running: Execution, call: Call, given: Failed | None) -> None:
        broadcast = running.broadcast
        recording = Recording(
            turns=self._turns,
            call=call,
            broadcast=broadcast,
            on_broken=running.stop,
            deliveries=self._deliveries,
        )
        running.recording = recording
        try:
            running.listening = True
            end: End
            if given is not None or running.stopped:
                end = given or self._cancelled()
            else:
                end = await listen(call, recording, self._ids, self._cancelled)
            running.listening = False
            if running.revoked:  # whatever its agent made of being told to stop
                end = Failed.of(Cancelled())
            if running.let_go and isinstance(end, Failed):
                recording.close()
                await self._settle(call)
            else:
                running.end = await self._finish(running, recording, call, end)
        finally:
            running.recording = None  # which knows how to stop it: neither would be let go of
            n = call.record.n
            if n in self._running and self._running[n] is running:  # else a later attempt is there
                del self._running[n]
            if not broadcast.ended:  # nobody may wait for ever
                broadcast.publish((Usage(), Failed.of(OutcomeUnknown())), last=True)

    async def _run_on(self, running: Execution, call: Call, given: Failed | None) -> None:
        """Run a turn that has asked, perhaps, and was answered: with what it was answered."""
        try:
            asked = await self._turns.interrupts(call.record)
            before = agreed(call.resolved)  # where a rule has answered, and it runs on at once
            resolved = tuple([one.answered for one in asked if one.outcome])
            call = replace(call, resolved=resolved)
            if call.record.fence != call.record.attempt:  # it has waited
                call = as_before(call, await self._turns.calls_out(call.record))
            if call.allowance is not None and call.document is not None and not call.is_queued:
                # The document has room for what was agreed to, which is no other call's to spend;
                # what is left of a budget that was kept with the call has none.
                call.allowance.take_more(agreed(call.resolved) - before)
        except CarnetError as error:
            given = given or Failed.of(error)
        await self._run(running, call, given)

    def _cancelled(self) -> Failed:
        return Failed.of(ShuttingDown() if self._draining else Cancelled())

    async def _finish(
        self, running: Execution, recording: Recording, call: Call, end: End
    ) -> End | None:
        """Record the end and show it; how it ended, None if that is not known here."""
        broadcast = running.broadcast
        if type(end) is Waiting:
            now = self._clock.wall_us()
            end = waits_or_fails(end, call.record, self._ids, now, self._currency)
            note_waits(self._running.values(), call)
        try:
            batch, record = await recording.finish(end, now=self._clock.wall_us())
        except Fenced:
            logger.warning("turn taken over", extra=log_fields(call, "fenced", ""))
            return None
        except TooManyWaiting as full:  # nothing of it was written
            return await self._finish(running, recording, call, Failed.of(full))
        except Exception as error:  # whatever it is, the turn must not stay running
            failure = error if isinstance(error, CarnetError) else Internal(str(error))
            logger.exception("turn not recorded", extra=log_fields(call, failure.code, str(error)))
            broadcast.publish((Usage(), Failed.of(failure)), last=True)
            await self._settle(call)
            return None
        self.ended += ((call.carnet, record, recording.outbound),)  # no function is called
        if type(end) is Waiting:
            asked = await self._ask_rules(running, call, record, end)
            if asked is None:
                return None
            end = asked
        broadcast.publish((*batch, usage_of(call, record, batch, self._currency), end), last=True)
        if recording.has_below and type(end) is not Waiting:
            await end_below(self.ends_waiting, call)
        return end

    async def _ask_rules(
        self, running: Execution, call: Call, record: Turn, end: Waiting
    ) -> Waiting | None:
        """What nobody has answered for the future; None if all was, and it ran on."""
        if self.by_rule is None:
            return end
        if call.is_queued:  # a worker runs it on
            self._running.pop(record.n, None)
        onward, end = await ask_rules(self.by_rule, self._turns, call, record, end)
        if onward is None:
            return end
        if call.is_queued:
            busy = (Usage(), Failed.of(InProgress(retry_after=1)))
            running.broadcast.publish(busy, last=True)
            return None
        again = self._start(onward)
        if running.stopped or self._draining:
            again.stop()
        running.listening = True  # those who read it may leave
        await again.broadcast.retell(running.broadcast)
        running.listening = False
        return None

    def tell(self, call: Call, end: Failed) -> Tell:
        """What tells of the end of a task that nobody runs any more, by its record."""
        used = replace(usage_of(call, call.record, (), self._currency), run_cost=None)
        return partial(self._deliveries, call, (), end, used)

    async def _settle(self, call: Call) -> None:
        await settle(
            self._turns, call, self._clock, is_over=lambda: self._draining, tasks=self._tasks
        )
