"""Appending to many turns and ending many, in one SQLite transaction.

What is decided, and by which laws, stands in `finish_rules`.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from carnet.core.chain.turn import Turn
from carnet.ports.work.turns import Fenced, TurnFinish
from carnet.stores.database import Flush
from carnet.stores.ledger.chain import Shard
from carnet.stores.outbox import END_IF_GONE, GONE, PUT, delivery_row
from carnet.stores.turn.callbacks import CALLBACK_COLUMNS, CallbacksChanged
from carnet.stores.turn.finish_rules import FinishRules, appended
from carnet.stores.turn.interrupts import EXPIRE, REOPEN, UNDISCARD, WAIT_ON
from carnet.stores.turn.interrupts import INSERT as INSERT_INTERRUPT
from carnet.stores.turn.lookup import Lookup, SqlConnection
from carnet.stores.turn.moves import becomes, may_become
from carnet.stores.turn.outbound_calls import INSERT as INSERT_OUTBOUND
from carnet.stores.turn.row import END_TURN

INSERT_JOURNAL: Final = (
    "INSERT INTO journal (turn, kind, first, last, data, crc) VALUES (?, ?, ?, ?, ?, ?)"
)
ADD_TO_QUOTA: Final = (
    "INSERT INTO purse (name, spent, reserved) VALUES (?, ?, ?) ON CONFLICT (name)"
    " DO UPDATE SET spent = spent + excluded.spent, reserved = reserved + excluded.reserved"
)

_OWNED = Lookup(
    "WITH w (n) AS (VALUES {keys}) SELECT t.n, t.fence FROM w CROSS JOIN turn t"
    " ON t.n = w.n WHERE t.state = 'running'",
    width=1,
)
_HELD = Lookup(
    "WITH w (n) AS (VALUES {keys})"
    " SELECT t.n, t.fence, t.reserve, t.purse, t.run, t.state, t.holds, t.cost, r.cost"
    " FROM w CROSS JOIN turn t ON t.n = w.n JOIN run r ON r.n = t.run"
    " WHERE t.state IN ('running', 'waiting')",
    width=1,
)
_CALLBACKS = f"SELECT {CALLBACK_COLUMNS} FROM callback b WHERE b.turn = ?"  # noqa: S608  our own words
_WAIT_AGAIN = (
    f"UPDATE turn SET {becomes('queued')}, worker = NULL, fence = ?, attempt = ?"  # noqa: S608
    f" WHERE n = ? AND {may_become('queued')}"
)
KEEP_CALL: Final = (
    "INSERT INTO kept_call (turn, sealed, key_id) VALUES (?, ?, ?) ON CONFLICT (turn) DO UPDATE"
    " SET sealed = excluded.sealed, key_id = excluded.key_id"
)
_CLEAR_PROGRESS = "UPDATE task SET progress = NULL, note = NULL, lost = lost + ? WHERE turn = ?"
_END_TASK = "UPDATE task SET ended = ? WHERE turn = ?"
_FORGET_CALL = "DELETE FROM kept_call WHERE turn = ?"
_SET_RUN_COST = "UPDATE run SET cost = ? WHERE n = ?"
_INSERT_LEDGER = (
    "INSERT INTO ledger (n, at, run, turn, issuer, account, credit, amount, lane, seq, hash)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
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
        self._connection = connection
        self._shard = shard
        self._numbers = numbers
        self._rules = FinishRules()

    def finish(self, finishes: Sequence[TurnFinish]) -> list[Turn | Fenced | CallbacksChanged]:
        """Decide and write."""
        self._rules.read(_HELD(self._connection, [finish.turn.n for finish in finishes]))
        for finish in finishes:
            if finish.tell is not None:
                found = self._connection.execute(_CALLBACKS, (finish.turn.n,))
                self._rules.callbacks += found.fetchall()
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
        self._write_more()

    def _write_more(self) -> None:
        """What few ends have."""
        write = self._connection.executemany
        rules = self._rules
        if rules.requeued:
            write(_WAIT_AGAIN, [(*row[:2], row[3]) for row in rules.requeued])
            write(_CLEAR_PROGRESS, [row[2:] for row in rules.requeued])
        if rules.deliveries:
            write(PUT, [delivery_row(delivery, now) for delivery, now in rules.deliveries])
            write(END_IF_GONE, [(GONE, delivery.id) for delivery, _ in rules.deliveries])
        if rules.tasks:
            write(_END_TASK, rules.tasks)
            write(_FORGET_CALL, [row[1:] for row in rules.tasks])
        if rules.outbound:
            write(INSERT_OUTBOUND, rules.outbound)
        if rules.calls or rules.closed:
            write(KEEP_CALL, rules.calls)
            write(INSERT_INTERRUPT, rules.interrupts)
            write(EXPIRE, [(turn,) for turn in rules.closed])
        if rules.reopened:
            write(REOPEN, rules.reopened)
            write(WAIT_ON, [(state_hash, turn) for turn, state_hash in rules.reopened])
            write(UNDISCARD, [row[:1] for row in rules.reopened])
