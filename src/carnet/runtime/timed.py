"""An Agent that has ended by its deadline, whether it looks at the clock or not.

Law 1. One timer a stream. It cancels the agent only while somebody waits for it: a reader that is
       slow, or busy with the last event, is not interrupted.
Law 2. The earlier of `seconds` and the deadline the call carries counts. Which of the two it was is
       told (`by`): that a caller had little time is no fault of the agent.
"""

import asyncio
from collections.abc import AsyncIterator

from carnet.core.call import Call
from carnet.core.events import Event
from carnet.errors import ProviderTimeout
from carnet.ports.agent import Agent
from carnet.ports.clock import Clock
from carnet.runtime.answering import answer_of, answered
from carnet.runtime.closing import closing
from carnet.runtime.patience import Patience

BY_AGENT = "agent"  # the time the operator gives this agent
BY_CALLER = "caller"  # the time the call had left


class Timed:
    """At most `seconds` for a whole answer."""

    def __init__(self, agent: Agent, *, seconds: float, clock: Clock) -> None:
        """`clock` tells how much of the call's own deadline is left."""
        self._agent = agent
        self._answer = answer_of(agent)
        self._seconds = seconds
        self._clock = clock
        self.answer = None if self._answer is None else self._answer_in_time

    async def __call__(self, call: Call, /) -> AsyncIterator[Event]:
        """Answer within the time."""
        seconds, by = self._time_for(call)
        if seconds <= 0:
            raise ProviderTimeout("no time was left to begin with", by=by)
        patience = Patience(seconds)
        try:
            async with closing(self._agent(call)) as events:
                while not patience.ended:
                    patience.attend()
                    try:
                        event = await anext(events)
                    except StopAsyncIteration:
                        return
                    except asyncio.CancelledError:
                        if patience.took():
                            break
                        raise
                    if patience.ended:  # it took our cancellation for somebody else's
                        patience.took()
                        break
                    patience.rest()
                    yield event
                raise ProviderTimeout(f"not done in {seconds:.3f} s", by=by)
        finally:
            patience.stop()

    async def _answer_in_time(self, call: Call, /) -> list[Event]:
        """The same for an answer in one piece."""
        seconds, by = self._time_for(call)
        if seconds <= 0:
            raise ProviderTimeout("no time was left to begin with", by=by)
        patience = Patience(seconds)
        patience.attend()
        try:
            events = await answered(self._answer, call)
            if not patience.ended:
                return events
            patience.took()  # it took our cancellation for somebody else's
        except asyncio.CancelledError:
            if not patience.took():
                raise
        finally:
            patience.stop()
        raise ProviderTimeout(f"not done in {seconds:.3f} s", by=by)

    def _time_for(self, call: Call) -> tuple[float, str]:
        deadline = call.carnet.deadline
        if deadline is not None:
            left = deadline - self._clock.steady_us() / 1_000_000
            if left < self._seconds:
                return left, BY_CALLER
        return self._seconds, BY_AGENT
