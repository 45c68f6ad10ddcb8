"""Tasks at A2A agents whose calls wait here: they are cancelled when those are.

A call that waits runs nothing: where its task is stands in what it asks for.

Law 1. What a call waits for is read before it is cancelled, and its task cancelled after.
Law 2. Nobody waits longer for that than asking for an end may take, and a task whose end nobody
       hears of ends when it ends.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from carnet.core.call import Target
from carnet.core.chain.turn import Turn
from carnet.core.messages.interrupt import Interrupt, InterruptRecord
from carnet.errors import CarnetError
from carnet.ports.calls.agent import Router

Asked = list[tuple[Target, list[Interrupt]]]


class AskedByTurns(Protocol):
    """Tells what turns wait for."""

    async def interrupts(self, turn: Turn) -> Sequence[InterruptRecord]:
        """All that a turn has asked for."""


class WaitingTasks:
    """Ends the tasks of calls that wait."""

    def __init__(self, questions: AskedByTurns, router: Router) -> None:
        """`router` finds whom a turn has called."""
        self._questions = questions
        self._router = router

    async def of(self, turns: Sequence[Turn]) -> Asked:
        """What those ask for that wait for an agent which can be told."""
        found: Asked = []
        for turn in turns:
            target = self._target(turn) if turn.state == "waiting" else None
            if target is not None:
                records = await self._questions.interrupts(turn)
                asked = [one.interrupt for one in records if one.status == "open"]
                found.append((target, asked))
        return found

    async def end(self, asked: Asked) -> None:
        """Ask for the ends of their tasks."""
        each = [target.abandon(what) for target, what in asked if target.abandon is not None]
        await asyncio.gather(*each)

    def _target(self, turn: Turn) -> Target | None:
        try:
            target = self._router.find(turn.agent)
        except CarnetError:  # it is not here any more
            return None
        return None if target.abandon is None else target
