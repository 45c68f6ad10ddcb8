"""Several agents called at once out of one turn, as one piece of work.

Law 1. The places of the calls are taken when the fan-out is made, in the order of the list: a turn
       that runs again makes the same children, and answers stand in that order, whichever came
       first.
Law 2. Nothing of it outlives it: whoever leaves, is cancelled or has enough answers ends every call
       that is under way, and waits until it has let go.
Law 3. It fails as soon as fewer answers can still come than are wanted; as its policy says it waits
       for the others first, or tells failures beside the answers. What was cancelled is no failure.
Law 4. What a branch asks for is shown while the others go on, and the branch goes on when it is
       answered. The turn waits once the others have ended, and only if the answers do not suffice
       without it; else it is taken back, and ends with the turn.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Protocol, Self

from msgspec import Struct

from carnet.core.messages.events import Event, joined_text
from carnet.errors import Cancelled, CarnetError, Declined, ProviderTimeout
from carnet.runtime.stream import closing
from carnet.runtime.visit.callee import Callee
from carnet.runtime.visit.fan_out.branch import (
    Branch,
    BranchAnswer,
    BranchState,
    Wanted,
    judge,
    prompt_of,
    seconds_of,
)
from carnet.runtime.visit.fan_out.questions import Asks, BranchQuestions
from carnet.runtime.visit.fan_out.shares import Share
from carnet.runtime.visit.interrupts import Paused


class _AskedFor(Struct, frozen=True, eq=False):
    """What a branch waits for, by the ids of the questions."""

    place: int
    ids: frozenset[str]


_BranchTask = asyncio.Task[BranchAnswer | _AskedFor]


class FansOut(Asks, Protocol):
    """The turn that the calls are made out of."""

    def peer(self, address: str, *, auth: str | None = None, budget: Share | None = None) -> Callee:
        """Another agent."""

    def take_place(self) -> int:
        """A place among the calls out of it."""

    def at_place(
        self, place: int, make: Callable[[], AsyncIterator[Event]]
    ) -> AsyncIterator[Event]:
        """Make a call that has this place, which was taken."""

    def withdraw(self, ids: frozenset[str]) -> None:
        """Ask for these no more."""

    def offer_without(self, ids: frozenset[str]) -> None:
        """Say of these that the others can go on without."""

    def keep_back(self, ids: set[str]) -> None:
        """Bring nobody the answers to these."""


class FanOut:
    """Calls that are made together: await it, or hold it with `async with` and read as they come.

    async with visit.fan_out(["@a@x.example", "@b@y.example"], visit.text) as fan:
        async for answer in fan:
            ...  # as they come; `fan.cancel(1)` ends one of them
    """

    def __init__(self, visit: FansOut, branches: Sequence[Branch], wanted: Wanted) -> None:
        """Made by `visit.fan_out`; takes the places of the calls and makes none yet."""
        judge(branches, wanted)
        self._visit = visit
        self._branches = branches
        self._wanted = wanted
        self._enough = len(branches) if wanted.first is None else wanted.first
        self._questions = BranchQuestions(visit, offers_without=wanted.without)
        visit.keep_back(self._questions.left)
        self._seconds = [seconds_of(each, wanted) for each in branches]
        self._callees = [
            visit.peer(each.to, auth=each.auth, budget=each.budget) for each in branches
        ]
        self._ordinals = [visit.take_place() for _ in branches]
        self._streams = [self._stream(place) for place in range(len(branches))]
        self._tasks: list[_BranchTask] = []
        self._pending: set[_BranchTask] = set()
        self._looking: asyncio.Task[Mapping[int, bool]] | None = None  # for answers
        self._ended: dict[int, BranchAnswer] = {}
        self._asked: dict[int, _AskedFor] = {}

    @property
    def answers(self) -> list[BranchAnswer]:
        """How all of them have ended, in the order of the list; those that were left: cancelled."""
        places = range(len(self._branches))
        return [self._ended.get(place) or self._left(place) for place in places]

    @property
    def ordinals(self) -> Sequence[int]:
        """The places of their calls among those of the turn."""
        return self._ordinals

    @property
    def asking(self) -> list[int]:
        """The places of those that ask for something, and wait for the answer."""
        return sorted(self._asked)

    def cancel(self, place: int) -> None:
        """End one of them; the others go on. One that has ended stays as it is."""
        if not self._tasks:
            raise RuntimeError("it has not begun: use 'async with'")
        self._tasks[place].cancel()
        if place in self._asked:
            self._end_asking(place)
            self._ended[place] = self._left(place)

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
        for place in await self._questions.close():  # which runs on with these answers then
            self._end_asking(place)
        if not isinstance(error, Paused):
            for place in self.asking:
                self._end_asking(place)

    async def __aiter__(self) -> AsyncIterator[BranchAnswer]:
        """The answers as they come, until there are enough."""
        while not self._is_enough():
            ended = await self._next()
            if ended is None:
                break
            for answer in ended:
                yield answer
            if self._wanted.on_failure == "fail_fast":
                self._refuse_too_few()
        await self._stop()
        if self._is_enough():
            return
        if self._wanted.on_failure != "collect":
            self._refuse_too_few()
        if self._asked:
            raise Paused

    async def _next(self) -> list[BranchAnswer] | None:
        """Those that have ended next; None where all that are left wait for an answer."""
        if self._pending:
            return await self._wait()
        await self._stop()  # to look for answers, before what has none is closed
        left = self._go_on(await self._questions.close())
        return left if left or self._pending else None

    async def _wait(self) -> list[BranchAnswer]:
        """Wait for an end, or for the answer to a question; those that have ended."""
        if self._asked and self._looking is None and self._visit.surface is not None:
            answered = self._questions.answered()
            self._looking = asyncio.get_running_loop().create_task(answered)
        waits: set[asyncio.Task[Any]] = {*self._pending}
        if self._looking is not None:
            waits.add(self._looking)
        done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        self._pending -= done
        found = [self._take(place, task) for place, task in enumerate(self._tasks) if task in done]
        if self._looking is not None and self._looking in done:
            looking, self._looking = self._looking, None
            found += self._go_on(looking.result())
        return [answer for answer in found if answer is not None]

    def _go_on(self, answered: Mapping[int, bool]) -> list[BranchAnswer]:
        """Call those again who were answered; gives those that are left instead."""
        left: list[BranchAnswer] = []
        for place, is_left in answered.items():
            if self._end_asking(place) is None:
                continue
            if is_left:
                left.append(self._leave(place))
                continue
            self._streams[place] = self._stream(place)
            task = asyncio.get_running_loop().create_task(self._ask(place))
            self._tasks[place] = task
            self._pending.add(task)
        return left

    def _take(self, place: int, task: _BranchTask) -> BranchAnswer | None:
        found = self._left(place) if task.cancelled() else task.result()
        if not isinstance(found, _AskedFor):
            self._ended[place] = found
            return found
        if self._questions.take(place, found.ids):
            self._visit.withdraw(found.ids)
            return self._leave(place)
        self._asked[place] = found
        if self._wanted.without:
            self._visit.offer_without(found.ids)
        return None

    def _is_enough(self) -> bool:
        return self._count("done") >= min(self._enough, self._possible())

    def _possible(self) -> int:
        """How many could answer but for failures."""
        return len(self._branches) - self._count("cancelled")

    def _count(self, state: BranchState) -> int:
        return [answer.state for answer in self._ended.values()].count(state)

    def _refuse_too_few(self) -> None:
        """Raise what the first of the list has failed with, if too few can answer."""
        possible = self._possible()
        if possible - self._count("failed") >= min(self._enough, possible):
            return
        for answer in self.answers:
            if answer.state == "failed" and answer.error is not None:
                raise answer.error

    async def _stop(self) -> None:
        """End what is under way; one that has ended meanwhile counts."""
        pending: set[asyncio.Task[Any]] = {*self._pending}
        if self._looking is not None:
            pending.add(self._looking)
        self._pending, self._looking = set(), None
        for task in pending:
            task.cancel()
        if pending:
            await asyncio.wait(pending)
        for place, task in enumerate(self._tasks):
            if task in pending and not task.cancelled() and task.exception() is None:
                self._take(place, task)

    def _end_asking(self, place: int) -> _AskedFor | None:
        """Ask no more for what a branch has asked for."""
        asked = self._asked.pop(place, None)
        self._questions.drop(place)
        if asked is not None:
            self._visit.withdraw(asked.ids)
        return asked

    def _stream(self, place: int) -> AsyncIterator[Event]:
        """A branch that is called again has the place that it had."""
        each = self._branches[place]
        prompt = prompt_of(each.prompt, each)
        make = partial(
            self._callees[place], prompt, system=each.system, stream=False, **each.parameters
        )
        return self._visit.at_place(self._ordinals[place], make)

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

    def _leave(self, place: int) -> BranchAnswer:
        """Go on without one of them, as was answered."""
        to = self._branches[place].to
        left = BranchAnswer(place=place, to=to, state="cancelled", error=Declined())
        self._ended[place] = left
        return left

    def _left(self, place: int) -> BranchAnswer:
        to = self._branches[place].to
        return BranchAnswer(place=place, to=to, state="cancelled", error=Cancelled())
