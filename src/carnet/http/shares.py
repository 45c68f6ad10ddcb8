"""Shares of the event loop: of what one caller asks for, few steps are made in a round.

A step is what is done without waiting: a request that begins, some words of a stream that are
recorded or written. However many of them one caller has ready, others come between (A99).

Law 1. In a round of the loop, each caller makes `STEPS` steps at the most; the next ones wait, in
       their order, and are made in the next rounds. Nobody waits for another's.
Law 2. Nothing is kept for who has nothing ready.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

STEPS: Final = 4
WORDS: Final = 16  # events of a stream that are one step

Caller = str | bytes
Act = Callable[[], object]


class LoopShares:
    """Who has made how many steps in this round, and whose wait."""

    __slots__ = ("_made", "_waiting", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Nobody has made one yet."""
        self.loop = loop
        self._made: dict[Caller, int] = {}
        self._waiting: dict[Caller, deque[Act]] = {}

    @property
    def callers(self) -> int:
        """How many have made a step in this round, or wait for the next."""
        return len(self._made.keys() | self._waiting.keys())

    def take(self, caller: Caller) -> bool:
        """Whether the caller may make a step now."""
        made = self._made
        if not made:
            self.loop.call_soon(self._next)
        if caller not in made:
            made[caller] = 1
        elif made[caller] < STEPS:
            made[caller] += 1
        else:
            return False
        return True

    def later(self, caller: Caller, act: Act) -> None:
        """Make a step when it is the caller's turn, in the next round or later."""
        if not self._made and not self._waiting:
            self.loop.call_soon(self._next)
        self._waiting.setdefault(caller, deque()).append(act)

    async def step(self, caller: Caller) -> None:
        """Let others come between, and wait until the caller may make a step."""
        turn = self.loop.create_future()
        self.later(caller, partial(_let_go_on, turn))
        await turn

    def _next(self) -> None:
        """Begin a round with those that wait."""
        made, waiting = self._made, self._waiting
        made.clear()
        try:
            for caller in tuple(waiting):
                acts = waiting[caller]
                count = made[caller] = min(STEPS, len(acts))
                for _ in range(count):
                    acts.popleft()()
                if not acts:
                    del waiting[caller]
        finally:  # the next round comes whatever becomes of this one
            if made:
                self.loop.call_soon(self._next)


def _let_go_on(turn: "asyncio.Future[None]") -> None:
    if not turn.done():  # else nobody waits for it any more
        turn.set_result(None)


_latest: list[LoopShares] = []  # of the loop that runs; a process has one, tests have many in turn


def shares_of(loop: asyncio.AbstractEventLoop) -> LoopShares:
    """Those of this event loop."""
    if not _latest or _latest[0].loop is not loop:
        _latest[:] = [LoopShares(loop)]
    return _latest[0]
