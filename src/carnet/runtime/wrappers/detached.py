"""An Agent in a task of its own, so that whoever waits for it can always leave.

For agents that others wrote: they may swallow a cancellation or wait for ever on their way out.

Law 1. Leaving cancels the agent and waits a moment for it; one that does not end is let go, and
       nobody reads what it still says: the Output of a turn that has ended takes nothing.
Law 2. An agent that ends by a cancellation nobody asked for has failed.
"""

import asyncio
import logging
from typing import Any, Final

from carnet.core.call import Call
from carnet.core.messages.events import End
from carnet.core.messages.output import Output
from carnet.errors import AgentFailed
from carnet.ports.work.agent import Agent

logger = logging.getLogger("carnet.agent")

GRACE_SECONDS = 0.5

_LET_GO: Final[set[asyncio.Task[End]]] = set()  # the loop alone would not keep them alive


class Detached:
    """Runs an agent beside its listener."""

    def __init__(self, agent: Agent, *, grace_seconds: float = GRACE_SECONDS) -> None:
        """`grace_seconds` is what an agent has to end in when it is cancelled."""
        self._agent = agent
        self._grace_seconds = grace_seconds

    async def __call__(self, call: Call, out: Output, /) -> End:
        """Answer from beside."""
        loop = asyncio.get_running_loop()
        ended = loop.create_future()
        speaking = loop.create_task(self._agent(call, out))
        speaking.add_done_callback(lambda _: None if ended.done() else ended.set_result(None))
        try:
            await ended
        except BaseException:
            if not speaking.done():
                await self._leave(speaking, call)
            raise
        try:
            return speaking.result()
        except asyncio.CancelledError:
            raise AgentFailed("it ended by a cancellation that nobody asked for") from None

    async def _leave(self, speaking: "asyncio.Task[End]", call: Call) -> None:
        speaking.cancel()
        await asyncio.wait([speaking], timeout=self._grace_seconds)
        if speaking.done():
            _discard_result(speaking)
            return
        carnet = call.carnet
        extra = {"run": carnet.run, "turn": carnet.turn, "agent": call.agent}
        logger.warning("the agent ignores its cancellation and is let go", extra=extra)
        _LET_GO.add(speaking)
        speaking.add_done_callback(_LET_GO.discard)
        speaking.add_done_callback(_discard_result)


def _discard_result(task: "asyncio.Task[Any]") -> None:
    """Take note of how a task ended that nobody waits for."""
    if not task.cancelled():
        task.exception()
