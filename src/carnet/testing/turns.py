"""Turns in memory: the port's promises without a disk, for tests that ask about an agent.

What is decided is decided by the rules of the stores (`claim_rules`, `finish_rules`); here their
rows are only kept.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec.structs import asdict, replace

from carnet.core.chain.turn import Turn
from carnet.core.messages.events import Event, read_events
from carnet.core.messages.interrupt import APPROVAL, PAYMENT, InterruptRecord, hash_state
from carnet.core.messages.outbound_call import with_records
from carnet.ports.calls.tasks import Callback, TaskClaim
from carnet.ports.calls.turns import (
    TASKS,
    TOKENS,
    Claimed,
    Debit,
    TurnClaim,
    TurnFinish,
    Verdict,
)
from carnet.ports.world.outbox import Delivery
from carnet.stores.database import Flush, Row
from carnet.stores.turn.budgets.book import BudgetBook
from carnet.stores.turn.callbacks import NotifyingFinish
from carnet.stores.turn.claim_rules import ClaimRules, Run
from carnet.stores.turn.finish_rules import FinishRules, appended
from carnet.stores.turn.interrupts import (
    HOUR,
    MOST_OF_CALLER,
    WAIT_HOURS,
    WaitingFinish,
    write_data,
)
from carnet.stores.turn.row import AGAIN, BEGUN, COLUMNS, DISCARD, ENDED, EVENTS, RESUMED, Column
from carnet.stores.turn.sealed_calls import SealedTask

_WORKER: Final = "memory"


class MemoryTurns:
    """The Turns port over dictionaries. A task waits for ever: nobody takes it."""

    def __init__(self, *, keeps_limits: bool = True) -> None:
        """Start with none; without `keeps_limits` payers spend what they like."""
        self._keeps_limits = keeps_limits
        self._runs: dict[Row, Run] = {}
        self._depths: dict[Row, set[int]] = {}
        self._costs: dict[int, int] = {}  # of runs
        self._rest: dict[int, dict[str, Any]] = {}  # of turns, what their record does not have
        self._held: dict[str, int] = {}  # spent and reserved of each quota
        self.rates: dict[str, int] = {}  # the mark of each bucket
        self.nonces: dict[Row, int] = {}  # those consumed, and until when
        self.tasks: dict[int, TaskClaim] = {}  # of the turns that wait
        self.deliveries: list[Delivery] = []
        self.finishes: list[TurnFinish] = []
        self.turns: dict[int, Turn] = {}
        self.batches: dict[int, list[bytes]] = {}
        self.grounds: dict[int, bytes] = {}  # why turns were admitted
        self.interrupted: dict[int, list[InterruptRecord]] = {}  # what turns wait for
        self.budgets = BudgetBook()
        self.debits: list[Debit] = []
        self.unpaid: dict[str, int] = {}  # of each quota, what is owed above its limit
        self.per_caller = MOST_OF_CALLER  # turns that may wait
        self.before_write: Callable[[], None] = lambda: None  # raise here to break a write

    @property
    def quotas(self) -> dict[str, int]:
        """What is used of each quota."""
        quotas = (TOKENS, TASKS)
        return {name: used for name, used in self._held.items() if name.startswith(quotas)}

    async def claim(self, claim: TurnClaim) -> Verdict:
        """Claim a turn, or learn why not."""
        task = claim.task
        if not self._keeps_limits:
            payer = replace(claim.admitted.payer, limit=None)
            claim = replace(claim, admitted=replace(claim.admitted, payer=payer))
        if task is not None:
            claim = replace(claim, task=SealedTask(**asdict(task), key_id=""))
        rules = self._rules()
        verdict = rules.decide(claim)
        self.nonces |= {(use.sender, use.nonce): use.expires for use in rules.used}
        for row in rules.resolved:
            self._resolve(row)
        for holds, n in rules.holding:
            self._rest[n]["holds"] = holds
        for budget, n in rules.budgeted:
            self._rest[n]["budget"] = budget
        if isinstance(verdict, Claimed):
            n = verdict.turn.n
            self.turns[n] = verdict.turn
            self._keep(n, BEGUN, rules.turns)
            self._keep(n, AGAIN, rules.again)
            self._keep(n, RESUMED, rules.resumed)
            self._write(rules.journal)
            self.grounds[n] = claim.grounds
            if task is not None:
                self.tasks[n] = task
        return verdict

    def _rules(self) -> ClaimRules:
        """The rules with everything that they may ask for; what they count, they count here."""
        rules = ClaimRules(_WORKER)
        rules.alive = {turn.worker for turn in self.turns.values()}  # nobody is ever gone
        rules.turn_numbers, rules.run_numbers = [len(self.turns) + 1], [len(self._runs) + 1]
        rules.runs, rules.depths = self._runs, self._depths
        rules.tats, rules.held, rules.nonces = self.rates, self._held, self.nonces
        rules.unpaid, rules.budgets = self.unpaid, self.budgets
        rules.known = {turn.key: self._row(turn) for turn in self.turns.values()}
        rules.pending = [
            (
                *(n, one.interrupt.id, hash_state(one.interrupt.state), one.status, one.expires),
                *(_charged(one), one.outcome, one.asked),
                *(None, one.interrupt.amount or 0, self._held_below(n, one)),  # nobody ends
                write_data(one.interrupt) if one.is_charged and one.status == "open" else None,
            )
            for n, asked in self.interrupted.items()
            for one in asked
        ]
        return rules

    def _held_below(self, n: int, asked: InterruptRecord) -> str | None:
        """What a turn below holds that is to pay what this one asks for."""
        if asked.is_charged or asked.interrupt.kind != PAYMENT:
            return None
        rest = self._rest[n]
        for other, found in self.interrupted.items():
            its = self._rest[other]
            is_near = (its["run"], its["purse"]) == (rest["run"], rest["purse"])
            waits = [one for one in found if one.is_charged and one.status == "open"]
            if is_near and asked.interrupt.id in {one.interrupt.id for one in waits}:
                return str(its.get("holds") or "")
        return None

    def _row(self, turn: Turn) -> Row:
        """A turn as TURN_COLUMNS has it."""
        rest = self._rest[turn.n]
        row = (getattr(turn, c.of_turn) if c.of_turn else rest.get(c.name) for c in COLUMNS)
        return (*row, turn.run, turn.payer.issuer, turn.payer.id)

    def _keep(self, n: int, columns: Sequence[Column], rows: Sequence[Row]) -> None:
        rest = self._rest.setdefault(n, {})
        for row in rows:
            given = zip(columns, row, strict=False)  # the number of the turn may stand behind them
            rest |= {column.name: value for column, value in given if not column.of_turn}

    def _write(self, journal: Sequence[Row]) -> None:
        for n, kind, _, _, data, _ in journal:
            batches = self.batches.setdefault(n, [])
            if kind == DISCARD:
                self.batches[n] = []
            elif kind == EVENTS:
                batches.append(data)

    def _resolve(self, row: Row) -> None:
        now, resolver, outcome, value, n, name = row
        self.interrupted[n] = [
            replace(
                one,
                status="resolved",
                outcome=outcome,
                resolver=resolver,
                resolved=now,
                value=value,
            )
            if one.interrupt.id == name
            else one
            for one in self.interrupted[n]
        ]

    async def append(self, turn: Turn, first: int, last: int, events: bytes) -> None:
        self.before_write()
        if last < first:
            raise ValueError("a batch holds at least one event")
        running = {n: one.fence for n, one in self.turns.items() if one.state == "running"}
        (answer,), journal = appended([Flush(turn, first, last, events)], running)
        if answer is not None:
            raise answer
        self._write(journal)

    async def finish(self, finish: TurnFinish) -> Turn:
        self.before_write()
        rules = FinishRules()
        rules.read([self._held_row(finish.turn.n)])
        rules.spent, rules.budgets = dict(self._held), self.budgets
        record = rules.end(self._prepared(finish))
        if not isinstance(record, Turn):
            raise record
        self.turns[record.n] = record
        self._keep(record.n, ENDED, rules.turns)
        self._write(rules.journal)
        self._costs |= rules.run_costs
        for quota, (spent, reserved) in rules.quotas.items():
            self._held[quota] = self._held.get(quota, 0) + spent + reserved
        self.deliveries += [delivery for delivery, _ in rules.deliveries]
        self.debits += [Debit(row[5], row[6]) for row in rules.ledger]
        for quota, more in rules.unpaid.items():
            self.unpaid[quota] = self.unpaid.get(quota, 0) + more
        self.finishes.append(finish)
        if finish.interrupts:
            asked_now = {asked.id for asked in finish.interrupts}
            before = self.interrupted.get(record.n, ())
            self.interrupted[record.n] = [
                *(one for one in before if one.interrupt.id not in asked_now),
                *(
                    InterruptRecord(
                        interrupt=asked,
                        status="open",
                        expires=record.waits_until or 0,
                        asked=finish.now,
                        is_charged=asked.origin is None or finish.charges_all,
                    )
                    for asked in finish.interrupts
                ),
            ]
        return record

    def _held_row(self, n: int) -> Row:
        """A turn as the rules of an end read it."""
        turn, rest = self.turns[n], self._rest[n]
        what = (turn.n, turn.fence, rest["reserve"], rest["purse"], rest["run"], turn.state)
        costs = (turn.cost, rest.get("budget"), self._costs.get(rest["run"], 0))
        return (*what, rest.get("holds"), *costs)

    def _prepared(self, finish: TurnFinish) -> TurnFinish:
        """An end with all that a store adds to it; nothing is sealed."""
        given = {name: getattr(finish, name) for name in TurnFinish.__struct_fields__}
        if finish.state == "waiting":
            given["waits_until"] = finish.waits_until or finish.now + WAIT_HOURS * HOUR
            return WaitingFinish(**given, rows=(), key_id="", most=self.per_caller)
        if finish.tell is None:
            return finish
        task = self.tasks.get(finish.turn.n)
        url = None if task is None or task.callback is None else task.callback.url
        deliveries = finish.tell([] if url is None else [Callback(url=url)])
        return NotifyingFinish(
            **{**given, "deliveries": (*finish.deliveries, *deliveries)}, addresses=()
        )

    async def size(self, turn: Turn) -> int:
        """How many bytes of events a turn has."""
        return sum(map(len, self.batches[turn.n]))

    async def events(self, turn: Turn, since: int = 0, *, is_piece: bool = False) -> list[bytes]:
        """The batches of the current attempt that begin there or later, or the first of them."""
        found: list[bytes] = []
        first = 0
        records = {
            (finish.turn.fence, call.ordinal): call
            for finish in self.finishes
            if finish.turn.n == turn.n
            for call in finish.outbound
        }
        for batch in self.batches[turn.n]:
            if first >= since:
                found.append(with_records(batch, records))
            first += len(read_events(batch))
        return found[:1] if is_piece else found

    async def interrupts(self, turn: Turn) -> list[InterruptRecord]:
        """What a turn waits for, or waited for."""
        return list(self.interrupted.get(turn.n, ()))

    async def question(self, claim: TurnClaim) -> InterruptRecord | None:
        """What the turn of a claim waits for that brings an answer; None if it is none of those."""
        brought = b"" if claim.resolution is None else claim.resolution.state_hash
        waited_for = [
            one
            for n, asked in self.interrupted.items()
            for one in asked
            if self.turns[n].key == claim.key and one.status == "open"
        ]
        return next(
            (each for each in waited_for if hash_state(each.interrupt.state) == brought), None
        )

    async def calls_out(self, turn: Turn) -> list[str]:
        """The ids under which earlier attempts of a turn have called others."""
        made = [
            self.turns[n].turn for n, rest in self._rest.items() if rest.get("parent_n") == turn.n
        ]
        ends = [finish for finish in self.finishes if finish.turn.n == turn.n]
        return made + [call.child_turn for finish in ends for call in finish.outbound]

    async def reload(self, turn: Turn) -> Turn:
        """The record as it is now."""
        return self.turns[turn.n]

    def written(self, n: int) -> list[Event]:
        """All events of a turn."""
        return [event for batch in self.batches[n] for event in read_events(batch)]


def _charged(record: InterruptRecord) -> int:
    """What its turn debits if it is accepted."""
    asked = record.interrupt
    is_money = asked.kind in {PAYMENT, APPROVAL}
    return (asked.amount or 0) if record.is_charged and is_money else 0
