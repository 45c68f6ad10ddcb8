"""A callee that keeps failing is left alone for a while: by everybody, or by whom it fails.

    closed ──failures_to_open in a row──> open ──cooldown──> half open ──one good answer──> closed
                                            ^                    │
                                            └──────failed────────┘

Law 1. One breaker an endpoint, shared by all runs of this process. In it every caller has a circuit
       of its own, beside the one of all.
Law 2. Half open lets one call through at a time; the others are refused until it has ended.
Law 3. Only failures of the callee count. A refusal is an answer, and so is a failure that the
       callee reports: one agent that fails says nothing of the others behind the same endpoint.
       A caller that goes away, or had too little time, says nothing about the callee.
Law 4. A failure that a request may have brought about, such as a 500, counts for its caller alone
       until those of another one meet it too (A92). Who vouches for several callers is one of them.
       That nobody could be reached counts for all at once.
Law 5. A call that began before the state changed has no say in the new one.
"""

import math
from typing import Final, Literal

from carnet.core.call import Call
from carnet.core.memo import Memo
from carnet.core.messages.events import End, Failed
from carnet.core.messages.output import Output
from carnet.core.people.identity import Account, Payer
from carnet.errors import (
    CarnetError,
    CircuitOpen,
    EgressRefused,
    Malformed,
    OfModel,
    Ours,
    PeerBusy,
    PeerRefused,
    PeerUnreachable,
    Refused,
)
from carnet.ports.calls.agent import Agent
from carnet.ports.world.clock import Clock
from carnet.ports.world.http_client import NotSent, Unanswered
from carnet.runtime.system import SystemClock
from carnet.runtime.wrappers.timed import BY_CALLER
from carnet.wire.dialects.refusal import BY_CALLEE, BY_PEER, UNRECOGNISED

BreakerState = Literal["closed", "open", "half_open"]
# What a call says about the callee; `suspect` may be the doing of the request.
Verdict = Literal["good", "bad", "suspect", "neither"]

MOST_CALLERS: Final = 1024  # with a circuit of their own
_SERVER_ERROR = 500
_ANSWERS: Final = (Refused, Malformed, PeerRefused, OfModel)
_SYSTEM_CLOCK: Final = SystemClock()
_ENOUGH_CALLERS: Final = 2  # that meet a failure, for it to be the callee's

Ticket = tuple[int, int]  # of the circuit of all, and of the caller's own


class Circuit:
    """Counts failures in a row."""

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

    @property
    def era(self) -> int:
        """Which of its states this is."""
        return self._era

    def pass_through(self) -> int:
        """Let a call through, or raise CircuitOpen; in which era."""
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

    def rest(self) -> None:
        """A call has ended that says nothing: the next may be the probe."""
        self._probe_began = None

    def close(self) -> None:
        """There was a good answer."""
        self._probe_began = None
        self._failures = 0
        if self._opened is not None:
            self._opened = None
            self._era += 1

    def fail(self) -> None:
        """There was none."""
        self._probe_began = None
        self._failures += 1
        if self._opened is not None or self._failures >= self._failures_to_open:
            self.open()

    def open(self) -> None:
        """Let nobody through for a while."""
        self._probe_began = None
        self._opened = self._clock.monotonic()
        self._era += 1

    def _left(self, since: float) -> float:
        return since + self._cooldown_seconds - self._clock.monotonic()


class Breaker(Circuit):
    """The circuits of one endpoint: that of all, which it is, and those of single callers."""

    def __init__(
        self,
        *,
        failures_to_open: int = 5,
        cooldown_seconds: float = 30.0,
        clock: Clock = _SYSTEM_CLOCK,
    ) -> None:
        """`cooldown_seconds` is also how long a probe may take before another is let through."""
        super().__init__(
            failures_to_open=failures_to_open, cooldown_seconds=cooldown_seconds, clock=clock
        )
        self._own: Memo[Account, Circuit] = Memo(MOST_CALLERS)  # of those that met failures
        self._suspects: set[str] = set()  # whose calls have failed since the last good answer
        self._suspected = 0  # failures of theirs in a row

    def enter(self, payer: Payer | None = None) -> Ticket:
        """Let a call through, or raise CircuitOpen. The ticket is for `leave`."""
        own_era = 0
        if payer is not None and self._own and payer.account in self._own:
            own_era = self._own[payer.account].pass_through()
        if self._opened is None:
            return self._era, own_era
        return self.pass_through(), own_era

    def leave(self, ticket: Ticket, verdict: Verdict, payer: Payer | None = None) -> None:
        """Say how a call that was let through has ended."""
        era, own_era = ticket
        if payer is not None and (self._own or verdict == "suspect"):
            self._leave_own(own_era, verdict, payer.account)
        if era != self._era:
            return
        if verdict == "good":
            self._failures = 0
            if self._suspects or self._opened is not None:
                self._forgive()
        elif verdict == "bad" or (verdict == "suspect" and payer is None):
            self.fail()
        elif verdict == "suspect" and payer is not None:
            self._suspect(payer)
        else:
            self.rest()

    @property
    def callers(self) -> int:
        """How many callers meet a circuit of their own that is not closed."""
        return sum(circuit.state != "closed" for circuit in self._own.values())

    @property
    def most_failures(self) -> int:
        """How many there were in a row, for all or for one caller."""
        found = [self._failures, *(circuit.failures for circuit in self._own.values())]
        return max(found) + (self._suspected if self.state != "closed" else 0)

    def _forgive(self) -> None:
        self._suspects.clear()
        self._suspected = 0
        self.close()

    def _suspect(self, payer: Payer) -> None:
        self._suspects.add(payer.excess or payer.quota)
        self._suspected += 1
        self.rest()
        if len(self._suspects) < _ENOUGH_CALLERS:
            return
        is_probe = self._opened is not None
        if is_probe or self._failures_to_open <= self._suspected + self._failures:
            self._suspects.clear()
            self.open()

    def _leave_own(self, era: int, verdict: Verdict, account: Account) -> None:
        own = self._own.get(account)
        if verdict == "good":
            if own is not None and own.era == era:
                del self._own[account]
        elif verdict == "suspect":
            if own is None:
                own = self._own.keep(account, self._circuit())
            if own.era == era:
                own.fail()
                if self._opened is not None:  # who failed as the probe of all is no probe again
                    own.open()
        elif own is not None and own.era == era:
            own.rest()

    def _circuit(self) -> Circuit:
        return Circuit(
            failures_to_open=self._failures_to_open,
            cooldown_seconds=self._cooldown_seconds,
            clock=self._clock,
        )


class Breaking:
    """An Agent behind a breaker."""

    def __init__(self, agent: Agent, breaker: Breaker) -> None:
        """Several agents may share the breaker of their endpoint."""
        self._agent = agent
        self._breaker = breaker

    async def __call__(self, call: Call, out: Output, /) -> End:
        """Answer, unless the circuit is open."""
        payer = call.payer
        ticket = self._breaker.enter(payer)
        verdict: Verdict = "neither"
        try:
            end = await self._agent(call, out)
            verdict = judge(end.error()) if type(end) is Failed else "good"
        except Exception as error:
            verdict = judge(error)
            raise
        finally:
            self._breaker.leave(ticket, verdict, payer)
        return end


def judge(error: Exception) -> Verdict:
    """What an error says about the callee."""
    by = error.facts.get("by") if isinstance(error, CarnetError) else None
    if by in {BY_PEER, BY_CALLEE} or isinstance(error, _ANSWERS):
        return "good"
    if by == BY_CALLER or isinstance(error, CircuitOpen | EgressRefused | Ours):
        return "neither"
    if isinstance(error.__cause__, Unanswered):  # a kept connection ends some time
        return "neither"
    if isinstance(error, PeerUnreachable) or isinstance(error.__cause__, NotSent):
        return "bad"
    return "good" if isinstance(error, PeerBusy) and not _is_unexplained(error) else "suspect"


def _is_unexplained(error: PeerBusy) -> bool:
    status = error.facts.get("peer_status")
    is_fault = isinstance(status, int) and status >= _SERVER_ERROR
    return is_fault and error.facts.get("peer_code") == UNRECOGNISED
