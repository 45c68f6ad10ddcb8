"""An Agent that has ended by its deadline, whether it looks at the clock or not.

Law 1. One timer a call. What was written before it is over stays written.
Law 2. The earlier of `seconds` and the deadline the call carries counts. Which of the two it was is
       told (`by`): that a caller had little time is no fault of the agent.
"""

import asyncio

from carnet.core.call import Call
from carnet.core.messages.events import End
from carnet.core.messages.output import Output
from carnet.errors import ProviderTimeout
from carnet.ports.work.agent import Agent
from carnet.ports.world.clock import Clock
from carnet.runtime.deadlines import Deadlines

BY_AGENT = "agent"  # the time the operator gives this agent
BY_CALLER = "caller"  # the time the call had left


class Timed:
    """At most `seconds` for a whole answer."""

    def __init__(self, agent: Agent, *, seconds: float, clock: Clock) -> None:
        """`clock` tells how much of the call's own deadline is left."""
        self._agent = agent
        self._seconds = seconds
        self._clock = clock

    async def __call__(self, call: Call, out: Output, /) -> End:
        """Answer within the time."""
        seconds, by, deadline = self._seconds, BY_AGENT, call.carnet.deadline
        if deadline is not None:
            left = deadline - self._clock.steady_us() / 1_000_000
            if left < seconds:
                seconds, by = left, BY_CALLER
        if seconds <= 0:
            raise ProviderTimeout("no time was left to begin with", by=by)
        deadlines = Deadlines(seconds)
        deadlines.attend()
        try:
            end = await self._agent(call, out)
            if not deadlines.ended:
                return end
            deadlines.took()  # it took our cancellation for somebody else's
        except asyncio.CancelledError:
            if not deadlines.took():
                raise
        finally:
            deadlines.stop()
        raise ProviderTimeout(f"not done in {seconds:.3f} s", by=by)
