"""What is shown of tasks, to whom, in whichever dialect.

Law 1. An id that is unknown, of another agent, or of a task that is no longer kept gets the same
       bytes. What was asked for with a token is told to tokens alone.
Law 2. What can be refused without looking a task up is refused before that.
Law 3. A token sees the tasks it asked for; an operator sees all.
Law 4. What a task waits for is told to whoever may see it; among tokens, the secret that answers it
       to the one that asked. It answers nothing without the token or the key of who asked.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from msgspec.structs import replace

from carnet.core.messages.events import Event, Waiting, is_terminal, read_in_pieces
from carnet.core.messages.interrupt import Interrupt, InterruptRecord
from carnet.core.people.identity import Caller
from carnet.errors import CarnetError, TaskNotFound
from carnet.gateway.published import Published
from carnet.guards.caller.owner import Owners, check_time
from carnet.guards.readers import Readers
from carnet.http.exchange import reader_of
from carnet.ports.calls.tasks import (
    EVERY_TASK,
    ChangedTasks,
    FoundTasks,
    StoredTask,
    Tasks,
    TaskScope,
)
from carnet.ports.calls.turns import Turns
from carnet.ports.world.clock import Clock
from carnet.wire.dialects.dialect import Question, TaskView
from carnet.wire.dialects.policy import addressed

ENDED = frozenset({"done", "failed"})


class TaskRecords:
    """The tasks that are kept."""

    def __init__(
        self, tasks: Tasks, turns: Turns, clock: Clock, readers: Readers, *, kept_hours: int
    ) -> None:
        """A task is shown for so many hours after its end; `readers` bound what is read of all."""
        self._readers = readers
        self._tasks = tasks
        self._turns = turns
        self._clock = clock
        self._kept_us = kept_hours * 3600 * 1_000_000

    async def seek(self, task: str, scope: TaskScope = EVERY_TASK) -> StoredTask | None:
        """A task that is kept and in scope, or None."""
        since = self._clock.wall_us() - self._kept_us
        return await self._tasks.find(task, kept_since=since, scope=scope)

    async def find(self, task: str, scope: TaskScope = EVERY_TASK) -> StoredTask:
        """A task that is kept and in scope, or TaskNotFound."""
        found = await self.seek(task, scope)
        if found is None:
            raise TaskNotFound
        return found

    async def of_state(self, state: bytes, agent: str, actor: str | None) -> Sequence[StoredTask]:
        """Tasks of an agent that wait for the answer which has this state."""
        return await self._tasks.of_state(state, agent, actor)

    async def cancel(self, task: StoredTask) -> StoredTask:
        """Ask for its end, and give it as it is then."""
        await self._tasks.cancel(task.id, self._clock.wall_us())
        return await self.find(task.id)

    @asynccontextmanager
    async def room(
        self, task: StoredTask, caller: Caller | None, *, more: int = 0
    ) -> AsyncIterator[None]:
        """Hold room for what a task has said, and for `more`, while it is told to a caller."""
        size = more + await self.size(task)
        async with self._readers.room(task.sender if caller is None else caller.actor.name, size):
            yield

    async def events(self, task: StoredTask) -> Sequence[Event]:
        """All that was said by a task that has ended; nothing of any other."""
        if task.turn.state not in ENDED:
            return ()
        events: list[Event] = []
        for data in await self._turns.events(task.turn):
            for piece in read_in_pieces(data):
                events += piece
                await asyncio.sleep(0)  # others' turn
        if not events or not is_terminal(events[-1]):
            raise TaskNotFound  # its events are forgotten before the task is
        return events

    async def interrupts(
        self, task: StoredTask, *, domain: str, is_owner: bool
    ) -> tuple[Interrupt, ...]:
        """What a task waits for; `domain` is ours. Only its owner is told the secrets."""
        if task.turn.state != "waiting":
            return ()
        kept = await self._turns.interrupts(task.turn)
        asked = [one.interrupt for one in kept if one.status == "open"]
        if not is_owner:
            asked = [replace(one, state="") for one in asked]
        return addressed(Waiting(tuple(asked)), task.turn.agent, domain).interrupts if asked else ()

    async def request(self, task: StoredTask) -> bytes:
        """What was asked, as it is recorded; empty if it is kept no more."""
        return await self._tasks.request(task.turn)

    async def request_size(self, task: StoredTask) -> int:
        """How many bytes that is."""
        return await self._tasks.request_size(task.turn)

    async def answered(self, task: StoredTask) -> tuple[InterruptRecord, ...]:
        """What a task has asked for and was answered; most tasks ask for nothing."""
        turn = task.turn
        if turn.fence == turn.attempt and turn.state != "waiting":
            return ()
        kept = await self._turns.interrupts(turn)
        return tuple([one for one in kept if one.outcome is not None])

    async def size(self, task: StoredTask) -> int:
        """How many bytes a task that has ended has said."""
        return 0 if task.turn.state not in ENDED else await self._turns.size(task.turn)

    @asynccontextmanager
    async def reading(self, caller: Caller, size: int) -> AsyncIterator[None]:
        """Hold room for so much, while it is told to a caller."""
        async with self._readers.room(caller.actor.name, size):
            yield

    async def changed(self, asked: ChangedTasks) -> FoundTasks:
        """Those of one sender that changed last, of those that are kept."""
        since = self._clock.wall_us() - self._kept_us
        return await self._tasks.changed(replace(asked, kept_since=since))

    async def newest(self, *, limit: int, **chosen: Any) -> tuple[list[StoredTask], int | None]:
        """Some of those that are kept, the newest first, and where the next ones begin."""
        since = self._clock.wall_us() - self._kept_us
        found, following = await self._tasks.list(limit=limit, **chosen)
        kept = [task for task in found if task.turn.ended is None or task.turn.ended >= since]
        return kept, following


class TaskAccess:
    """Finds a task for those who may see it."""

    def __init__(
        self, records: TaskRecords, owners: Owners, published: Published, clock: Clock
    ) -> None:
        """`owners` know who signed for a task, `published` the agents that tasks are of."""
        self.records = records
        self._owners = owners
        self._published = published
        self._clock = clock

    async def find(self, question: Question, caller: Caller | None) -> StoredTask:
        """The task that a question is about; `caller` has shown a token."""
        if caller is not None:
            return await self.records.find(question.task, TaskScope(actor=reader_of(caller)))
        asking = question.asking
        if asking is not None:
            check_time(asking, self._clock.wall_us())
        try:
            name = self._published.target(question.agent or "").name
        except CarnetError:  # no such agent, so no such task of it
            raise TaskNotFound from None
        scope = TaskScope(agent=name, is_signed=True)  # others were asked for with a token
        if asking is None:
            return await self.records.find(question.task, scope)
        found = await self.records.seek(question.task, scope)
        sender = None if found is None else found.sender
        is_theirs = await self._owners.is_signed_by(sender, asking, self._clock.wall_us())
        if found is None or not is_theirs:
            raise TaskNotFound
        return found


def view_of(task: StoredTask, currency: str, events: Sequence[Event] = (), **more: Any) -> TaskView:
    """A task as a dialect shows it."""
    return TaskView(
        id=task.id,
        turn=task.turn,
        sender=task.sender,
        skill=task.skill,
        callback=task.callback,
        progress=task.progress,
        note=task.note,
        cancelled=task.cancelled,
        context=task.context,
        updated=task.updated,
        events=events,
        currency=currency,
        **more,
    )
