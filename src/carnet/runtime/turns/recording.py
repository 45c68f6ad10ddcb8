"""What one turn has said so far: batched, made durable, shown, and at last summed up.

The Output of an execution: for a whole answer a list, for a stream one that is recorded and shown
as it grows.

Law 1. What cannot be recorded is not said: an event is encoded when it is written.
Law 2. One append is on its way at a time; what is said meanwhile goes with the next one, and so
       does what an append could not write.
Law 3. What is not yet durable, what nobody has taken and what one turn may say are bounded; at
       the first two the agent waits, at the last it has failed.
Law 4. The texts of a whole answer run together: what is done later for each event is done seldom,
       and an agent that never waits lets others have their turn (A73). No row is larger than a
       piece, unless one event is.
Law 5. What was measured is debited, also above the reservation (`excess`). A cost that nobody told
       is debited as the reservation where there is one, and is shown as unknown where there is
       none. A turn that waits is debited what it used so far: tokens, and what others charged.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import structs

from carnet.core.call import Call
from carnet.core.chain.turn import Turn, TurnState
from carnet.core.messages.events import (
    BUDGET,
    CHILD,
    PIECE_BYTES,
    STATES,
    UNKNOWN_COST,
    Done,
    End,
    Event,
    Extension,
    Failed,
    Usage,
    Waiting,
    join_events,
    journaled,
    write_event,
)
from carnet.core.messages.interrupt import paid
from carnet.core.messages.outbound_call import OutboundCall, outbound_event, pointer
from carnet.core.sealed_call import sealed_call_of, write_sealed_call
from carnet.errors import AgentFailed, Cancelled, CarnetError, Internal, OutcomeUnknown
from carnet.http.shares import WORDS, shares_of
from carnet.ports.calls.turns import Debit, Fenced, Tell, TurnFinish, Turns, Use, whole_cost
from carnet.runtime.receipts.outbound_calls import is_counted_before, used_of
from carnet.runtime.turns.broadcast import Broadcast
from carnet.runtime.turns.excess import asked_again, disputes, most_cost, same_call, within_budget
from carnet.runtime.turns.pieces import MOST_BYTES, Grown
from carnet.runtime.turns.tokens import NO_TOKENS, Tokens, add_up, and_before, own_before, uses_of
from carnet.runtime.turns.unfinished import may_run_again
from carnet.runtime.webhooks.callbacks import CallbackDeliveries

MOST_WAITING, MOST_WAITING_BYTES = 1024, 64 * 1024  # events, and what they take


class Recording(Grown):
    """The record of a turn while it is being made."""

    def __init__(
        self,
        *,
        turns: Turns,
        call: Call,
        broadcast: Broadcast,
        on_broken: Callable[[], None],
        deliveries: CallbackDeliveries,
    ) -> None:
        """`on_broken` is told if events cannot be made durable; `deliveries` tell of the end."""
        self._turns = turns
        self._call = call
        self._target = call.target
        self._broadcast = broadcast
        self._on_broken = on_broken
        self._deliveries = deliveries
        self._streams = call.ask.stream
        self._waiting = []
        self._encoded = []
        self._waiting_bytes = self._event_bytes = 0
        self._written = self._sequence = self._marked = self._counted = self._spared = 0
        self._spoken = 0  # of those written, those that are for the caller
        self._text = None
        self._flush: asyncio.Task[None] | None = None
        self.broken: CarnetError | Fenced | None = None  # why it cannot go on
        self._is_over = False
        self.words: str | None = None  # of a model that refused, for the operator
        self._usages: list[Usage] = []  # added up at the end: threads may tell them too
        self.outbound: list[OutboundCall] = []
        has_waited = call.record.fence != call.record.attempt
        self._children_cost = own_before(call) if has_waited else 0
        self._children: set[object] = set()  # the places of calls whose cost is in it
        self._exceeds = False  # more is to be debited than was reserved
        self._disputed = 0
        self.has_below = has_waited  # what it called may wait

    # ------------------------------------------------------------------ for the agent

    async def write(self, event: Event, /) -> None:
        """Take one event of the agent."""
        if self._is_over:
            raise Cancelled("the turn has ended")
        if self._waiting and not self._streams and await self._runs_on(event):
            return
        noted = event if type(event) is Extension else None
        child = noted if noted is not None and noted.name == CHILD else None
        if child is not None and is_counted_before(child.payload, self._children):
            return
        self._keep(event)
        if self._event_bytes > MOST_BYTES:
            self._drop_last()
            raise AgentFailed(f"said more than {MOST_BYTES} bytes")
        if child is not None:
            self._children_cost += int(child.payload["cost"])
        elif noted is None or noted.name != BUDGET:
            self._spoken += 1
        if self._streams:
            await self._show()

    def usage(self, usage: Usage, /) -> None:
        """Count what was used."""
        if self._is_over:
            return
        self._usages += (usage,)
        allowance = self._call.allowance
        if allowance is not None:
            allowance.use((usage.tokens_in or 0) + (usage.tokens_out or 0))

    def called(self, call: OutboundCall, /) -> None:
        """Note a call out of this turn."""
        if self._is_over:
            return
        if self.outbound:
            call = structs.replace(call, ordinal=len(self.outbound))
        self.outbound += (call,)
        if call.disputed:
            self._disputed = max(self._disputed, call.disputed)

    def mark(self) -> int:
        """How many events were written."""
        if self._text is not None:
            self._end_text()
        self._marked, self._spared = self._written, 0
        return self._written

    def back(self, mark: int, /) -> bool:
        """Take back what was written since, if none of it has left; children were paid for."""
        self._end_text()
        first = len(self._waiting) - (self._written - mark)
        if first < 0:
            return False
        taken = self._waiting[first:]
        encoded = self._encoded[first:]
        del self._waiting[first:], self._encoded[first:]
        for event, data in zip(taken, encoded, strict=True):
            if type(event) is Extension and event.name in {BUDGET, CHILD}:
                self._waiting.append(event)
                self._encoded.append(data)
            else:
                self._written -= 1
                self._spoken -= 1
                self._waiting_bytes -= len(data)
                self._event_bytes -= len(data)
        self._event_bytes -= self._spared
        self._spared = 0
        return True

    def close(self) -> None:
        """Take nothing more: the agent has ended, or nobody waits for it."""
        self._is_over = True

    # ------------------------------------------------------------------ for the journal

    def _keep(self, event: Event) -> None:
        try:
            encoded = write_event(event)
        except (TypeError, ValueError, RecursionError) as error:
            raise AgentFailed(f"said what cannot be recorded: {error}") from None
        size = len(encoded)
        self._event_bytes += size
        self._waiting_bytes += size
        self._waiting += (event,)
        self._encoded += (encoded,)
        self._written += 1

    def _drop_last(self) -> None:
        self._waiting.pop()
        size = len(self._encoded.pop())
        self._event_bytes -= size
        self._waiting_bytes -= size
        self._written -= 1

    async def _show(self) -> None:
        """Have what was written made durable and shown; waits for those who are behind."""
        if self.broken is not None:
            fenced = isinstance(self.broken, Fenced)
            raise OutcomeUnknown(str(self.broken)) if fenced else self.broken
        if self._flush is None:
            self._flush = asyncio.get_running_loop().create_task(self._flush_waiting())
        elif len(self._waiting) > MOST_WAITING or self._waiting_bytes > MOST_WAITING_BYTES:
            await asyncio.shield(self._flush)
        if self._broadcast.is_ahead:
            await self._broadcast.room()
        self._counted += 1
        if self._counted % WORDS == 0:
            shares = shares_of(asyncio.get_running_loop())
            await shares.step(self._call.payer.excess or self._call.payer.quota)

    async def _flush_waiting(self) -> None:
        try:
            while self._waiting:
                is_long = self._waiting_bytes > PIECE_BYTES
                batch, encoded = self._take_piece() if is_long else self._take()
                last = self._sequence + len(batch) - 1
                try:
                    await self._turns.append(
                        self._call.record, self._sequence, last, join_events(encoded)
                    )
                except BaseException:
                    self._waiting[:0], self._encoded[:0] = batch, encoded
                    raise
                self._sequence = last + 1
                self._broadcast.publish(batch, size=sum(map(len, encoded)))
        except (CarnetError, Fenced) as error:
            self._break(error)
        except Exception as error:  # noqa: BLE001  a task of ours must not fail unseen
            self._break(Internal(f"{type(error).__name__}: {error}"))
        finally:
            self._flush = None

    def _break(self, error: CarnetError | Fenced) -> None:
        """Let nothing more be said: the agent may be silent for long, and nobody reads it."""
        self.broken = error
        self._on_broken()

    def _take(self) -> tuple[list[Event], list[bytes]]:
        taken = self._waiting, self._encoded
        self._waiting, self._encoded, self._waiting_bytes = [], [], 0
        return taken

    async def finish(self, end: End, *, now: int) -> tuple[Sequence[Event], Turn]:
        """Make the end durable; the events that go with it and the record with its costs."""
        self._is_over = True
        if self._text is not None:
            self._end_text()
        if self._flush is not None:
            await self._flush
        if self.broken is not None and isinstance(self.broken, Fenced | OutcomeUnknown):
            raise self.broken  # what may have been written would be said twice
        state, call = STATES[type(end)], self._call
        if self._target.is_remote and self._usages[1:]:
            self._usages = same_call(self._usages)
        tokens = add_up(self._usages) if self._usages else NO_TOKENS
        debits = self._debits(tokens, state)
        for outbound in self.outbound:
            self._keep(pointer(call.record.fence, outbound.ordinal))
        self._keep(journaled(end) if type(end) is Waiting else end)
        ahead = await self._write_ahead() if self._waiting_bytes > PIECE_BYTES else None
        batch, encoded = self._take()
        if self.outbound:  # the journal points to them; who reads now is shown them
            batch[-1 - len(self.outbound) : -1] = map(outbound_event, self.outbound)
        has_quota, used = call.quota or call.task_quota, (tokens[0] or 0) + (tokens[1] or 0)
        finish = TurnFinish(
            turn=call.record,
            state=state,
            payer=call.payer,
            events=join_events(encoded),
            first=self._sequence,
            last=self._sequence + len(batch) - 1,
            debits=debits,
            children_cost=self._children_cost,
            reserve=call.reserve,
            now=now,
            exceeds=self._exceeds,
            disputed=self._disputed,
            tokens_in=tokens[0],
            tokens_out=tokens[1],
            used=used_of(call, self.outbound, used) if call.granted[0] > 1 else (1, used),
            uses=uses_of(call, tokens, is_over=state != "waiting") if has_quota else (),
            tell=None if call.task is None else self._tell_of(batch, end, tokens, debits),
            is_task=call.task is not None,
            is_listed=call.at_once,
            has_callback=call.callback is not None,
            has_asked=self.has_below and state != "waiting",
            outbound=tuple(self.outbound),
            facts=self.words,
            **({} if type(end) is Done else self._undone(end, debits, batch, encoded)),
        )
        record = await self._turns.finish(finish)
        return batch[:-1] if ahead is None else [*ahead, *batch[:-1]], record

    def _used(self, events: Sequence[Event], tokens: Tokens, debits: Sequence[Debit]) -> Usage:
        """What the call has cost whoever asked for it, before its run is added up."""
        before = self._call.record  # which has waited, perhaps
        tokens = and_before(tokens, (before.tokens_in, before.tokens_out))
        if self._call.payer.by_forwarding and self._call.payer.own_issue:
            return Usage(tokens[0], tokens[1], 0)  # billed by us: the forwarder owes nothing
        is_unknown = any(type(each) is Extension and each.name == UNKNOWN_COST for each in events)
        debited = sum(debit.amount for debit in debits if debit.kind == "owed")
        cost = whole_cost(debited, self._children_cost, before.cost or 0)
        # How much of it the payer's limit takes is known when it is written.
        return Usage(tokens[0], tokens[1], None if is_unknown or self._exceeds else cost)

    def _undone(
        self, end: End, debits: Sequence[Debit], batch: list[Event], encoded: list[bytes]
    ) -> dict[str, Any]:
        """What the end of a turn says beside that has not done what was asked."""
        if not isinstance(end, Failed):
            return self._waits(end, debits, batch, encoded) if isinstance(end, Waiting) else {}
        again, tells = may_run_again(end, has_spoken=self._spoken > 0), self._target.takes_budget
        return {"code": end.code, "retryable": again, "tells_all": tells}

    def _waits(
        self, end: Waiting, debits: Sequence[Debit], batch: list[Event], encoded: list[bytes]
    ) -> dict[str, Any]:
        """What the end of a turn says beside that waits: what for, and the call."""
        call, count = self._call, len(batch) - 1 - len(self.outbound)
        self._waiting, self._encoded = batch[:count], encoded[:count]  # if it may not wait
        spent, again = sum(debit.amount for debit in debits), asked_again(call, end.interrupts)
        return {
            "interrupts": end.interrupts,
            "released": again,
            "call_bytes": write_sealed_call(sealed_call_of(call, spent, again)),
            "holding": tuple([Use(quota, 1) for quota in (call.task_quota, call.place) if quota]),
            "charges_all": self._target.is_remote,
            "owners": tuple(map(call.owner_of, end.interrupts)),
            "deliveries": self._deliveries.asked(call, end.interrupts),
        }

    def _tell_of(
        self, batch: Sequence[Event], end: End, tokens: Tokens, debits: Sequence[Debit]
    ) -> Tell | None:
        if type(end) is Waiting and self._call.ask.context is None:  # no end to tell of
            return None
        call, used = self._call, self._used  # it is added up for those who are told
        return lambda to: self._deliveries(call, batch, end, used(batch, tokens, debits), to)

    def _debits(self, tokens: Tokens, state: TurnState) -> list[Debit]:
        target, debits, served = self._target, list[Debit](), state == "done"
        if target.is_remote:
            costs = [usage.cost for usage in self._usages if usage.cost is not None]
            if served or any(costs):
                before = self._call.record.cost or 0  # debited for an earlier attempt
                cost = (
                    costs[-1] - before if costs else self._known_cost(None, most_cost(self._call))
                )
                debits += (Debit(target.credit, max(0, cost)),)
            if self._disputed:
                debits += disputes(self._call, self._disputed)
        if served and (not target.is_remote or not target.price.is_free):
            amount = self._price(tokens)
            if self._call.resolved and not target.is_remote:
                amount += paid(self._call.resolved)
            debits += (Debit(f"agent:{target.name}", amount),)
        elif state == "waiting" and target.price.counts_tokens and tokens != NO_TOKENS:
            used = self._price(tokens) - target.price.per_call  # which is for the answer
            debits += (Debit(f"agent:{target.name}", used),)
        return self._within_reserve(debits)

    def _price(self, tokens: Tokens) -> int:
        price, before = self._target.price, self._call.record
        is_counted = tokens != NO_TOKENS or (before.tokens_in, before.tokens_out) != NO_TOKENS
        if not is_counted and price.counts_tokens:
            return self._known_cost(None, max(0, self._call.reserve - self._target.most_cost))
        return price.of(tokens[0] or 0, tokens[1] or 0)

    def _known_cost(self, cost: int | None, quote: int) -> int:
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
        match debits:
            case [only] if only.amount <= left:
                return debits
        if sum(debit.amount for debit in debits if debit.kind == "owed") <= left:
            return debits
        self._exceeds = True
        return within_budget(self._call, debits, left)

    def _most(self) -> int | None:
        """What was reserved, and what was set aside of a budget."""
        call, budget = self._call, self._call.carnet.budget
        most = None if call.payer.limit is None else call.reserve
        if call.resolved and call.set_aside:
            agreed = call.set_aside + paid(call.resolved)
            return agreed if most is None else min(most, agreed)
        if call.set_aside and budget is not None and budget.money is not None:
            return call.set_aside if most is None else min(most, call.set_aside)
        return most
