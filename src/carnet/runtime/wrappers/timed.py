"""An Agent that has ended by its deadline, whether it looks at the clock or not.

`Detached` is an Agent in a task of its own, so that whoever waits for it can always leave.

It is for agents that others wrote: they may swallow a cancellation or wait for ever on their way
out.

`Deadlines` are over many waits, at the price of one timer for all of them.

Making a deadline and moving it set a number; one look at the earliest of them all is planned, and
whoever has reached his is told. What happens then is the cancelling of the task that waits, or
whatever `on_end` is set to.

Law 1. One timer a call. What was written before it is over stays written.
Law 2. The earlier of `seconds` and the deadline the call carries counts. Which of the two it was is
       told (`by`): that a caller had little time is no fault of the agent.
Law 3. Leaving cancels the agent and waits a moment for it; one that does not end is let go, and
       nobody reads what it still says: the Output of a turn that has ended takes nothing.
Law 4. An agent that ends by a cancellation nobody asked for has failed.
Law 5. Only a task that waits is cancelled, never one that is busy elsewhere with what it was given.
Law 6. A cancellation of ours is undone by `took`; one that somebody else asked for stays.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

from carnet.core.call import Call
from carnet.core.messages.events import End
from carnet.core.messages.output import Output
from carnet.errors import AgentFailed, ProviderTimeout
from carnet.ports.calls.agent import Agent
from carnet.ports.world.clock import Clock

_BETWEEN_LOOKS: Final = 0.005  # so that many deadlines close to one another cost one look


class Deadlines:
    """When one wait must end, and all of them. Must be stopped; made within the event loop."""

    __slots__ = ("_cancelling", "_end", "_sweep", "_task", "deadline", "ended", "on_end")

    def __init__(self, seconds: float, on_end: Callable[[], None] | None = None) -> None:
        """Wait `seconds` in all, then tell `on_end`."""
        loop = asyncio.get_running_loop()
        sweep = _latest[0] if _latest and _latest[0].loop is loop else _new_sweep(loop)
        self._sweep = sweep
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self.ended = False
        self.on_end = on_end
        self._end = self.deadline = deadline = sweep.time() + seconds
        sweep.waiting.add(self)
        if deadline < sweep.next:
            sweep.expect(deadline)

    def attend(self) -> None:
        """The current task waits from now on."""
        self._task = task = asyncio.current_task(self._sweep.loop)
        self._cancelling = 0 if task is None else task.cancelling()

    def rest(self) -> None:
        """Nobody waits: only the end of all counts."""
        self._task = None
        self.deadline = self._end

    def allow(self, seconds: float) -> bool:
        """Wait this long from now, and not beyond the end of all; False if that is over."""
        sweep, end = self._sweep, self._end
        now = sweep.time()
        deadline = now + seconds
        self.deadline = deadline = min(end, deadline)
        if deadline < sweep.next:
            sweep.expect(deadline)
        return deadline > now and not self.ended

    def left(self) -> float:
        """Seconds until the end of all."""
        return max(0.0, self._end - self._sweep.time())

    def took(self) -> bool:
        """Whether the cancellation at hand is ours alone; then it is undone."""
        task = self._task
        return self.ended and task is not None and task.uncancel() <= self._cancelling

    def stop(self) -> None:
        """Wait no more."""
        self._sweep.waiting.discard(self)

    def end(self) -> None:
        """The deadline has come."""
        self.stop()
        self.ended = True
        if self.on_end is not None:
            self.on_end()
        elif self._task is not None:
            self._task.cancel()


class _Sweep:
    """Everybody who waits in one event loop, and the next look at their deadlines."""

    __slots__ = ("_timer", "loop", "next", "time", "waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.time = loop.time
        self.waiting: set[Deadlines] = set()
        self.next = float("inf")
        self._timer: asyncio.TimerHandle | None = None

    def expect(self, deadline: float) -> None:
        """See to it that there is a look at this time, before `next`."""
        if self._timer is not None:
            self._timer.cancel()
        self.next = deadline
        self._timer = self.loop.call_at(deadline, self._look)

    def _look(self) -> None:
        now = self.loop.time()
        self._timer, self.next = None, float("inf")
        soon = now + _BETWEEN_LOOKS
        try:
            for deadlines in [one for one in self.waiting if one.deadline <= now]:
                deadlines.end()
        finally:  # nobody else's deadline depends on what one is told
            if self.waiting:
                self.expect(max(soon, min(deadlines.deadline for deadlines in self.waiting)))


_latest: list[_Sweep] = []  # of the loop that runs; a process has one, tests have many in turn


def _new_sweep(loop: asyncio.AbstractEventLoop) -> _Sweep:
    sweep = _Sweep(loop)
    _latest[:] = [sweep]
    return sweep


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
        # Whoever listens may have been cancelled in the very turn in which the agent ends.
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
