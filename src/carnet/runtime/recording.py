"""What one turn has said so far: batched, made durable, shown, and at last summed up.

Law 1. One append is on its way at a time; what is said meanwhile goes with the next one.
Law 2. What is not yet durable is bounded: past `MOST_WAITING` events the agent waits.
"""

import asyncio
from collections.abc import Sequence

from carnet.core.call import Call
from carnet.core.events import CHILD, Done, Event, Extension, Failed, Usage, write_events
from carnet.core.turn import Turn
from carnet.errors import CarnetError
from carnet.ports.agent import Target
from carnet.ports.turns import Debit, Fenced, TurnFinish, Turns
from carnet.runtime.live import Live

MOST_WAITING = 1024


class Recording:
    """The record of a turn while it is being made."""

    def __init__(self, *, turns: Turns, call: Call, target: Target, live: Live) -> None:
        """`live` shows the events once they are durable."""
        self._turns = turns
        self._call = call
        self._target = target
        self._live = live
        self._streams = call.ask.stream
        self._waiting: list[Event] = []
        self._sequence = 0
        self._flush: asyncio.Task[None] | None = None
        self._broken: CarnetError | Fenced | None = None
        self._tokens_in: int | None = None
        self._tokens_out: int | None = None
        self._peer_cost: int | None = None
        self._children_cost = 0

    async def hear(self, event: Event) -> None:
        """Take one event of the agent."""
        if type(event) is Usage:
            self._count(event)
            return
        if type(event) is Extension and event.name == CHILD:
            self._children_cost += int(event.payload["cost"])
        self._waiting.append(event)
        if self._streams:
            if self._broken is not None:
                raise self._broken
            if self._flush is None:
                loop = asyncio.get_running_loop()
                self._flush = loop.create_task(self._flush_waiting())
            elif len(self._waiting) > MOST_WAITING:
                await asyncio.shield(self._flush)

    def _count(self, usage: Usage) -> None:
        if usage.tokens_in is not None:
            self._tokens_in = (self._tokens_in or 0) + usage.tokens_in
        if usage.tokens_out is not None:
            self._tokens_out = (self._tokens_out or 0) + usage.tokens_out
        if usage.cost is not None and self._target.is_remote:
            self._peer_cost = (self._peer_cost or 0) + usage.cost

    async def _flush_waiting(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                first = self._sequence
                self._sequence += len(batch)
                await self._turns.append(
                    self._call.record, first, self._sequence - 1, write_events(batch)
                )
                self._live.publish(batch)
        except (CarnetError, Fenced) as error:  # told to the agent's loop at its next event
            self._broken = error
        finally:
            self._flush = None

    async def finish(self, end: Done | Failed, *, now: int) -> tuple[Sequence[Event], Turn]:
        """Make the end durable; the events that go with it and the record with its costs."""
        if self._flush is not None:
            await self._flush
        if self._broken is not None:
            raise self._broken
        batch, self._waiting = self._waiting, []
        failed = isinstance(end, Failed)
        record = await self._turns.finish(
            TurnFinish(
                turn=self._call.record,
                state="failed" if failed else "done",
                payer=self._call.payer,
                events=write_events([*batch, end]),
                first=self._sequence,
                last=self._sequence + len(batch),
                debits=self._debits(served=not failed),
                children_cost=self._children_cost,
                reserve=self._call.reserve,
                now=now,
                tokens_in=self._tokens_in,
                tokens_out=self._tokens_out,
                code=end.code if isinstance(end, Failed) else None,
                retryable=isinstance(end, Failed) and end.retryable,
            )
        )
        return batch, record

    def _debits(self, *, served: bool) -> list[Debit]:
        debits = []
        target = self._target
        if target.is_remote and (served or self._peer_cost):
            debits.append(Debit(target.credit, self._peer_cost or 0))
        if served and (not target.is_remote or not target.price.is_free):
            price = target.price.of(self._tokens_in or 0, self._tokens_out or 0)
            debits.append(Debit(f"agent:{target.name}", price))
        return debits
