"""Several agents called at once out of one turn, as one piece of work.

Law 1. The places of the calls are taken when the fan-out is made, in the order of the list: a turn
       that runs again makes the same children, and answers stand in that order, whichever came
       first.
Law 2. Nothing of it outlives it: whoever leaves, is cancelled or has enough answers ends every call
       that is under way, and waits until it has let go.
Law 3. It fails as soon as fewer answers can still come than are wanted; as its policy says it waits
       for the others first, or tells failures beside the answers. What was cancelled is no failure.
Law 4. What a branch asks for surfaces once the others have ended, and only if the answers do not
       suffice without it; else it is taken back, and ends with the turn.
"""

import asyncio
from collections.abc import AsyncIterator, Generator, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Literal, Protocol, Self, get_args

from msgspec import Struct
from msgspec.structs import replace

from carnet.core.messages.events import Event, joined_text
from carnet.errors import Cancelled, CarnetError, ProviderTimeout
from carnet.runtime.stream import closing
from carnet.runtime.visit.callee import Callee, Prompt
from carnet.runtime.visit.interrupts import AskingVisit, Paused

MOST_BRANCHES: Final = 64
OnFailure = Literal["fail_fast", "fail_late", "collect"]
BranchState = Literal["done", "failed", "cancelled"]


class Branch(Struct, frozen=True, eq=False):
    """One call of a fan-out: whom, and what is special about it."""

    to: str
    prompt: Prompt | None = None  # None: that of all
    system: str | None = None
    timeout: float | None = None  # seconds; None: that of all
    auth: str | None = None  # who pays, as for `visit.peer`
    parameters: Mapping[str, Any] = {}


class BranchAnswer(Struct, frozen=True, kw_only=True, eq=False):
    """How one of them has ended."""

    place: int  # in the list
    to: str
    state: BranchState
    text: str = ""
    events: tuple[Event, ...] = ()
    error: CarnetError | None = None  # of one that is not done


class _AskedFor(Struct, frozen=True, eq=False):
    """What a branch waits for, by the ids of the questions."""

    place: int
    ids: frozenset[str]


class FansOut(Protocol):
    """The turn that the calls are made out of."""

    def peer(self, address: str, *, auth: str | None = None) -> Callee:
        """Another agent."""

    def withdraw(self, ids: frozenset[str]) -> None:
        """Ask for these no more."""


class FanOut:
    """Calls that are made together: await it, or hold it with `async with` and read as they come.

    async with visit.fan_out(["@a@x.example", "@b@y.example"], visit.text) as fan:
        async for answer in fan:
            ...  # as they come; `fan.cancel(1)` ends one of them
    """

    def __init__(
        self,
        visit: FansOut,
        branches: Sequence[Branch],
        *,
        first: int | None,
        timeout: float | None,
        on_failure: OnFailure,
    ) -> None:
        """Made by `visit.fan_out`; takes the places of the calls and makes none yet."""
        _judge(branches, first, on_failure)
        self._visit = visit
        self._branches = branches
        self._wanted = len(branches) if first is None else first
        self._on_failure = on_failure
        self._seconds = [
            _seconds(timeout if each.timeout is None else each.timeout) for each in branches
        ]
        callees = [visit.peer(each.to, auth=each.auth) for each in branches]
        self._streams = [
            callee(
                _prompted(each.prompt, each), system=each.system, stream=False, **each.parameters
            )
            for callee, each in zip(callees, branches, strict=True)
        ]
        self._tasks: list[asyncio.Task[BranchAnswer | _AskedFor]] = []
        self._pending: set[asyncio.Task[BranchAnswer | _AskedFor]] = set()
        self._ended: dict[int, BranchAnswer] = {}
        self._asked: dict[int, _AskedFor] = {}

    @property
    def answers(self) -> list[BranchAnswer]:
        """How all of them have ended, in the order of the list; those that were left: cancelled."""
        places = range(len(self._branches))
        return [self._ended.get(place) or self._left(place) for place in places]

    def cancel(self, place: int) -> None:
        """End one of them; the others go on. One that has ended stays as it is."""
        if not self._tasks:
            raise RuntimeError("it has not begun: use 'async with'")
        self._tasks[place].cancel()

    def __await__(self) -> Generator[Any, None, list[BranchAnswer]]:
        """Make the calls, and wait for their answers."""
        return self._gathered().__await__()

    async def _gathered(self) -> list[BranchAnswer]:
        async with self:
            async for _ in self:
                pass
        return self.answers

    async def __aenter__(self) -> Self:
        """Make the calls."""
        if self._tasks:
            raise RuntimeError("a fan-out is made once")
        loop = asyncio.get_running_loop()
        places = range(len(self._branches))
        self._tasks = [loop.create_task(self._ask(place)) for place in places]
        self._pending = set(self._tasks)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End what is under way; what was asked for is asked no more, unless the turn waits."""
        await self._stop()
        if not isinstance(error, Paused):
            self._take_back()

    async def __aiter__(self) -> AsyncIterator[BranchAnswer]:
        """The answers as they come, until there are enough."""
        while self._pending and not self._is_enough():
            done, self._pending = await asyncio.wait(
                self._pending, return_when=asyncio.FIRST_COMPLETED
            )
            for place, task in enumerate(self._tasks):
                if task in done and (answer := self._take(place, task)) is not None:
                    yield answer
            if self._on_failure == "fail_fast":
                self._refuse_too_few()
        await self._stop()
        if self._is_enough():
            return
        if self._on_failure != "collect":
            self._refuse_too_few()
        if self._asked:
            raise Paused

    def _take(
        self, place: int, task: asyncio.Task[BranchAnswer | _AskedFor]
    ) -> BranchAnswer | None:
        found = self._left(place) if task.cancelled() else task.result()
        if isinstance(found, _AskedFor):
            self._asked[place] = found
            return None
        self._ended[place] = found
        return found

    def _is_enough(self) -> bool:
        return self._count("done") >= min(self._wanted, self._possible())

    def _possible(self) -> int:
        """How many could answer but for failures."""
        return len(self._branches) - self._count("cancelled")

    def _count(self, state: BranchState) -> int:
        return [answer.state for answer in self._ended.values()].count(state)

    def _refuse_too_few(self) -> None:
        """Raise what the first of the list has failed with, if too few can answer."""
        possible = self._possible()
        if possible - self._count("failed") >= min(self._wanted, possible):
            return
        for answer in self.answers:
            if answer.state == "failed" and answer.error is not None:
                raise answer.error

    async def _stop(self) -> None:
        """End what is under way; one that has ended meanwhile counts."""
        for task in self._pending:
            task.cancel()
        pending, self._pending = self._pending, set()
        if pending:
            await asyncio.wait(pending)
        for place, task in enumerate(self._tasks):
            if task in pending and not task.cancelled() and task.exception() is None:
                self._take(place, task)

    def _take_back(self) -> None:
        if self._asked:
            self._visit.withdraw(frozenset().union(*(each.ids for each in self._asked.values())))
            self._asked = {}

    async def _ask(self, place: int) -> BranchAnswer | _AskedFor:
        to = self._branches[place].to
        timer = asyncio.timeout(self._seconds[place])
        try:
            async with timer, closing(self._streams[place]) as events:
                answered = [event async for event in events]
        except Paused as paused:
            return _AskedFor(place, paused.ids)
        except CarnetError as error:
            return BranchAnswer(place=place, to=to, state="failed", error=error)
        except TimeoutError:
            if not timer.expired():
                raise
            late = ProviderTimeout("its branch of the fan-out has no time left")
            return BranchAnswer(place=place, to=to, state="failed", error=late)
        text = joined_text(answered)
        return BranchAnswer(place=place, to=to, state="done", text=text, events=tuple(answered))

    def _left(self, place: int) -> BranchAnswer:
        to = self._branches[place].to
        return BranchAnswer(place=place, to=to, state="cancelled", error=Cancelled())


def _judge(branches: Sequence[Branch], first: int | None, on_failure: str) -> None:
    if len(branches) > MOST_BRANCHES:
        raise ValueError(f"a fan-out has at most {MOST_BRANCHES} branches, not {len(branches)}")
    if first is not None and not 1 <= first <= len(branches):
        raise ValueError(f"'first' is from 1 to {len(branches)}, not {first!r}")
    if on_failure not in get_args(OnFailure):
        raise ValueError(f"on_failure is one of {', '.join(get_args(OnFailure))}")


def _seconds(seconds: float | None) -> float | None:
    if seconds is not None and not seconds > 0:
        raise ValueError(f"a timeout is a number of seconds above 0, not {seconds!r}")
    return seconds


class CallingVisit(AskingVisit):
    """The part of a visit that calls others."""

    def peer(self, address: str, *, auth: str | None = None) -> Callee:
        """Another agent."""
        raise NotImplementedError

    def fan_out(
        self,
        branches: Sequence[str | Branch],
        prompt: Prompt | None = None,
        *,
        first: int | None = None,
        timeout: float | None = None,
        on_failure: OnFailure = "fail_fast",
    ) -> FanOut:
        """Call several agents at once: `answers = await visit.fan_out(["a", "b"], visit.text)`.

        Answers stand in the order of the list. Leaving ends all that is under way.

        Args:
            branches: Addresses, or a `carnet.Branch` for what one of them has of its own.
            prompt: What they are asked that have no prompt of their own.
            first: How many answers are enough; all by default. The others are cancelled then.
            timeout: Seconds that each of them has.
            on_failure: "fail_fast" ends all as soon as too few can answer, "fail_late" lets the
                others end first, "collect" tells failures beside the answers.
        """
        given = [Branch(each) if isinstance(each, str) else each for each in branches]
        whole = [
            each if each.prompt is not None else replace(each, prompt=_prompted(prompt, each))
            for each in given
        ]
        return FanOut(self, whole, first=first, timeout=timeout, on_failure=on_failure)


def _prompted(prompt: Prompt | None, branch: Branch) -> Prompt:
    if prompt is None:
        raise TypeError(
            f"what is {branch.to} asked? Give a prompt to the fan-out, or to its Branch"
        )
    return prompt
