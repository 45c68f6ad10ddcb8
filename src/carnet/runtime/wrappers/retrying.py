"""An Agent that is asked again when it could not be reached. The only layer that does so.

Law 1. Only while nobody has seen what was said: that is never taken back. What an attempt has used
       and the calls it has made stay, however it ended.
Law 2. `retries` counts every further request, whatever the reason (R56): no connection, one that
       ended unanswered, and the statuses of `ASKED_AGAIN`. A refusal, a chain too deep, an open
       circuit, a deadline and a cancellation are final; so is what a callee reports of its agent or
       of a call further on, which was dealt with there.
Law 3. Every attempt is the same call under the same turn id, so that a callee that did answer
       answers again from its record. A callee that keeps none, such as a model, may run it, and
       charge for it, twice.
Law 4. Never longer than the call has time, and never sooner than the callee asked for. Where only a
       kept connection was not there any more, the next request leaves at once.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from carnet.core.call import Call
from carnet.core.messages.events import End, Failed
from carnet.core.messages.output import Output
from carnet.errors import CarnetError, PeerBusy, PeerUnreachable, ProviderUnavailable
from carnet.ports.calls.agent import Agent
from carnet.ports.world.clock import Clock, Ids
from carnet.ports.world.http_client import Unanswered
from carnet.runtime.wrappers.breaker import Breaker, Verdict, judge
from carnet.wire.dialects.refusal import ASKED_AGAIN, BY_CALLEE, BY_PEER, BY_STATUS

logger = logging.getLogger("carnet.runtime")

MOST_RETRIES: Final = 3
FIRST_SECONDS: Final = 0.25
MOST_SECONDS: Final = 8.0
LONGEST_ASKED_SECONDS: Final = 30  # of a call that has no deadline


class Retrying:
    """Up to `retries` further attempts."""

    def __init__(
        self,
        agent: Agent,
        *,
        retries: int,
        clock: Clock,
        ids: Ids,
        breaker: Breaker | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """Wrap an Agent.

        Args:
            agent: Who is asked.
            retries: How often it is asked again.
            clock: Tells how much time the call has left.
            ids: Gives the jitter.
            breaker: Told of every attempt, and may refuse it.
            sleep: Where a cancellation finds a waiting call.
        """
        if not 0 <= retries <= MOST_RETRIES:
            raise ValueError(f"retries must be 0 to {MOST_RETRIES}")
        self._agent = agent
        self._retries = retries
        self._clock = clock
        self._ids = ids
        self._breaker = breaker
        self._sleep = sleep

    async def __call__(self, call: Call, out: Output, /) -> End:
        """Answer, if need be at a later attempt."""
        mark, attempt, breaker = out.mark(), 0, self._breaker
        while True:
            ticket = None if breaker is None else breaker.enter(call.payer)
            verdict: Verdict = "neither"
            try:
                end = await self._agent(call, out)
                if type(end) is Failed:
                    raise end.error()  # noqa: TRY301  # a function for it would be a call more
                verdict = "good"
            except Exception as error:
                verdict = judge(error)
                seconds = self._wait_after(error, attempt, call)
                if seconds is None or not out.back(mark):
                    raise
                self._note(call, error, attempt)
            else:
                return end
            finally:
                if breaker is not None and ticket is not None:
                    breaker.leave(ticket, verdict, call.payer)
            await self._sleep(seconds)
            attempt += 1

    def _wait_after(self, error: Exception, attempt: int, call: Call) -> float | None:
        """How long to wait before the next attempt; None if there is to be none."""
        if attempt == self._retries or not isinstance(error, CarnetError):
            return None
        if not may_repeat(error):
            return None
        if isinstance(error.__cause__, Unanswered):
            return 0.0
        asked = error.retry_after or 0
        seconds = pause_after(error, attempt, self._ids.fraction())
        deadline = call.carnet.deadline
        if deadline is None:
            return None if asked > LONGEST_ASKED_SECONDS else seconds
        return None if self._clock.steady_us() / 1_000_000 + seconds >= deadline else seconds

    @staticmethod
    def _note(call: Call, error: Exception, attempt: int) -> None:
        logger.info(
            "call is repeated",
            extra={
                "run": call.carnet.run,
                "turn": call.carnet.turn,
                "agent": call.agent,
                "attempt": attempt + 2,
                "code": getattr(error, "code", None),
                "detail": str(error),
            },
        )


def pause_after(error: CarnetError, attempt: int, fraction: float) -> float:
    """Seconds to wait after an attempt; `fraction` is the jitter."""
    backoff = min(FIRST_SECONDS * (1 << attempt), MOST_SECONDS)
    return max(error.retry_after or 0, backoff + fraction * FIRST_SECONDS)


def may_repeat(error: CarnetError) -> bool:
    """Whether the same call is to be sent again (R56)."""
    by = error.facts.get("by")
    if by == BY_PEER:  # it was asked again there
        return False
    if isinstance(error, PeerBusy | PeerUnreachable) or by == BY_CALLEE:
        return True
    if by == BY_STATUS:
        return error.facts.get("peer_status") in ASKED_AGAIN
    return isinstance(error, ProviderUnavailable)  # no connection, or it ended unanswered
