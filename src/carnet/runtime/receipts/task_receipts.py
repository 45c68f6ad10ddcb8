"""What the end of a task is proved with, to a peer that asked for it.

Law. A task that a listed peer asked for is told with a receipt once it has ended, the same one
however often it is polled, or while it waits. Nobody else could use one: who is not listed is not
believed (A27).
"""

from typing import Final

from carnet.core.messages.events import Event, Waiting, is_terminal, read_events
from carnet.core.people.address import AGENT
from carnet.ports.calls.tasks import StoredTask
from carnet.ports.calls.turns import Turns
from carnet.ports.trust.trust import Peers
from carnet.runtime.receipts.issue import Issuing, ResultOf

_RECEIPTED: Final = frozenset({"done", "failed", "waiting"})


class TaskReceipts:
    """Gives the receipts of tasks."""

    def __init__(self, issuing: Issuing, peers: Peers, turns: Turns, result_of: ResultOf) -> None:
        """`issuing` makes and keeps them; `turns` have the events of the tasks.

        `result_of` gives the result of an answer in the dialect that is asked in.
        """
        self._issuing = issuing
        self._peers = peers
        self._turns = turns
        self._result_of = result_of

    async def __call__(self, task: StoredTask, /) -> str | None:
        """The receipt of a task, if there is to be one."""
        peer = task.sender.removeprefix(AGENT)
        if task.turn.state not in _RECEIPTED or self._peers.find(peer) is None:
            return None
        events = await self._events(task)
        if not events or not is_terminal(events[-1]):
            return None  # forgotten
        return await self._issuing.of_task(task, peer, events, self._result_of)

    async def _events(self, task: StoredTask) -> list[Event]:
        if task.turn.state == "waiting":
            kept = await self._turns.interrupts(task.turn)
            asked = tuple(one.interrupt for one in kept if one.status == "open")
            return [Waiting(asked)] if asked else []
        batches = await self._turns.events(task.turn)
        return [event for data in batches for event in read_events(data)]
