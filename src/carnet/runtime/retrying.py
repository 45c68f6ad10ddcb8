"""An Agent that is asked again when it could not be reached. The only layer that does so.

Law 1. Only while nothing has been said: what a reader has seen is never taken back. Records of
       calls out do not count as said; those of the last attempt are given, the others dropped.
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
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final

from carnet.core.call import Call
from carnet.core.events import LEG, Event, Extension, Failed
from carnet.errors import (
    CarnetError,
    PeerBusy,
    PeerUnreachable,
    ProviderTimeout,
    ProviderUnavailable,
)
from carnet.ports.agent import Agent
from carnet.ports.clock import Clock, Ids
from carnet.ports.door import NotSent
from carnet.runtime.answering import answer_of, answered
from carnet.runtime.closing import closing
from carnet.wire.openai import BY_PEER, BY_STATUS

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
        self._answer = answer_of(agent)
        self.answer = None if self._answer is None else self._answer_at_last
        self._retries = retries
        self._clock = clock
        self._ids = ids
        self._repeats_are_safe = repeats_are_safe
        self._sleep = sleep

    async def __call__(self, call: Call, /) -> AsyncIterator[Event]:
        """Answer, if need be at a later attempt."""
        opening = _Opening()
        noted = len(call.notes)
        for attempt in range(self._retries + 1):
            opening = _Opening()
            del call.notes[noted:]
            try:
                async with closing(self._agent(call)) as events:
                    async for event in events:
                        for ready in opening.pass_on(event):
                            yield ready
            except CarnetError as error:
                opening.error = error
            seconds = None if opening.over else self._wait_after(opening.error, attempt, call)
            if seconds is None:
                break
            call.notes.extend(opening.held)  # in case nothing comes after this attempt
            await self._sleep(seconds)
        for record in opening.held:
            yield record
        if opening.error is not None:
            raise opening.error

    async def _answer_at_last(self, call: Call, /) -> list[Event]:
        """The same for an answer in one piece: its records are among the notes when it fails."""
        noted = len(call.notes)
        attempt = 0
        while True:
            try:
                return await answered(self._answer, call)
            except CarnetError as error:
                seconds = self._wait_after(error, attempt, call)
                if seconds is None:
                    raise
            await self._sleep(seconds)
            del call.notes[noted:]
            attempt += 1

    def _wait_after(self, error: CarnetError | None, attempt: int, call: Call) -> float | None:
        """How long to wait before the next attempt; None if there is to be none."""
        if error is None or attempt == self._retries:
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
        self._note(call, error, attempt)
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


class _Opening:
    """The start of an answer: records are held back until something is said."""

    __slots__ = ("error", "held", "over")

    def __init__(self) -> None:
        self.error: CarnetError | None = None
        self.held: Sequence[Event] = ()
        self.over = False

    def pass_on(self, event: Event) -> Sequence[Event]:
        """What may be shown now that this event has come."""
        if self.over:
            return (event,)
        if type(event) is Extension and event.name == LEG:
            self.held = (*self.held, event)
            return ()
        if type(event) is Failed:
            raise event.error()
        self.over = True
        ready, self.held = (*self.held, event), ()
        return ready
