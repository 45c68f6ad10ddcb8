"""What is told about tasks, whoever asks and in whichever dialect."""

from collections.abc import Sequence
from typing import Any

from carnet.core.messages.events import Event, is_terminal, read_events
from carnet.errors import TaskNotFound
from carnet.ports.work.tasks import Task, Tasks
from carnet.ports.work.turns import Turns
from carnet.ports.world.clock import Clock
from carnet.wire.dialects.dialect import TaskTold

ENDED = frozenset({"done", "failed"})


class TaskRecords:
    """The tasks that are kept."""

    def __init__(self, tasks: Tasks, turns: Turns, clock: Clock, *, kept_hours: int) -> None:
        """A task is told about for so many hours after its end."""
        self._tasks = tasks
        self._turns = turns
        self._clock = clock
        self._kept_us = kept_hours * 3600 * 1_000_000

    async def find(self, task: str) -> Task:
        """A task that is kept, or TaskNotFound."""
        found = await self._tasks.find(task, kept_since=self._clock.wall_us() - self._kept_us)
        if found is None:
            raise TaskNotFound
        return found

    async def cancel(self, task: Task) -> Task:
        """Ask for its end, and give it as it is then."""
        await self._tasks.cancel(task.id, self._clock.wall_us())
        return await self.find(task.id)

    async def events(self, task: Task) -> Sequence[Event]:
        """All that was said by a task that has ended; nothing of any other."""
        if task.turn.state not in ENDED:
            return ()
        batches = await self._turns.events(task.turn)
        events = [event for data in batches for event in read_events(data)]
        if not events or not is_terminal(events[-1]):
            raise TaskNotFound  # its events are forgotten before the task is
        return events

    async def newest(self, *, limit: int, **chosen: Any) -> tuple[list[Task], int | None]:
        """Some of those that are kept, the newest first, and where the next ones begin."""
        since = self._clock.wall_us() - self._kept_us
        found = await self._tasks.list(limit=limit, **chosen)
        kept = [task for task in found if task.turn.ended is None or task.turn.ended >= since]
        return kept, found[-1].turn.n if len(found) == limit else None


def told_of(task: Task, events: Sequence[Event] = (), **more: Any) -> TaskTold:
    """A task as it is told."""
    return TaskTold(
        id=task.id,
        turn=task.turn,
        sender=task.sender,
        skill=task.skill,
        callback=task.callback,
        progress=task.progress,
        note=task.note,
        cancelled=task.cancelled,
        events=events,
        **more,
    )
