"""A turn while it runs, and how it is told to stop."""

import asyncio
from collections.abc import Callable, Sequence

from carnet.core.call import Call
from carnet.core.chain.turn import Turn
from carnet.core.messages.events import End, Failed
from carnet.core.messages.output import Output
from carnet.errors import AgentNotFound
from carnet.ports.work.agent import Target
from carnet.runtime.turns.broadcast import Broadcast

STOP_SECONDS = 5.0  # how long a cancelled turn may take to be recorded


class Execution:
    """A turn that is running. It can be stopped while its agent speaks, not in its recording."""

    __slots__ = (
        *("_on_left", "broadcast", "end", "fence", "is_task", "leaving", "let_go", "listening"),
        *("record", "stopped", "task"),
    )

    task: asyncio.Task[None]

    def __init__(
        self, record: Turn, on_left: "Callable[[Execution], None] | None", *, is_task: bool
    ) -> None:
        """The task is set when it has been made; `on_left` is told when nobody reads it."""
        self.broadcast = Broadcast(self._left)
        self.record = record
        self.fence = record.fence
        self.is_task = is_task
        self._on_left = on_left
        self.let_go = False  # it is to wait again rather than to fail
        self.end: End | None = None  # once it is recorded
        self.listening = False
        self.stopped = False
        self.leaving: asyncio.Task[None] | None = None  # while it has no reader here

    def _left(self) -> None:
        if self._on_left is not None:
            self._on_left(self)

    def stop(self) -> None:
        """Cancel the agent, or keep it from being started."""
        if not self.stopped:
            self.stopped = True
            if self.listening:
                self.task.cancel()


async def stop_all(executions: Sequence[Execution]) -> None:
    """Stop them, and wait a moment for them to be recorded."""
    for running in executions:
        running.stop()
    if executions:
        await asyncio.wait([running.task for running in executions], timeout=STOP_SECONDS)


def absent(agent: str) -> Target:
    """What stands for an agent that is not there any more."""

    async def silent(_: Call, __: Output, /) -> Failed:
        return Failed.of(AgentNotFound())

    return Target(name=agent, speaker=agent, agent=silent, credit=f"agent:{agent}")
