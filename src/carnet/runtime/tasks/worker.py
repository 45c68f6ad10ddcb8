"""The worker: takes tasks that wait and runs them, as many at once as it may.

Every gateway has one. Those on the same store share the work: a task is leased by one of them, and
waits again when that one is gone.

Law 1. A task that is accepted here is looked for at once, one accepted elsewhere within a second.
Law 2. What runs at once is bounded, in all and for each agent: a long queue for one agent holds up
       no other. A place that is free goes to whoever has the fewest tasks that run (A88).
Law 3. A task whose end was asked for is stopped within a second, and one that waits is ended
       without being run. It ends as any other does.
Law 4. Somebody waits for a call and nobody for a task: while calls are open, tasks are begun in
       small steps.
Law 5. A task whose end was lost `MOST_LOST` times ends as failed and is not run again: something
       about it ends processes. That a gateway was stopped and let it go does not count.
Law 6. A task whose agent is not configured here waits: another gateway may have it, or this one
       again. The log says so. One whose agent is elsewhere is a call out that waits: it is made
       here, and takes no place of those that run here. Of one tenant few are awaited at a time.
"""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from carnet.core.call import Ask, Call
from carnet.core.chain.carnet import Carnet
from carnet.core.messages.events import Failed, state_of
from carnet.core.people.address import AGENT, is_elsewhere
from carnet.core.people.identity import Actor, Caller, Payer, Standing
from carnet.core.people.proof import SECOND_US
from carnet.core.sealed_call import SealedCall, read_sealed_call
from carnet.errors import Cancelled, CarnetError, Internal, OutcomeUnknown
from carnet.ports.calls.agent import Router, Target
from carnet.ports.calls.tasks import AwayRoom, StoredTask, Tasks
from carnet.ports.calls.turns import Tell
from carnet.ports.world.clock import Clock
from carnet.runtime.turns.execution import absent
from carnet.runtime.turns.runner import TurnRunner
from carnet.telemetry import CallNote, Metrics, note_call

logger = logging.getLogger("carnet.tasks")

LOOK_SECONDS: Final = 1.0
REST_SECONDS: Final = 0.02  # between two looks: what comes or ends meanwhile is taken together
BUSY_SECONDS: Final = 0.25  # the same while calls are being answered
ABSENT_SECONDS: Final = 60.0  # between two looks for tasks whose agent is not here
MOST_LOST: Final = 5
MOST_AWAY: Final = 64  # tasks that are awaited from elsewhere at a time
AWAY_EACH: Final = 16  # of them those of one tenant
SHOWN: Final = 8  # characters of an id, in the log: who knows all of it may poll


class TaskWorker:
    """Runs the tasks of one gateway."""

    def __init__(
        self,
        *,
        tasks: Tasks,
        journal: TurnRunner,
        router: Router,
        clock: Clock,
        most: int,
        per_agent: int,
        on_start: Callable[[], None] = lambda: None,
        is_busy: Callable[[], bool] = lambda: False,
    ) -> None:
        """`most` may run at once, of one agent `per_agent`; `on_start` is told when it begins.

        `is_busy` tells whether calls are being answered that somebody waits for.
        """
        self._tasks = tasks
        self._journal = journal
        self._router = router
        self._clock = clock
        self._most = most
        self._per_agent = per_agent
        self._on_start = on_start
        self._is_busy = is_busy
        self._on_end: Callable[[], None] = lambda: None
        # What has mentions relayed in the answers of conversations that waited for somebody.
        self.relay: Callable[[Call], Call] | None = None
        self._running: dict[tuple[int, int], asyncio.Task[None]] = {}  # by turn and fence
        self._agents: Counter[str] = Counter()
        self._tenants: Counter[str] = Counter()  # by the quota of whoever pays
        self._woken = asyncio.Event()
        self._working: asyncio.Task[None] | None = None
        self._stopping = False
        self._is_unsure = True  # something may be ours although nobody said so
        self._metrics: Metrics | None = None
        self._counted = 0.0
        self._missed: float | None = None  # when agents were looked for that are not here
        self._absent: set[str] = set()
        self._away: Counter[str] = Counter()  # as `_tenants`, of tasks whose agent is elsewhere
        self._unknown: list[str] = []  # agents elsewhere that cannot be called at present
        self.waiting = 0  # a second ago at the most

    @property
    def running(self) -> int:
        """How many tasks are running here."""
        return len(self._running)

    def connect(self, *, metrics: Metrics, on_end: Callable[[], None]) -> None:
        """Count ends there, and tell `on_end` when a task with a callback has ended."""
        self._metrics = metrics
        self._on_end = on_end

    def take(self, router: Router, *, most: int, per_agent: int) -> None:
        """Find agents there from now on, within these bounds; what is running goes on."""
        self._router, self._most, self._per_agent = router, most, per_agent
        self._missed, self._is_unsure = None, True
        self._woken.set()

    def start(self) -> None:
        """Begin to take tasks."""
        self._on_start()
        self._woken.set()
        self._working = asyncio.get_running_loop().create_task(self._work(), name="carnet-tasks")

    def wake(self) -> None:
        """Look at once: a task was accepted or cancelled."""
        self._woken.set()

    async def stop(self) -> None:
        """Take no more tasks; what is running goes on."""
        self._stopping = True
        self._woken.set()
        if self._working is not None:
            await asyncio.wait([self._working])

    async def close(self) -> None:
        """Wait until what is known of the last tasks is noted; they have ended or were let go."""
        await self.stop()
        if self._running:
            await asyncio.wait(list(self._running.values()), timeout=LOOK_SECONDS)

    async def _work(self) -> None:
        while not self._stopping:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._woken.wait()
            self._woken.clear()
            if self._stopping:
                return
            try:
                await self._look()
            except CarnetError as error:  # readiness shows it; the next look may be well
                self._is_unsure = True
                logger.warning("no tasks are taken", extra={"detail": str(error)})
            except Exception:  # a task of ours has no caller
                self._is_unsure = True
                logger.exception("no tasks are taken")
            await asyncio.sleep(BUSY_SECONDS if self._is_busy() else REST_SECONDS)

    async def _look(self) -> None:
        if self._running:
            asked = set(await self._tasks.cancelled())
            self._journal.stop([n for n, _ in self._running if n in asked])
        await self._count()
        if self.waiting:
            await self._miss()
        left = self._per_agent if self._is_busy() else self._most  # to begin in this look
        while (self.waiting or self._is_unsure) and left > 0 and not self._stopping:
            room = max(0, min(left, self._most - self._tenants.total()))
            leased = await self._tasks.lease(
                self._wanted(room),
                most=room,
                running=self._tenants,
                elsewhere=self._elsewhere(left),
            )
            self._is_unsure = False
            self.waiting = max(0, self.waiting - len(leased))
            left -= len(leased)
            for task in leased:
                self._begin(task)
            if not leased:
                return
        if left <= 0:  # enough for once
            self._woken.set()

    async def _count(self) -> None:
        """Find out how many wait: when none is known of, and now and then."""
        now = asyncio.get_running_loop().time()
        if not self.waiting or now - self._counted >= LOOK_SECONDS:
            self._counted = now
            self.waiting = await self._tasks.waiting()
            if self.waiting:
                waiting = await self._tasks.waiting_for()
                self._unknown = [n for n in waiting if is_elsewhere(n) and not self._is_known(n)]

    def _is_known(self, name: str) -> bool:
        try:
            self._router.find(name)
        except CarnetError:
            return False
        return True

    def _elsewhere(self, left: int) -> AwayRoom:
        """What may begin of the tasks whose agents are elsewhere."""
        return AwayRoom(
            most=min(left, MOST_AWAY - self._away.total()),
            each=AWAY_EACH,
            running=self._away,
            without=self._unknown,
            is_known=self._is_known,
        )

    async def _miss(self) -> None:
        """Say which agents are not here although tasks wait for them; of each once."""
        now = asyncio.get_running_loop().time()
        if self._missed is not None and now - self._missed < ABSENT_SECONDS:
            return
        self._missed = now
        here = {target.name for target in self._router.local()}
        waiting = await self._tasks.waiting_for()
        absent = {
            n for n in waiting if n not in here and not (is_elsewhere(n) and self._is_known(n))
        }
        for agent in sorted(absent - self._absent):
            logger.warning("tasks wait for an agent that is not here", extra={"agent": agent})
        self._absent = absent

    def _wanted(self, room: int) -> list[tuple[str, int]]:
        """How many tasks of each agent may begin now."""
        free = [(target.name, min(room, self._free(target))) for target in self._router.local()]
        return [(name, count) for name, count in free if count > 0]

    def _free(self, target: Target) -> int:
        """How many more tasks of an agent may begin: what it cannot answer at once waits here."""
        most = self._per_agent
        if target.at_once is not None:
            most = min(most, target.at_once)
        return most - self._agents[target.name]

    def _begin(self, task: StoredTask) -> None:
        turn = task.turn
        self._agents[turn.agent] += 1
        self._tenants_of(task)[task.payer_quota] += 1
        running = asyncio.get_running_loop().create_task(self._run(task))
        self._running[turn.n, turn.fence] = running

    def _tenants_of(self, task: StoredTask) -> Counter[str]:
        return self._away if is_elsewhere(task.turn.agent) else self._tenants

    def _leave(self, task: StoredTask) -> None:
        tenants, tenant = self._tenants_of(task), task.payer_quota
        tenants[tenant] -= 1
        if not tenants[tenant]:
            del tenants[tenant]

    async def _run(self, task: StoredTask) -> None:
        began = self._clock.monotonic()
        call, state = _nameless(task), "released"
        try:
            call, given = self._prepared(task)
            end = await self._journal.run(call, given)
            if end is not None:
                state = end.code if isinstance(end, Failed) else state_of(end)
        except Exception:  # a task of ours has no caller; nobody else would ever run it
            logger.exception("a task cannot be run", extra=_names(task))
            with contextlib.suppress(CarnetError):
                await self._tasks.release(task.turn, self._clock.wall_us(), lost=True)
        finally:
            del self._running[task.turn.n, task.turn.fence]
            self._agents[task.turn.agent] -= 1
            self._leave(task)
            self._woken.set()
        if task.callback is not None:
            self._on_end()
        self._note(task, call, state, self._clock.monotonic() - began)

    def expired(self, task: StoredTask, end: Failed) -> Tell:
        """What tells of the end of a task that waited for an answer longer than it may."""
        return self._journal.tell(self._read(task)[0], end)

    def _prepared(self, task: StoredTask) -> tuple[Call, Failed | None]:
        """The call of a task, and its end where it is not to be run."""
        call, end = self._read(task)
        if end is not None:
            return call, end
        if task.cancelled is not None or self._journal.has_ended(call):
            return call, Failed.of(Cancelled())
        if task.lost >= MOST_LOST:
            return call, Failed.of(OutcomeUnknown())
        if task.turn.attempt > 1:
            logger.info("task is taken up again", extra={**_names(task), "lost": task.lost})
        return call, None

    def _read(self, task: StoredTask) -> tuple[Call, Failed | None]:
        """The call that was kept, or one in its place and why."""
        try:
            sealed_call = read_sealed_call(task.call_bytes)
        except Internal as error:
            logger.error("a task cannot be read", extra={**_names(task), "detail": str(error)})  # noqa: TRY400
            return _nameless(task), Failed.of(error)
        target = self._target(task)
        deadline = self._deadline(target, sealed_call)
        call = sealed_call.call(target, task.turn, task=task.id, deadline=deadline)
        if task.reserve is not None:  # with what was agreed to since it was sealed
            call = replace(call, reserve=task.reserve)
        if call.ask.thread is not None and self.relay is not None:
            call = self.relay(call)
        return call, None

    def _target(self, task: StoredTask) -> Target:
        try:
            return self._router.find(task.turn.agent)
        except CarnetError:  # the agent was taken out of the configuration meanwhile
            return absent(task.turn.agent)

    def _deadline(self, target: Target, sealed_call: SealedCall) -> float | None:
        """When it must have ended: the caller's word, and the time that its agent may take."""
        now = self._clock.steady_us() / SECOND_US
        deadlines: list[float] = []
        if sealed_call.deadline is not None:
            deadlines.append(sealed_call.deadline - self._clock.wall_us() / SECOND_US + now)
        if target.seconds is not None:
            deadlines.append(now + target.seconds)
        return min(deadlines, default=None)

    def _note(self, task: StoredTask, call: Call, state: str, seconds: float) -> None:
        if self._metrics is not None:
            self._metrics.tasks.labels(task.turn.agent, state).inc()
        trace = call.carnet.trace
        note_call(
            CallNote(
                at=self._clock.wall_us(),
                correlation_id=trace.trace_id if trace else call.carnet.run,
                message="task waits again" if state == "released" else "task ended",
                run=call.carnet.run,
                turn=call.carnet.turn,
                client=None,
                agent=call.agent,
                actor=call.caller.actor.name,
                depth=call.carnet.depth,
                state=state,
                seconds=round(seconds, 6),
                attempt=task.turn.attempt,
                task=task.id[:SHOWN],
            )
        )


def _nameless(task: StoredTask) -> Call:
    """A call that can be ended and not be run: what was asked cannot be read any more."""
    turn, is_signed = task.turn, task.sender.startswith(AGENT)
    return Call(
        agent=turn.agent,
        ask=Ask(messages=(), skill=task.skill),
        carnet=Carnet(run=turn.run, turn=turn.turn, depth=turn.depth, parent_turn=turn.parent_turn),
        caller=Caller(
            actor=Actor(name=turn.actor, how="signature" if is_signed else "token"),
            scopes=frozenset(),
            standing=Standing(sender=task.sender) if is_signed else None,
        ),
        payer=Payer(account=turn.payer, quota=""),
        dialect=turn.dialect or "",
        target=absent(turn.agent),
        record=turn,
        task=task.id,
        callback=task.callback,
        task_quota=task.quota,
    )


def _names(task: StoredTask) -> dict[str, object]:
    turn = task.turn
    names = {"run": turn.run, "turn": turn.turn, "agent": turn.agent}
    return {**names, "task": task.id[:SHOWN], "attempt": turn.attempt}
