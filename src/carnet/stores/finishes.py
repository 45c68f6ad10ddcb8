"""Appending to many turns and ending many, in one SQLite transaction.

Law 1. Only the owner writes: the fence must be the turn's own and the turn must be running.
       Everybody else is told `Fenced`, and nothing of theirs is kept.
Law 2. What is released is what the turn's row holds, not what the caller remembers.
Law 3. A turn's cost and the cost of its run are frozen here, in the order of the batch.
"""

from collections.abc import Sequence
from typing import Final

from carnet.core.turn import Turn
from carnet.ports.turns import Fenced, TurnFinish
from carnet.stores.database import Flush, Row
from carnet.stores.journal import ENDED, EVENTS, sealed_row
from carnet.stores.rows import Connection, Lookup

INSERT_JOURNAL: Final = (
    "INSERT INTO journal (turn, kind, first, last, data, crc) VALUES (?, ?, ?, ?, ?, ?)"
)
ADD_TO_PURSE: Final = (
    "INSERT INTO purse (name, spent, reserved) VALUES (?, ?, ?) ON CONFLICT (name)"
    " DO UPDATE SET spent = spent + excluded.spent, reserved = reserved + excluded.reserved"
)

_OWNED = Lookup(
    "WITH w (n) AS (VALUES {keys}) SELECT t.n, t.fence FROM w CROSS JOIN turn t"
    " ON t.n = w.n WHERE t.state = 'running'",
    width=1,
)
_HELD = Lookup(
    "WITH w (n) AS (VALUES {keys}) SELECT t.n, t.fence, t.reserve, t.purse, t.run, r.cost"
    " FROM w CROSS JOIN turn t ON t.n = w.n JOIN run r ON r.n = t.run WHERE t.state = 'running'",
    width=1,
)
_END_TURN = (
    "UPDATE turn SET state = ?, ended = ?, tokens_in = ?, tokens_out = ?, cost = ?, run_cost = ?,"
    " reserve = 0, code = ?, retryable = ? WHERE n = ?"
)
_SET_RUN_COST = "UPDATE run SET cost = ? WHERE n = ?"
_INSERT_LEDGER = (
    "INSERT INTO ledger (at, run, turn, issuer, account, credit, amount)"
    " VALUES (?, ?, ?, ?, ?, ?, ?)"
)


def append(connection: Connection, flushes: Sequence[Flush]) -> list[Fenced | None]:
    """Write the events of those who own their turn."""
    owned: dict[int, int] = dict(_OWNED(connection, [(flush.turn.n,) for flush in flushes]))
    answers: list[Fenced | None] = []
    rows: list[Row] = []
    for flush in flushes:
        turn = flush.turn
        if owned.get(turn.n) != turn.fence:
            answers.append(_fenced(turn))
            continue
        rows.append(sealed_row(turn.n, EVENTS, flush.first, flush.last, flush.events))
        answers.append(None)
    connection.executemany(INSERT_JOURNAL, rows)
    return answers


def _fenced(turn: Turn) -> Fenced:
    return Fenced(f"turn {turn.n} is not running under fence {turn.fence}")


class FinishBatch:
    """One batch: what was read for it, and what will be written."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._held: dict[int, Row] = {}
        self._run_costs: dict[int, int] = {}
        self._run_costs_changed: dict[int, int] = {}
        self._purses: dict[str, tuple[int, int]] = {}  # more spent, more reserved
        self._turns: list[Row] = []
        self._journal: list[Row] = []
        self._ledger: list[Row] = []

    def finish(self, finishes: Sequence[TurnFinish]) -> list[Turn | Fenced]:
        """Decide and write."""
        for row in _HELD(self._connection, [(finish.turn.n,) for finish in finishes]):
            self._held[row[0]] = row
            self._run_costs[row[4]] = row[5]
        answers = [self._end(finish) for finish in finishes]
        self._write()
        return answers

    def _end(self, finish: TurnFinish) -> Turn | Fenced:
        turn = finish.turn
        held = self._held.pop(turn.n, None)  # the same turn again in this batch is too late
        if held is None or held[1] != turn.fence:
            if held is not None:
                self._held[turn.n] = held
            return _fenced(turn)
        _, _, reserve, purse, run, _ = held
        debited = self._post(finish, run)
        self._move(purse, 0, -reserve)
        self._move(finish.payer.purse, debited, 0)
        data = finish.events
        self._journal.append(
            sealed_row(turn.n, EVENTS, finish.first, finish.last, data)
            if data
            else sealed_row(turn.n, ENDED, 0, 0, b'{"state":"%b"}' % finish.state.encode())
        )
        return self._record(
            finish, cost=debited + finish.children_cost, run_cost=self._run_costs[run]
        )

    def _post(self, finish: TurnFinish, run: int) -> int:
        turn, account = finish.turn, finish.payer.account
        debited = 0
        for debit in finish.debits:
            debited += debit.amount
            self._ledger.append(
                (
                    *(finish.now, turn.run, turn.turn, account.issuer, account.id),
                    *(debit.credit, debit.amount),
                )
            )
        if debited:
            self._run_costs[run] += debited
            self._run_costs_changed[run] = self._run_costs[run]
        return debited

    def _move(self, purse: str, spent: int, reserved: int) -> None:
        if spent or reserved:
            before = self._purses.get(purse, (0, 0))
            self._purses[purse] = (before[0] + spent, before[1] + reserved)

    def _record(self, finish: TurnFinish, *, cost: int, run_cost: int) -> Turn:
        turn = finish.turn
        ended = None if finish.state == "waiting" else finish.now
        self._turns.append(
            (
                *(finish.state, ended, finish.tokens_in, finish.tokens_out, cost, run_cost),
                *(finish.code, int(finish.retryable), turn.n),
            )
        )
        return Turn(
            n=turn.n,
            agent=turn.agent,
            run=turn.run,
            turn=turn.turn,
            parent_turn=turn.parent_turn,
            speaker=turn.speaker,
            depth=turn.depth,
            state=finish.state,
            attempt=turn.attempt,
            fence=turn.fence,
            actor=turn.actor,
            payer=turn.payer,
            created=turn.created,
            ended=ended,
            tokens_in=finish.tokens_in,
            tokens_out=finish.tokens_out,
            cost=cost,
            run_cost=run_cost,
            code=finish.code,
            worker=turn.worker,
        )

    def _write(self) -> None:
        write = self._connection.executemany
        write(_END_TURN, self._turns)
        write(INSERT_JOURNAL, self._journal)
        write(_INSERT_LEDGER, self._ledger)
        if self._run_costs_changed:
            write(_SET_RUN_COST, [(cost, run) for run, cost in self._run_costs_changed.items()])
        if self._purses:
            write(ADD_TO_PURSE, [(name, *more) for name, more in self._purses.items()])
