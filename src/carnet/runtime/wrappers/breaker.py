"""A callee that keeps failing is left alone for a while, by everybody together.

    closed ──failures_to_open in a row──> open ──cooldown──> half open ──one good answer──> closed
                                            ^                    │
                                            └──────failed────────┘

Law 1. One breaker an endpoint, shared by all runs of this process.
Law 2. Half open lets one call through at a time; the others are refused until it has ended.
Law 3. Only failures of the callee count. A refusal is an answer, and so is a failure that the
       callee reports: one agent that fails says nothing of the others behind the same endpoint.
       A caller that goes away, or had too little time, says nothing about the callee.
Law 4. A call that began before the state changed has no say in the new one.
"""

import math
from typing import Literal

from carnet.core.call import Call
from carnet.core.messages.events import End, Failed
from carnet.core.messages.output import Output
from carnet.errors import (
    CarnetError,
    CircuitOpen,
    EgressRefused,
    Malformed,
    Ours,
    PeerBusy,
    PeerRefused,
    Refused,
)
from carnet.ports.calls.agent import Agent
from carnet.ports.world.clock import Clock
from carnet.runtime.wrappers.timed import BY_CALLER
from carnet.wire.dialects.refusal import BY_PEER, UNRECOGNISED

BreakerState = Literal["closed", "open", "half_open"]
Verdict = Literal["good", "bad", "neither"]

_SERVER_ERROR = 500


class Breaker:
    """Counts the failures of one endpoint."""

    def __init__(
        self, *, failures_to_open: int = 5, cooldown_seconds: float = 30.0, clock: Clock
    ) -> None:
        """`cooldown_seconds` is also how long a probe may take before another is let through."""
        self._failures_to_open = failures_to_open
        self._cooldown_seconds = cooldown_seconds
        self._clock = clock
        self._failures = 0
        self._era = 0  # counts the changes of state
        self._opened: float | None = None  # None while closed
        self._probe_began: float | None = None

    @property
    def state(self) -> BreakerState:
        """What the next call meets."""
        if self._opened is None:
            return "closed"
        return "open" if self._left(self._opened) > 0 else "half_open"

    @property
    def failures(self) -> int:
        """How many there were in a row."""
        return self._failures

    def enter(self) -> int:
        """Let a call through, or raise CircuitOpen. The ticket is for `leave`."""
        if self._opened is None:
            return self._era
        left = self._left(self._opened)
        if left <= 0 and self._probe_began is not None:
            left = self._left(self._probe_began)
        if left > 0:
            raise CircuitOpen(retry_after=math.ceil(left))
        self._probe_began = self._clock.monotonic()
        self._era += 1
        return self._era

    def leave(self, ticket: int, verdict: Verdict) -> None:
        """Say how a call that was let through has ended."""
        if ticket != self._era:
            return
        self._probe_began = None
        if verdict == "good":
            self._failures = 0
            if self._opened is not None:
                self._opened = None
                self._era += 1
        elif verdict == "bad":
            self._failures += 1
            if self._opened is not None or self._failures >= self._failures_to_open:
                self._open()

    def _open(self) -> None:
        self._opened = self._clock.monotonic()
        self._era += 1

    def _left(self, since: float) -> float:
        return since + self._cooldown_seconds - self._clock.monotonic()


class Breaking:
    """An Agent behind a breaker."""

    def __init__(self, agent: Agent, breaker: Breaker) -> None:
        """Several agents may share the breaker of their endpoint."""
        self._agent = agent
        self._breaker = breaker

    async def __call__(self, call: Call, out: Output, /) -> End:
        """Answer, unless the circuit is open."""
        ticket = self._breaker.enter()
        verdict: Verdict = "neither"
        try:
            end = await self._agent(call, out)
            verdict = judge(end.error()) if type(end) is Failed else "good"
        except Exception as error:
            verdict = judge(error) if isinstance(error, CarnetError) else "bad"
            raise
        finally:
            self._breaker.leave(ticket, verdict)
        return end


def judge(error: CarnetError) -> Verdict:
    """What an error says about the callee."""
    by = error.facts.get("by")
    if by == BY_PEER or isinstance(error, Refused | Malformed | PeerRefused):
        return "good"
    if by == BY_CALLER or isinstance(error, CircuitOpen | EgressRefused | Ours):
        return "neither"
    return "good" if isinstance(error, PeerBusy) and not _is_unexplained(error) else "bad"


def _is_unexplained(error: PeerBusy) -> bool:
    status = error.facts.get("peer_status")
    is_fault = isinstance(status, int) and status >= _SERVER_ERROR
    return is_fault and error.facts.get("peer_code") == UNRECOGNISED
