"""What the end of a task is proved with, to a peer that asked for it.

Law. A task that a listed peer asked for is told with a receipt once it has ended, the same one
however often it is polled. Nobody else could use one: who is not listed is not believed (A27).
"""

from carnet.core.messages.events import Event, is_terminal, read_events
from carnet.core.people.address import AGENT
from carnet.ports.calls.tasks import StoredTask
from carnet.ports.calls.turns import Turns
from carnet.ports.trust.trust import Peers
from carnet.runtime.receipts.issue import Issuing, ResultOf


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
        if task.turn.state not in {"done", "failed"} or self._peers.find(peer) is None:
            return None
        batches = await self._turns.events(task.turn)
        events: list[Event] = [event for data in batches for event in read_events(data)]
        if not events or not is_terminal(events[-1]):
            return None  # forgotten
        return await self._issuing.of_task(task, peer, events, self._result_of)
