"""Claiming, continuing and ending many turns in one SQLite transaction each.

What the claims need is read with a few statements, every verdict is decided in memory
(`claim_rules`), and what was admitted is written with a few more. The writer holds the write lock
meanwhile, so what was read stays true; nothing is sorted by key (D17), as nobody else writes.

What is decided when turns are continued and ended, and by which laws, stands in `finish_rules`.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Final

from msgspec import Struct, field

import carnet.faults
from carnet.faults import point
from carnet.ports.calls.turns import Fenced, Nonce, TurnClaim, TurnFinish, Verdict
from carnet.stores.database import Flush, Row
from carnet.stores.outbox import END_IF_GONE, GONE, PUT, delivery_row
from carnet.stores.sqlite import budgets, waits
from carnet.stores.sqlite.run_names import INSERT_RUN, RunNames
from carnet.stores.turn.callbacks import CALLBACK_COLUMNS
from carnet.stores.turn.claim_rules import ClaimRules, Run, names_of
from carnet.stores.turn.finish_rules import Ended, FinishRules, Shard, appended
from carnet.stores.turn.interrupts import UnansweredFinish
from carnet.stores.turn.moves import becomes, may_become
from carnet.stores.turn.outbound_calls import INSERT as INSERT_OUTBOUND
from carnet.stores.turn.row import (
    END_TURN,
    INSERT_TURN,
    RUN_AGAIN,
    Lookup,
    SqlConnection,
    parent_of,
    place,
)

INSERT_JOURNAL: Final = (
    "INSERT INTO journal (turn, kind, first, last, data, crc) VALUES (?, ?, ?, ?, ?, ?)"
)
ADD_TO_QUOTA: Final = (
    "INSERT INTO purse (name, spent, reserved) VALUES (?, ?, ?) ON CONFLICT (name)"
    " DO UPDATE SET spent = spent + excluded.spent, reserved = reserved + excluded.reserved"
)

ADD_UNPAID: Final = (
    "INSERT INTO purse (name, spent, reserved, unpaid) VALUES (?, 0, 0, ?)"
    " ON CONFLICT (name) DO UPDATE SET unpaid = unpaid + excluded.unpaid"
)

_OWNED = Lookup(
    "WITH w (n) AS (VALUES {keys}) SELECT t.n, t.fence FROM w CROSS JOIN turn t"
    " ON t.n = w.n WHERE t.state = 'running'",
    width=1,
)
_HELD = Lookup(
    "WITH w (n) AS (VALUES {keys})"
    " SELECT t.n, t.fence, t.reserve, t.purse, t.run, t.state, t.holds, t.cost,"
    " t.budget, r.cost"
    " FROM w CROSS JOIN turn t ON t.n = w.n JOIN run r ON r.n = t.run"
    " WHERE t.state IN ('running', 'waiting')",
    width=1,
)
_CALLBACKS = Lookup(
    f"WITH w (turn) AS (VALUES {{keys}}) SELECT {CALLBACK_COLUMNS}"  # noqa: S608  our own words
    " FROM w CROSS JOIN callback b ON b.turn = w.turn",
    width=1,
)
_WAIT_AGAIN = (
    f"UPDATE turn SET {becomes('queued')}, worker = NULL, fence = ?, attempt = ?"  # noqa: S608
    f" WHERE n = ? AND {may_become('queued')}"
)
_CLEAR_PROGRESS = "UPDATE task SET progress = NULL, note = NULL, lost = lost + ? WHERE turn = ?"
_END_TASK = "UPDATE task SET ended = ?1, updated = ?1 WHERE turn = ?2"
_FORGET_CALL = "DELETE FROM kept_call WHERE turn = ?"
_SET_RUN_COST = "UPDATE run SET cost = ? WHERE n = ?"
_INSERT_LEDGER = (
    "INSERT INTO ledger (n, at, run, turn, issuer, account, credit, amount, lane, seq, hash, run_n)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_END_SHARD = (
    "INSERT INTO lane (id, postings, head, seal) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE"
    " SET postings = excluded.postings, head = excluded.head, seal = excluded.seal"
)


def append(connection: SqlConnection, flushes: Sequence[Flush]) -> list[Fenced | None]:
    """Write the events of those who own their turn."""
    owned: dict[int, int] = dict(_OWNED(connection, [flush.turn.n for flush in flushes]))
    answers, rows = appended(flushes, owned)
    connection.executemany(INSERT_JOURNAL, rows)
    return answers


class FinishBatch:
    """One batch: reads for the rules, and writes what they ended."""

    def __init__(self, connection: SqlConnection, shard: Shard, numbers: Iterator[int]) -> None:
        """`numbers` are those of the next postings."""
        self._connection, self._shard, self._numbers = connection, shard, numbers
        self._rules = FinishRules()

    def finish(self, finishes: Sequence[TurnFinish]) -> list[Ended]:
        """Decide and write."""
        self._rules.read(_HELD(self._connection, [finish.turn.n for finish in finishes]))
        notifying: list[int] = []
        has_budgets = self._rules.holds_budgets
        for finish in finishes:
            if finish.tell is not None:
                notifying += (finish.turn.n,)
            if finish.exceeds or finish.state == "waiting":
                has_budgets = has_budgets or isinstance(finish, UnansweredFinish)
                quotas = [finish.payer.quota, *(use.quota for use in finish.holding)]
                for name, held, _ in _QUOTAS(self._connection, quotas):
                    self._rules.spent[name] = held
        if has_budgets:
            self._rules.budgets = budgets.read_held(self._connection, self._rules, finishes)
        if notifying:
            self._rules.callbacks = _CALLBACKS(self._connection, notifying)
        answers = [self._rules.end(finish) for finish in finishes]
        self._write()
        return answers

    def _write(self) -> None:
        write = self._connection.executemany
        rules = self._rules
        write(END_TURN, rules.turns)
        write(INSERT_JOURNAL, rules.journal)
        if rules.ledger:
            write(_INSERT_LEDGER, self._shard.link(rules.ledger, self._numbers))
            self._connection.execute(_END_SHARD, self._shard.row())
        if rules.run_costs_changed:
            write(_SET_RUN_COST, [(cost, run) for run, cost in rules.run_costs_changed.items()])
        if rules.quotas:
            write(ADD_TO_QUOTA, [(name, *more) for name, more in rules.quotas.items()])
        if rules.budgets is not None:
            budgets.write(self._connection, rules.budgets, rules.budgeted)
        self._write_more()

    def _write_more(self) -> None:
        """What few ends have."""
        write = self._connection.executemany
        rules = self._rules
        if rules.unpaid:
            write(ADD_UNPAID, list(rules.unpaid.items()))
        if rules.requeued:
            write(_WAIT_AGAIN, [(*row[:2], row[3]) for row in rules.requeued])
            write(_CLEAR_PROGRESS, [row[2:] for row in rules.requeued])
        if rules.deliveries:
            write(PUT, [delivery_row(delivery, now) for delivery, now in rules.deliveries])
            write(END_IF_GONE, [(GONE, delivery.id) for delivery, _ in rules.deliveries])
        if rules.tasks:
            write(_END_TASK, rules.tasks)
        if rules.forgotten:
            write(_FORGET_CALL, rules.forgotten)
        if rules.outbound:
            write(INSERT_OUTBOUND, rules.outbound)
        if rules.refunds or rules.calls or rules.closed or rules.reopened:
            waits.end(self._connection, rules)


_TURNS = Lookup(
    "WITH w (run, key) AS (VALUES {keys})"
    " SELECT {turn} FROM w CROSS JOIN turn t ON t.run = w.run AND t.key = w.key"
    " JOIN run r ON r.n = t.run",
    width=2,
)
_RATES = Lookup(
    "WITH w (bucket) AS (VALUES {keys})"
    " SELECT x.bucket, x.tat FROM w CROSS JOIN rate x ON x.bucket = w.bucket",
    width=1,
)
_QUOTAS = Lookup(
    "WITH w (name) AS (VALUES {keys})"
    " SELECT p.name, p.spent + p.reserved, p.unpaid FROM w CROSS JOIN purse p"
    " ON p.name = w.name",
    width=1,
)
_NONCES = Lookup(
    "WITH w (sender, nonce) AS (VALUES {keys})"
    " SELECT x.sender, x.nonce, x.expires FROM w CROSS JOIN nonce x"
    " ON x.sender = w.sender AND x.nonce = w.nonce",
    width=2,
)
_DEPTHS = Lookup(  # what calls below a turn must have: its own and one, and that of its siblings
    "WITH w (run, turn) AS (VALUES {keys})"
    " SELECT DISTINCT w.run, w.turn, t.depth + (t.turn = w.turn) FROM w CROSS JOIN turn t"
    " ON t.run = w.run AND (t.turn = w.turn OR t.parent = w.turn)",
    width=2,
)

_FRONT = "SELECT COALESCE(MIN(rank), 0) FROM turn WHERE state = 'queued' AND agent = ?"

_COUNT_CALLS = "UPDATE run SET calls = ? WHERE n = ?"
_SET_RATE = (
    "INSERT INTO rate (bucket, tat) VALUES (?, ?)"
    " ON CONFLICT (bucket) DO UPDATE SET tat = excluded.tat"
)
# One that is there has expired: it gives way, and the new row stands at the end, where it belongs.
_USE_NONCE = "INSERT OR REPLACE INTO nonce (n, sender, nonce, expires) VALUES (?, ?, ?, ?)"


_KEY, _QUOTA = place("key"), place("purse")


class Numbers:
    """The next row numbers. One process writes turns, so it may count in memory."""

    __slots__ = ("nonce", "run", "turn")

    def __init__(self, connection: SqlConnection) -> None:
        self.turn: int = connection.execute("SELECT COALESCE(MAX(n), 0) FROM turn").fetchone()[0]
        self.run: int = connection.execute("SELECT COALESCE(MAX(n), 0) FROM run").fetchone()[0]
        last: int = connection.execute("SELECT COALESCE(MAX(n), 0) FROM nonce").fetchone()[0]
        self.nonce: int = last


class _Asked(Struct):
    """What is to be looked up for claims."""

    runs: dict[bytes, Row] = field(default_factory=dict)  # of each key
    buckets: dict[str, None] = field(default_factory=dict)
    nonces: list[str] = field(default_factory=list)
    paying: list[TurnClaim] = field(default_factory=list)  # those that look at a quota
    placed: list[TurnClaim] = field(default_factory=list)  # those whose parent a peer names
    waited_for: dict[str, None] = field(default_factory=dict)  # agents of tasks
    budgets: list[TurnClaim] | None = None  # those that spend of one


def _asked(claims: Sequence[TurnClaim]) -> _Asked:
    """What is to be looked up for claims."""
    asked = _Asked()
    for claim in claims:
        admitted = claim.admitted
        if not claim.is_first:
            account = admitted.payer.account
            asked.runs[claim.key] = (admitted.carnet.run, account.issuer, account.id)
        for rate in claim.rates:
            asked.buckets[rate.bucket] = None
        if claim.nonce is not None or claim.once is not None:
            asked.nonces += names_of(claim)
        if claim.quotas or admitted.reserve or claim.may_cost or claim.resolution is not None:
            asked.paying.append(claim)
        if claim.wire_parent or claim.budget is not None or claim.resolution is not None:
            _look_further(asked, claim)
        if claim.task is not None:
            asked.waited_for[admitted.agent] = None
    return asked


def _look_further(asked: _Asked, claim: TurnClaim) -> None:
    if claim.wire_parent:
        asked.placed.append(claim)
    if claim.budget is not None or claim.resolution is not None:
        asked.budgets = [*(asked.budgets or ()), claim]


class ClaimBatch:
    """One batch: reads for the rules, and writes what they admitted."""

    def __init__(
        self, connection: SqlConnection, numbers: Numbers, names: RunNames, worker: str
    ) -> None:
        self._connection = connection
        self._numbers = numbers
        self._names = names
        self._are_named = False  # by others, any of the runs
        # A gateway that starts alone has no others: only its own turns have a worker.
        self._rules = ClaimRules(worker)

    def claim(self, claims: Sequence[TurnClaim]) -> list[Verdict]:
        """Decide and write."""
        rules, numbers = self._rules, self._numbers
        self._read(claims)
        rules.turn_numbers = range(numbers.turn + 1, numbers.turn + 1 + len(claims))
        rules.run_numbers = range(numbers.run + 1, numbers.run + 1 + len(claims))
        verdicts = [rules.decide(claim) for claim in claims]
        numbers.turn += rules.turns_begun
        numbers.run += rules.runs_begun
        if rules.used:
            self._use_nonces(rules.used)
        self._write()
        self._write_tasks()
        return verdicts

    def _read(self, claims: Sequence[TurnClaim]) -> None:
        rules = self._rules
        asked = _asked(claims)
        self._are_named = bool(asked.runs)
        if asked.runs:
            self._read_runs(claims, asked.runs)
        if asked.placed:
            self._read_depths(asked.placed)
        if asked.buckets:
            rules.tats = dict(_RATES(self._connection, [*asked.buckets]))
        if asked.paying or rules.pending:
            self._read_quotas(asked.paying)
        if asked.budgets is not None or asked.waited_for:
            self._read_more(asked)
        if asked.nonces:
            for sender, nonce, expires in _NONCES(self._connection, asked.nonces):
                rules.nonces[(sender, nonce)] = expires

    def _read_more(self, asked: _Asked) -> None:
        """What few claims need."""
        rules = self._rules
        if asked.budgets is not None:
            found = (asked.budgets, rules.known, rules.pending)
            rules.budgets = budgets.read_claimed(self._connection, *found)
        for agent in asked.waited_for:
            rules.fronts[agent] = self._connection.execute(_FRONT, (agent,)).fetchone()[0]

    def _read_quotas(self, claims: Sequence[TurnClaim]) -> None:
        quotas = {
            claim.admitted.payer.quota
            for claim in claims
            if claim.may_cost or claim.admitted.reserve or claim.resolution is not None
        }
        quotas |= {quota.name for claim in claims for quota in claim.quotas}
        if self._rules.pending:
            quotas |= {row[_QUOTA] for row in self._rules.known.values()}
        self._rules.read_quotas(_QUOTAS(self._connection, [*quotas]))

    def _read_runs(self, claims: Sequence[TurnClaim], asked: dict[bytes, Row]) -> None:
        """The runs, the turns of the same keys, and what is known of both."""
        rules = self._rules
        for row in self._names.read(self._connection, {*asked.values()}):
            rules.runs[row[:3]] = Run(row[:3], row[3], row[4], row[4])
        if not rules.runs:
            return
        repeats: list[Any] = []
        for key, name in asked.items():
            if name in rules.runs:
                repeats += (rules.runs[name].n, key)
        for row in _TURNS(self._connection, repeats):
            rules.known[row[_KEY]] = row
        if rules.known:
            waits.read(self._connection, rules, claims)

    def _read_depths(self, claims: Sequence[TurnClaim]) -> None:
        """What is recorded of the parents that peers name."""
        rules = self._rules
        rules.depths = {}
        places: dict[Row, None] = {}
        for claim in claims:
            account = claim.admitted.payer.account
            run = rules.runs.get((claim.admitted.carnet.run, account.issuer, account.id))
            if run is not None:
                places[(run.n, parent_of(claim))] = None
        for run_number, turn, depth in _DEPTHS(self._connection, [*chain.from_iterable(places)]):
            rules.depths.setdefault((run_number, turn), set()).add(depth)

    def _write(self) -> None:
        write = self._connection.executemany
        rules = self._rules
        changed = [run for run in rules.runs.values() if run.calls != run.was]
        new = [
            (run.n, *run.key, run.calls, run.started, run.is_ours) for run in changed if not run.was
        ]
        if new:
            write(INSERT_RUN, new)
        if len(new) < len(changed):
            write(_COUNT_CALLS, [(run.calls, run.n) for run in changed if run.was])
        if rules.turns:
            write(INSERT_TURN, rules.turns)
        if rules.again:
            write(RUN_AGAIN, rules.again)
            write(INSERT_OUTBOUND, rules.lost)
        if rules.journal:
            write(INSERT_JOURNAL, rules.journal)
        if rules.counted:
            write(_SET_RATE, list(rules.counted.items()))
        if rules.reserved:
            write(ADD_TO_QUOTA, [(name, 0, more) for name, more in rules.reserved.items()])

    def _write_tasks(self) -> None:
        """What only quotas, budgets, tasks, turns that wait and runs with a name of others have."""
        write = self._connection.executemany
        rules = self._rules
        if self._are_named:
            self._names.add(rules.runs.values())
        if rules.budgets is not None:
            budgets.write(self._connection, rules.budgets, rules.budgeted)
        if rules.taken:
            write(ADD_TO_QUOTA, [(name, more, 0) for name, more in rules.taken.items()])
        if rules.resolved or rules.waiting.tasks:
            waits.write(self._connection, rules)
        if rules.waiting.listed:
            write(waits.PUT_TASK, rules.waiting.listed)
        if rules.waiting.callbacks:
            waits.put_callbacks(self._connection, rules)

    def _use_nonces(self, used: Sequence[Nonce]) -> None:
        first = self._numbers.nonce + 1
        rows = [(n, use.sender, use.nonce, use.expires) for n, use in enumerate(used, first)]
        self._numbers.nonce += len(rows)
        self._connection.executemany(_USE_NONCE, rows)
        if carnet.faults.is_armed:
            point("t1.nonce")
