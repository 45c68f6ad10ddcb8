"""How often, how long and whether at all somebody is called: for participants and for own calls.

    policy = carnet.CallPolicy(seconds=30, retries=2, failures_to_open=5)
    rates = await policy.call(fetch_rates, "EUR", callee="rates.example")

Law 1. A deadline holds whatever is called does: it is cancelled, waited for a moment, and let go.
Law 2. A cancellation is nobody's failure: it is never repeated, and no breaker counts it.
Law 3. Repeated is what could not be reached or did not answer in time, never a refusal. An open
       circuit ends the attempts at once.
Law 4. A breaker lives as long as the process, for its callee: not as long as a run or a policy.
"""

import asyncio
import errno
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, Final, TypeVar

from msgspec import Struct

from carnet.core.memo import Memo
from carnet.errors import AgentFailed, Cancelled, CarnetError, CircuitOpen, ProviderTimeout
from carnet.ports.world.clock import Clock, Ids
from carnet.runtime.system import SystemClock, SystemIds
from carnet.runtime.wrappers.breaker import Breaker, Verdict, judge
from carnet.runtime.wrappers.retrying import may_repeat, pause_after
from carnet.runtime.wrappers.timed import BY_AGENT, BY_CALLER, GRACE_SECONDS

logger = logging.getLogger("carnet.agent")

T = TypeVar("T")
Backoff = float | Callable[[int], float]  # seconds; a function is given the attempt, from 1

MOST_ATTEMPTS_AGAIN: Final = 100
MOST_BREAKERS: Final = 1024
_DEEPEST_CAUSE: Final = 8
_UNREACHED: Final = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN})

_CLOCK: Final = SystemClock()
_IDS: Final = SystemIds()
_breakers: Final[Memo[tuple[str, int, float], Breaker]] = Memo(MOST_BREAKERS)
_LET_GO: Final[set[asyncio.Task[Any]]] = set()  # the loop alone would not keep them alive


class CallPolicy(Struct, frozen=True, kw_only=True, eq=False):
    """How somebody is called."""

    seconds: float | None = None  # that one attempt may take
    retries: int = 0  # further attempts
    backoff: Backoff | None = None  # by default 0.25 s doubled, at the most 8, and a chance more
    retry_on: Callable[[Exception], bool] | None = None  # in place of what Law 3 says
    failures_to_open: int | None = None  # in a row; None: there is no breaker
    cooldown_seconds: float = 30.0
    breaker: Breaker | None = None  # one of your own, shared by all that have it

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        if self.seconds is not None and not self.seconds > 0:
            raise ValueError("seconds is more than 0")
        if not 0 <= self.retries <= MOST_ATTEMPTS_AGAIN:
            raise ValueError(f"retries is from 0 to {MOST_ATTEMPTS_AGAIN}")
        if self.failures_to_open is not None and self.failures_to_open < 1:
            raise ValueError("failures_to_open is at least 1")

    async def call(
        self,
        function: Callable[..., Coroutine[Any, Any, T]],
        /,
        *args: Any,
        callee: str | None = None,
        **more: Any,
    ) -> T:
        """Call a coroutine function of your own under this policy.

        `callee` is whom it reaches, for the breaker; by default the function itself.
        """
        breaker = self.breaker_of(callee or described(function))
        for attempt in range(self.retries + 1):
            try:
                with Entered(breaker):
                    return await within(function(*args, **more), self.seconds)
            except Exception as error:
                seconds = self.pause(error, attempt, _IDS)
                if seconds is None:
                    raise
            await asyncio.sleep(seconds)
        raise AssertionError("the last attempt returns or raises")

    @property
    def asks(self) -> bool:
        """Whether functions that it was given say what is repeated, and when."""
        return self.retry_on is not None or callable(self.backoff)

    def pause(self, error: Exception, attempt: int, ids: Ids) -> float | None:
        """Seconds to wait after an attempt, counted from 0; None if it was the last one."""
        if attempt >= self.retries or isinstance(error, CircuitOpen):
            return None
        if not (self.retry_on or is_passing)(error):
            return None
        asked = error if isinstance(error, CarnetError) else CarnetError()
        if self.backoff is None:
            return pause_after(asked, min(attempt, 16), ids.fraction())
        wanted = self.backoff(attempt + 1) if callable(self.backoff) else self.backoff
        return max(0.0, wanted, asked.retry_after or 0)

    def breaker_of(self, callee: str, clock: Clock = _CLOCK) -> Breaker | None:
        """The breaker of whom it calls, if there is to be one."""
        if self.breaker is not None or self.failures_to_open is None:
            return self.breaker
        key = (callee, self.failures_to_open, self.cooldown_seconds)
        found = _breakers.get(key)
        if found is None:
            found = Breaker(
                failures_to_open=self.failures_to_open,
                cooldown_seconds=self.cooldown_seconds,
                clock=clock,
            )
            _breakers.keep(key, found)
        return found

    def facts(self) -> dict[str, object]:
        """What a definition is recognised by."""
        backoff = recognised(self.backoff) if callable(self.backoff) else self.backoff
        return {
            "seconds": self.seconds,
            "retries": self.retries,
            "backoff": backoff,
            "retry_on": None if self.retry_on is None else recognised(self.retry_on),
            "failures_to_open": self.failures_to_open,
            "cooldown_seconds": self.cooldown_seconds,
        }


class Entered:
    """One attempt behind a breaker: raises CircuitOpen on the way in, judges on the way out."""

    def __init__(self, breaker: Breaker | None) -> None:
        """Without a breaker everything passes."""
        self._breaker = breaker
        self._ticket = (0, 0)

    def __enter__(self) -> None:
        if self._breaker is not None:
            self._ticket = self._breaker.enter()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._breaker is None:
            return
        verdict: Verdict = "good" if error is None else "neither"
        if isinstance(error, Exception) and not isinstance(error, Cancelled):
            verdict = judge(error)
        self._breaker.leave(self._ticket, verdict)


async def within(work: Coroutine[Any, Any, T], seconds: float | None) -> T:
    """What the work gives, or ProviderTimeout: also where it does not look at a cancellation."""
    task = asyncio.get_running_loop().create_task(work)
    try:
        await asyncio.wait([task], timeout=seconds)
    except BaseException:
        await leave(task)
        raise
    if task.done():
        return result_of(task)
    await leave(task)
    raise late(seconds or 0)


def result_of(task: "asyncio.Task[T]") -> T:
    """What a task gave; that it was cancelled by nobody who may is its own failure."""
    try:
        return task.result()
    except asyncio.CancelledError:
        raise AgentFailed("it ended by a cancellation that nobody asked for") from None


def late(seconds: float) -> ProviderTimeout:
    """The error of an attempt that took too long."""
    return ProviderTimeout(f"not done in {seconds:.3f} s", by=BY_AGENT)


async def leave(task: "asyncio.Task[Any]") -> None:
    """Cancel a task and wait a moment for it; one that does not end is let go."""
    task.add_done_callback(_discard_end)
    if task.done():
        return
    task.cancel()
    _LET_GO.add(task)
    await asyncio.wait([task], timeout=GRACE_SECONDS)
    if not task.done():
        logger.warning("what was called ignores its cancellation and is let go")


def _discard_end(task: "asyncio.Task[Any]") -> None:
    """Take note of how a task ended that nobody waits for."""
    _LET_GO.discard(task)
    if not task.cancelled():
        task.exception()


def is_passing(error: Exception) -> bool:
    """Whether the same call may succeed in a moment."""
    if isinstance(error, ProviderTimeout):
        return error.facts.get("by") != BY_CALLER
    if isinstance(error, CarnetError) and not isinstance(error, AgentFailed):
        return may_repeat(error)
    return any(_is_of_network(cause) for cause in _causes(error))


def _causes(error: BaseException) -> Iterator[BaseException]:
    found: BaseException | None = error
    for _ in range(_DEEPEST_CAUSE):
        if found is None:
            return
        yield found
        found = found.__cause__ or found.__context__


def _is_of_network(error: BaseException) -> bool:
    if isinstance(error, ConnectionError | TimeoutError):
        return True
    return isinstance(error, OSError) and error.errno in _UNREACHED


def described(function: object) -> str:
    """A function by its place and its name."""
    module = getattr(function, "__module__", None) or type(function).__module__
    return f"{module}:{recognised(function)}"


def recognised(function: object) -> str:
    """A function by its name alone: a program and its module are one and the same to a record."""
    return str(getattr(function, "__qualname__", type(function).__qualname__))


async def awaited(value: T | Awaitable[T]) -> T:
    """What a function gave that may be asynchronous."""
    if isinstance(value, Awaitable):
        return await value
    return value
