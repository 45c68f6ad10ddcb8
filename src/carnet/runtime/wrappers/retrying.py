"""An Agent that is asked again when it could not be reached. The only layer that does so.

Law 1. Only while nobody has seen what was said: that is never taken back. What an attempt has used
       and the calls it has made stay, however it ended.
Law 2. Only where another try may help and nobody nearer to the fault has tried: the callee was
       busy and said for how long, or it gave no answer at all. A refusal, a failure that it
       reports, a chain too deep, an open circuit and a cancellation are final.
Law 3. Every attempt is the same call under the same turn id, so that a callee that did answer
       answers again from its record. A callee that keeps no record is asked again only if the
       request never left or was turned away.
Law 4. Never longer than the call has time, and never sooner than the callee asked for.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from carnet.core.call import Call
from carnet.core.messages.events import End, Failed
from carnet.core.messages.output import Output
from carnet.errors import (
    CarnetError,
    PeerBusy,
    PeerUnreachable,
    ProviderTimeout,
    ProviderUnavailable,
)
from carnet.ports.calls.agent import Agent
from carnet.ports.world.clock import Clock, Ids
from carnet.ports.world.http_client import NotSent
from carnet.wire.dialects.refusal import BY_PEER, BY_STATUS

logger = logging.getLogger("carnet.runtime")

MOST_RETRIES: Final = 3
FIRST_SECONDS: Final = 0.25
MOST_SECONDS: Final = 8.0
LONGEST_ASKED_SECONDS: Final = 30  # who asks for more is not waited for


class Retrying:
    """Up to `retries` further attempts."""

    def __init__(
        self,
        agent: Agent,
        *,
        retries: int,
        clock: Clock,
        ids: Ids,
        repeats_are_safe: bool = True,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """Wrap an Agent.

        Args:
            agent: Who is asked.
            retries: How often it is asked again.
            clock: Tells how much time the call has left.
            ids: Gives the jitter.
            repeats_are_safe: Whether the callee knows a turn that it has seen, so that a request
                which may have reached it can be sent again.
            sleep: Where a cancellation finds a waiting call.
        """
        if not 0 <= retries <= MOST_RETRIES:
            raise ValueError(f"retries must be 0 to {MOST_RETRIES}")
        self._agent = agent
        self._retries = retries
        self._clock = clock
        self._ids = ids
        self._repeats_are_safe = repeats_are_safe
        self._sleep = sleep

    async def __call__(self, call: Call, out: Output, /) -> End:
        """Answer, if need be at a later attempt."""
        mark, attempt = out.mark(), 0
        while True:
            try:
                end = await self._agent(call, out)
                _raise_failure(end)
            except CarnetError as error:
                seconds = self._wait_after(error, attempt, call)
                if seconds is None or not out.back(mark):
                    raise
                self._note(call, error, attempt)
            else:
                return end
            await self._sleep(seconds)
            attempt += 1

    def _wait_after(self, error: CarnetError, attempt: int, call: Call) -> float | None:
        """How long to wait before the next attempt; None if there is to be none."""
        if attempt == self._retries:
            return None
        if not may_repeat(error, repeats_are_safe=self._repeats_are_safe):
            return None
        asked = error.retry_after or 0
        backoff = min(FIRST_SECONDS * (1 << attempt), MOST_SECONDS)
        seconds = max(asked, backoff + self._ids.fraction() * FIRST_SECONDS)
        deadline = call.carnet.deadline
        late = deadline is not None and self._clock.steady_us() / 1_000_000 + seconds >= deadline
        if late or asked > LONGEST_ASKED_SECONDS:
            return None
        return seconds

    @staticmethod
    def _note(call: Call, error: CarnetError, attempt: int) -> None:
        logger.info(
            "call is repeated",
            extra={
                "run": call.carnet.run,
                "turn": call.carnet.turn,
                "agent": call.agent,
                "attempt": attempt + 2,
                "code": error.code,
                "detail": str(error),
            },
        )


def may_repeat(error: CarnetError, *, repeats_are_safe: bool) -> bool:
    """Whether the same call may succeed when it is sent again, and cannot be run twice."""
    if error.facts.get("by") in {BY_PEER, BY_STATUS}:  # there was an answer
        return False
    if isinstance(error, PeerBusy):
        return error.retry_after is not None
    if isinstance(error, PeerUnreachable):  # nothing was sent but a question for the card
        return True
    if isinstance(error, ProviderUnavailable | ProviderTimeout):
        return repeats_are_safe or isinstance(error.__cause__, NotSent)
    return False


def _raise_failure(end: End) -> None:
    if type(end) is Failed:
        raise end.error()
