"""The scheduler: writes down the ticks that are due, and has what is due begun.

Every gateway has one. Those on the same store share the work: a tick is written down by one of
them, and what was written down is held by one of them, until that one is gone.

Law 1. What is due here is looked for each second, what a hook has taken at once.
Law 2. What is begun at once is bounded, in all and for each person: who has much due holds up
       nobody else's.
Law 3. A lease is renewed while an answer is given. Who lost it stops.
Law 4. What cannot be begun for a reason that passes is tried again, each time later, and given up
       after `MOST_ATTEMPTS`; what cannot for another reason is given up at once.
Law 5. The owner is told when a conversation ends, fails or waits; of one that waits also its end.
Law 6. What runs with a token that has ended begins nothing: its trigger rests, what was to begin is
       given up, and the owner is told once.
Law 7. A schedule whose time cannot be told any more harms no other.
"""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from datetime import tzinfo
from typing import Any, Final

from carnet.core.people.proof import SECOND_US
from carnet.core.triggers.cron import read_cron
from carnet.core.triggers.ticks import due_ticks
from carnet.errors import CarnetError, Deleted, Internal
from carnet.faults import point
from carnet.ports.calls.triggers import (
    EndReason,
    Firing,
    FiringEnd,
    Firings,
    Hook,
    Notices,
    Resting,
    Room,
    Schedule,
    Schedules,
    Starter,
    TokenEnds,
    TriggerKind,
)
from carnet.ports.world.clock import Clock

logger = logging.getLogger("carnet.triggers")

LOOK_SECONDS: Final = 1.0
LEASE_SECONDS: Final = 30
MOST_DUE: Final = 100  # schedules that are looked at together
AT_ONCE: Final = 16  # conversations that one gateway is having begun
EACH: Final = 4  # of them those of one person
MOST_ATTEMPTS: Final = 8
WAIT_SECONDS: Final = 30  # between two looks at what waits for somebody
FIRST_PAUSE_SECONDS: Final = 2
MOST_PAUSE_SECONDS: Final = 600

FindZone = Callable[[str], tzinfo]  # raises InvalidRequest


class Scheduler:
    """Has due what is due."""

    def __init__(
        self,
        *,
        schedules: Schedules,
        firings: Firings,
        find_zone: FindZone,
        clock: Clock,
        worker: str,
        most: int,
        notices: Notices,
        ends: TokenEnds,
    ) -> None:
        """`worker` is us; `most` is how much of one person's may be still to begin.

        `notices` tell people what became of it; `ends` says whose tokens have ended.
        """
        self._notices = notices
        self.ends: Final = ends
        self.on_notice: Callable[[], None] = lambda: None  # is told when there are some
        self.on_drop: Callable[[float], None] = lambda _: None  # how many ticks begin nothing
        self._schedules = schedules
        self._firings = firings
        self._find_zone = find_zone
        self._clock = clock
        self._worker = worker
        self._most = most
        self._start: Starter | None = None  # until it is known, nothing is begun
        self._woken = asyncio.Event()
        self._ending = False
        self._looking: asyncio.Task[None] | None = None
        self._begun: dict[asyncio.Task[None], int] = {}  # and whose it is

    def take(self, start: Starter, *, most: int) -> None:
        """Have conversations begun by this from now on, within this bound."""
        self._start, self._most = start, most

    def start(self) -> None:
        """Look for what is due until it is drained."""
        self._looking = asyncio.create_task(self._keep_looking(), name="carnet-triggers")

    def wake(self) -> None:
        """Look at once: something was written down."""
        self._woken.set()

    async def drain(self) -> None:
        """Begin nothing new; what is being answered goes on."""
        self._ending = True
        self._woken.set()
        if self._looking is not None:
            await asyncio.wait([self._looking])

    async def close(self) -> None:
        """End at once. What has not ended is begun again by whoever comes next."""
        self._ending = True
        tasks = [task for task in (self._looking, *self._begun) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def settled(self) -> None:
        """Wait until nothing is being begun."""
        while self._begun:
            await asyncio.wait(list(self._begun))

    # ------------------------------------------------------------------ looking

    async def _keep_looking(self) -> None:
        while not self._ending:
            self._woken.clear()
            try:
                await self.look()
            except CarnetError as error:  # the next look may succeed
                logger.warning("what is due could not be read", extra={"detail": str(error)})
            except Exception:  # a task has no caller; the next look may be well
                logger.exception("what is due could not be read")
            if not self._ending:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._woken.wait(), LOOK_SECONDS)

    async def look(self) -> int:
        """Write down the ticks that are due, and begin what is; how much that is."""
        now = self._clock.wall_us()
        for schedule in await self._schedules.due(now, limit=MOST_DUE):
            await self._tick(schedule, now)
        room = AT_ONCE - len(self._begun)
        if self._start is None or room <= 0:
            return 0
        until = now + LEASE_SECONDS * SECOND_US
        leased = await self._firings.lease(
            self._worker,
            until=until,
            limit=room,
            room=Room(EACH, Counter(self._begun.values())),
            now=now,
        )
        for firing in leased:
            self._begin(firing, self._start)
        return len(leased)

    async def _tick(self, schedule: Schedule, now: int) -> None:
        first = schedule.next
        if (reason := await self.ends(schedule.token)) is not None:
            await self.rest("schedule", schedule, reason)
            return
        try:
            cron, zone = read_cron(schedule.cron), self._find_zone(schedule.zone)
        except CarnetError as error:
            detail = f"schedule {schedule.n}: {error}"
            logger.warning("a schedule cannot be understood", extra={"detail": detail})
            await self._schedules.own.pause(schedule.person, schedule.name, now)
            return
        if first is None:
            return
        seconds = (first // SECOND_US, now // SECOND_US)
        due = due_ticks(cron, zone, schedule.missed, first=seconds[0], now=seconds[1])
        dropped = await self._schedules.tick(
            schedule,
            due,
            most=self._most,
            now=now,
            notices=lambda tick: self._notices.dropped(schedule, tick),
        )
        if dropped is not None and due.has_missed:
            detail = f"schedule {schedule.n}: missed = {schedule.missed}"
            logger.info("ticks were missed", extra={"detail": detail})
        if dropped:
            self.on_drop(dropped)
            self.on_notice()
            extra = {"detail": f"schedule {schedule.n}", "count": dropped}
            logger.warning("ticks begin nothing: too much is to begin", extra=extra)

    async def rest(
        self, kind: TriggerKind, trigger: Schedule | Hook | Firing, reason: EndReason, /
    ) -> None:
        """Let one rest whose token has ended, and tell its owner."""
        resting = Resting(
            kind=kind,
            name=trigger.name,
            person=trigger.person,
            token=trigger.token,
            agent=trigger.agent,
        )
        notices = self._notices.resting(resting, reason)
        await self._firings.rest(resting, notices, now=self._clock.wall_us())
        self.on_notice()

    # ------------------------------------------------------------------ beginning

    def _begin(self, firing: Firing, start: Starter) -> None:
        task = asyncio.create_task(self._fire(firing, start))
        self._begun[task] = firing.person
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._begun.pop(task, None)
        self._woken.set()

    async def _fire(self, firing: Firing, start: Starter) -> None:
        if firing.conversation is None and (reason := await self.ends(firing.token)) is not None:
            await self._give_up(firing, reason)
            return
        conversations: list[str] = []

        async def note(conversation: str, /) -> bool:
            conversations.append(conversation)
            is_ours = await self._firings.begun(firing, conversation)
            point("firing.begun")
            return is_ours

        try:
            end = await self._while_held(firing, start(firing, note))
        except CarnetError as error:
            self._note(firing, error)
            if error.retryable and firing.attempts + 1 < MOST_ATTEMPTS:
                await self._put_off(firing, error)
                return
            end = _failed(conversations, error.code)
        except Exception:  # whatever is wrong with it: it is not tried for ever
            logger.exception("a conversation could not be begun")
            end = _failed(conversations, Internal.code)
        if end is not None:
            await self._end(firing, end)

    async def _give_up(self, firing: Firing, reason: EndReason) -> None:
        """End what its token was to begin; its owner is told of the trigger, not of each."""
        end = FiringEnd(state="failed", conversation=None, code=reason)
        with contextlib.suppress(CarnetError):  # else when its lease has run out
            await self.rest(firing.kind, firing, reason)
            await self._firings.end(firing, end, (), now=self._clock.wall_us())

    async def _end(self, firing: Firing, end: FiringEnd) -> None:
        now = self._clock.wall_us()
        # Who has deleted it knows.
        notices = () if end.code == Deleted.code else self._notices(firing, end)
        try:
            point("firing.before_end")
            if end.state == "waiting":
                due = now + WAIT_SECONDS * SECOND_US
                await self._firings.wait(firing, notices, due=due, now=now)
            else:
                await self._firings.end(firing, end, notices, now=now)
            point("firing.ended")
        except CarnetError as error:  # it is begun again, and found to have ended
            self._note(firing, error)
        if notices:
            self.on_notice()

    async def _while_held(
        self, firing: Firing, answer: Coroutine[Any, Any, FiringEnd]
    ) -> FiringEnd | None:
        """See to an answer while the firing is ours; None if another one has it."""
        answering = asyncio.create_task(answer)
        try:
            while True:
                await asyncio.wait([answering], timeout=LEASE_SECONDS / 3)
                if answering.done():
                    return answering.result()
                until = self._clock.wall_us() + LEASE_SECONDS * SECOND_US
                with contextlib.suppress(CarnetError):
                    if not await self._firings.renew(firing, until=until):
                        return None  # and goes on with the same conversation
        finally:
            if not answering.done():
                answering.cancel()
                await asyncio.wait([answering])

    async def _put_off(self, firing: Firing, error: CarnetError) -> None:
        seconds = min(FIRST_PAUSE_SECONDS << firing.attempts, MOST_PAUSE_SECONDS)
        due = self._clock.wall_us() + max(seconds, error.retry_after or 0) * SECOND_US
        self._note(firing, error)
        with contextlib.suppress(CarnetError):
            await self._firings.put_off(firing, due=due)

    def _note(self, firing: Firing, error: CarnetError) -> None:
        detail = f"{firing.kind} {firing.n}: {error}"
        extra = {"code": error.code, "detail": detail, "count": firing.attempts + 1}
        logger.warning("a conversation could not be begun", extra=extra)


def _failed(conversations: Sequence[str], code: str) -> FiringEnd:
    return FiringEnd(
        state="failed", conversation=conversations[-1] if conversations else None, code=code
    )
