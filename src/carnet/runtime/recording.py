"""What one turn has said so far: batched, made durable, shown, and at last summed up.

Law 1. What cannot be recorded is not said: an event is encoded when it is heard.
Law 2. One append is on its way at a time; what is said meanwhile goes with the next one, and so
       does what an append could not write.
Law 3. What is not yet durable, what nobody has taken and what one turn may say are bounded; at
       the first two the agent waits, at the last it has failed.
Law 4. A payer with a limit is never debited more than was reserved. A cost that nobody told is
       debited as the reservation where there is one, and is shown as unknown where there is none.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from carnet.core.call import Call
from carnet.core.events import (
    CHILD,
    UNKNOWN_COST,
    Done,
    Event,
    Extension,
    Failed,
    Usage,
    join_events,
    write_event,
)
from carnet.core.turn import Turn
from carnet.errors import (
    AgentFailed,
    CarnetError,
    ChainFinal,
    DefinitionChanged,
    DepthExceeded,
    IdempotencyMismatch,
    Internal,
    OutcomeUnknown,
    PeerRefused,
    Refused,
)
from carnet.ports.turns import Debit, Fenced, TurnFinish, Turns, Use
from carnet.runtime.callbacks import letters_of
from carnet.runtime.live import Live
from carnet.wire.json import MAX_INTEGER

logger = logging.getLogger("carnet.runtime")

MOST_WAITING = 1024  # events
MOST_WAITING_BYTES = 64 * 1024
MOST_BYTES = 64 * 1024 * 1024  # of one turn


class Recording:
    """The record of a turn while it is being made."""

    def __init__(
        self,
        *,
        turns: Turns,
        call: Call,
        live: Live,
        on_broken: Callable[[], None],
        new_id: Callable[[], str],
    ) -> None:
        """`live` shows the events once they are durable; `on_broken` is told if they cannot be.

        `new_id` names the letters that tell of the end.
        """
        self._turns = turns
        self._call = call
        self._target = call.target
        self._live = live
        self._on_broken = on_broken
        self._new_id = new_id
        self._streams = call.ask.stream
        self._waiting: list[Event] = []
        self._encoded: list[bytes] = []
        self._waiting_bytes = 0
        self._said_bytes = 0
        self._sequence = 0
        self._flush: asyncio.Task[None] | None = None
        self.broken: CarnetError | Fenced | None = None  # why it cannot go on
        self._tokens_in: int | None = None
        self._tokens_out: int | None = None
        self._peer_cost: int | None = None
        self._children_cost = 0
        self._has_spoken = False

    def take(self, events: Sequence[Event]) -> None:
        """Take the events of an answer in one piece."""
        self._take_notes()
        for event in events:
            self._hear(event)

    async def hear(self, event: Event) -> None:
        """Take one event of the agent."""
        self._take_notes()
        if not self._hear(event) or not self._streams:
            return
        if self.broken is not None:
            raise self.broken
        if self._flush is None:
            self._flush = asyncio.get_running_loop().create_task(self._flush_waiting())
        elif len(self._waiting) > MOST_WAITING or self._waiting_bytes > MOST_WAITING_BYTES:
            await asyncio.shield(self._flush)
        if self._live.is_ahead:
            await self._live.room()

    def _hear(self, event: Event) -> bool:
        """Count or keep an event; whether it was kept."""
        if type(event) is Usage:
            self._count(event)
            if self._call.allowance is not None:  # what is among the notes was subtracted before
                self._call.allowance.use((event.tokens_in or 0) + (event.tokens_out or 0))
            return False
        self._keep(event)
        self._has_spoken = True
        return True

    def _keep(self, event: Event) -> None:
        try:
            encoded = write_event(event)
        except (TypeError, ValueError, RecursionError) as error:
            raise AgentFailed(f"said what cannot be recorded: {error}") from None
        self._said_bytes += len(encoded)
        if self._said_bytes > MOST_BYTES and not isinstance(event, Done | Failed):
            raise AgentFailed(f"said more than {MOST_BYTES} bytes")
        self._waiting.append(event)
        self._encoded.append(encoded)
        self._waiting_bytes += len(encoded)
        if type(event) is Extension and event.name == CHILD:
            self._children_cost += int(event.payload["cost"])

    def _take_notes(self) -> None:
        notes = self._call.notes
        while notes:
            note = notes.pop(0)
            if type(note) is Usage:
                self._count(note)
            else:
                self._keep(note)

    def _count(self, usage: Usage) -> None:
        if usage.tokens_in is not None:
            self._tokens_in = _sum(self._tokens_in, usage.tokens_in)
        if usage.tokens_out is not None:
            self._tokens_out = _sum(self._tokens_out, usage.tokens_out)
        if usage.cost is not None and self._target.is_remote:
            self._peer_cost = (self._peer_cost or 0) + usage.cost

    async def _flush_waiting(self) -> None:
        try:
            while self._waiting:
                batch, encoded = self._take()
                last = self._sequence + len(batch) - 1
                try:
                    await self._turns.append(
                        self._call.record, self._sequence, last, join_events(encoded)
                    )
                except BaseException:
                    self._waiting[:0], self._encoded[:0] = batch, encoded
                    raise
                self._sequence = last + 1
                self._live.publish(batch, size=sum(map(len, encoded)))
        except (CarnetError, Fenced) as error:
            self._break(error)
        except Exception as error:  # noqa: BLE001  a task of ours must not fail unseen
            self._break(Internal(f"{type(error).__name__}: {error}"))
        finally:
            self._flush = None

    def _break(self, error: CarnetError | Fenced) -> None:
        """Let nothing more be said: the agent may be silent for long, and nobody hears it."""
        self.broken = error
        self._on_broken()

    def _take(self) -> tuple[list[Event], list[bytes]]:
        taken = self._waiting, self._encoded
        self._waiting, self._encoded = [], []
        self._waiting_bytes = 0
        return taken

    async def finish(self, end: Done | Failed, *, now: int) -> tuple[Sequence[Event], Turn]:
        """Make the end durable; the events that go with it and the record with its costs."""
        if self._flush is not None:
            await self._flush
        if isinstance(self.broken, Fenced | OutcomeUnknown):
            raise self.broken  # what may have been written would be said twice
        self._take_notes()
        served = isinstance(end, Done)
        debits = self._debits(served=served)
        self._keep(end)
        batch, encoded = self._take()
        call = self._call
        record = await self._turns.finish(
            TurnFinish(
                turn=call.record,
                state="done" if served else "failed",
                payer=call.payer,
                events=join_events(encoded),
                first=self._sequence,
                last=self._sequence + len(batch) - 1,
                debits=debits,
                children_cost=self._children_cost,
                reserve=call.reserve,
                now=now,
                tokens_in=self._tokens_in,
                tokens_out=self._tokens_out,
                code=end.code if isinstance(end, Failed) else None,
                retryable=isinstance(end, Failed) and self._may_run_again(end),
                uses=self._uses(),
                letters=letters_of(call, call.record, batch, end, new_id=self._new_id),
                is_task=call.task is not None,
            )
        )
        return batch[:-1], record

    def _uses(self) -> tuple[Use, ...]:
        """What the end tells the purses of quotas."""
        call, uses = self._call, []
        tokens = (self._tokens_in or 0) + (self._tokens_out or 0)
        if call.quota is not None and tokens > 0:
            uses.append(Use(call.quota, tokens))
        if call.task_purse is not None:
            uses.append(Use(call.task_purse, -1))
        return tuple(uses)

    def _may_run_again(self, end: Failed) -> bool:
        """Whether a repeat of the turn runs again.

        A refusal met before anything was said is not an answer: credit may be granted, a peer
        added. Only what is settled by the call itself stays.
        """
        if end.retryable:
            return True
        error = end.error()
        settled = (DepthExceeded, ChainFinal, IdempotencyMismatch, DefinitionChanged)
        is_refusal = isinstance(error, Refused | PeerRefused) and not isinstance(error, settled)
        return is_refusal and not self._has_spoken

    def _debits(self, *, served: bool) -> list[Debit]:
        target, debits = self._target, []
        if target.is_remote and (served or self._peer_cost):
            debits.append(Debit(target.credit, self._told(self._peer_cost, target.most_cost)))
        if served and (not target.is_remote or not target.price.is_free):
            debits.append(Debit(f"agent:{target.name}", self._price()))
        return self._within_reserve(debits)

    def _price(self) -> int:
        price = self._target.price
        if price.counts_tokens and self._tokens_in is None and self._tokens_out is None:
            return self._told(None, self._call.reserve)
        return price.of(self._tokens_in or 0, self._tokens_out or 0)

    def _told(self, cost: int | None, quote: int) -> int:
        if cost is not None:
            return cost
        if self._call.payer.limit is not None:
            return quote
        self._keep(Extension(UNKNOWN_COST, None))
        return 0

    def _within_reserve(self, debits: list[Debit]) -> list[Debit]:
        left = self._most()
        if left is None:
            return debits
        bounded = []
        for debit in debits:
            amount = min(debit.amount, left)
            left -= amount
            bounded.append(Debit(debit.credit, amount))
        if bounded != debits:
            carnet = self._call.carnet
            extra = {
                "run": carnet.run,
                "turn": carnet.turn,
                "agent": self._call.agent,
                "charged": sum(debit.amount for debit in debits),
                "limit": self._most(),
            }
            logger.warning("a call cost more than was reserved for it", extra=extra)
        return bounded

    def _most(self) -> int | None:
        """The most that may be debited: what was reserved, and what was set aside of a budget."""
        call = self._call
        most = None if call.payer.limit is None else call.reserve
        budget = call.carnet.budget
        if call.set_aside and budget is not None and budget.money is not None:
            return call.set_aside if most is None else min(most, call.set_aside)
        return most


def _sum(before: int | None, more: int) -> int:
    """Tokens so far; never more than a record can hold, whatever an agent says."""
    return min(max((before or 0) + more, 0), MAX_INTEGER)
