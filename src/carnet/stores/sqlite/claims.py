"""Claiming many turns in one SQLite transaction.

What the claims need is read with a few statements, every verdict is decided in memory
(`claim_rules`), and what was admitted is written with a few more. The writer holds the write lock
meanwhile, so what was read stays true; nothing is sorted by key (D17), as nobody else writes.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Any

from msgspec import Struct, field

import carnet.faults
from carnet.faults import point
from carnet.ports.work.turns import Nonce, TurnClaim, Verdict
from carnet.stores.database import Row
from carnet.stores.sqlite.finishes import ADD_TO_QUOTA, INSERT_JOURNAL, KEEP_CALL
from carnet.stores.turn.claim_rules import ClaimRules, Run, names_of
from carnet.stores.turn.interrupts import PENDING, RESOLVE
from carnet.stores.turn.lookup import Lookup, SqlConnection
from carnet.stores.turn.row import INSERT_TURN, RESUME, RUN_AGAIN, place

_RUNS = Lookup(
    "WITH w (id, issuer, account) AS (VALUES {keys})"
    " SELECT r.id, r.issuer, r.account, r.n, r.calls FROM w CROSS JOIN run r"
    " ON r.id = w.id AND r.issuer = w.issuer AND r.account = w.account",
    width=3,
)
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
    " SELECT p.name, p.spent + p.reserved FROM w CROSS JOIN purse p ON p.name = w.name",
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

_INSERT_RUN = "INSERT INTO run (n, id, issuer, account, calls, started) VALUES (?, ?, ?, ?, ?, ?)"
_COUNT_CALLS = "UPDATE run SET calls = ? WHERE n = ?"
# A task that is sent again keeps its id; what it was is replaced.
_PUT_TASK = (
    "INSERT INTO task (turn, id, sender, skill) VALUES (?, ?, ?, ?) ON CONFLICT (turn) DO UPDATE"
    " SET sender = excluded.sender, skill = excluded.skill, progress = NULL, note = NULL,"
    " cancelled = NULL, lost = 0, ended = NULL"
)
_FORGET_CALLBACKS = "DELETE FROM callback WHERE turn = ?"
_PUT_CALLBACK = "INSERT INTO callback (turn, place, url, dialect, created) VALUES (?, 0, ?, ?, ?)"
_SET_RATE = (
    "INSERT INTO rate (bucket, tat) VALUES (?, ?)"
    " ON CONFLICT (bucket) DO UPDATE SET tat = excluded.tat"
)
# One that is there has expired: it gives way, and the new row stands at the end, where it belongs.
_USE_NONCE = "INSERT OR REPLACE INTO nonce (n, sender, nonce, expires) VALUES (?, ?, ?, ?)"


_N, _KEY = place("n"), place("key")


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


def _asked(claims: Sequence[TurnClaim]) -> _Asked:
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
        if claim.quotas or admitted.reserve:
            asked.paying.append(claim)
        if claim.wire_parent:
            asked.placed.append(claim)
    return asked


class ClaimBatch:
    """One batch: reads for the rules, and writes what they admitted."""

    def __init__(self, connection: SqlConnection, numbers: Numbers, worker: str) -> None:
        self._connection = connection
        self._numbers = numbers
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
        if asked.runs:
            self._read_runs(claims, asked.runs)
        if asked.placed:
            self._read_depths(asked.placed)
        if asked.buckets:
            rules.tats = dict(_RATES(self._connection, [*asked.buckets]))
        if asked.paying:
            self._read_quotas(asked.paying)
        if asked.nonces:
            for sender, nonce, expires in _NONCES(self._connection, asked.nonces):
                rules.nonces[(sender, nonce)] = expires

    def _read_quotas(self, claims: Sequence[TurnClaim]) -> None:
        quotas = {claim.admitted.payer.quota for claim in claims if claim.admitted.reserve}
        quotas |= {quota.name for claim in claims for quota in claim.quotas}
        self._rules.held = dict(_QUOTAS(self._connection, [*quotas]))

    def _read_runs(self, claims: Sequence[TurnClaim], asked: dict[bytes, Row]) -> None:
        """The runs, the turns of the same keys, and what is known of both."""
        rules = self._rules
        named = dict.fromkeys(asked.values())
        for row in _RUNS(self._connection, [*chain.from_iterable(named)]):
            rules.runs[row[:3]] = Run(row[:3], row[3], row[4], row[4])
        if not rules.runs:
            return
        repeats: list[Any] = []
        for key, run in asked.items():
            if run in rules.runs:
                repeats += (rules.runs[run].n, key)
        for row in _TURNS(self._connection, repeats):
            rules.known[row[_KEY]] = row
        for claim in claims:
            if claim.resolution is not None and claim.key in rules.known:
                turn = rules.known[claim.key][_N]
                rules.pending += self._connection.execute(PENDING, (turn,)).fetchall()

    def _read_depths(self, claims: Sequence[TurnClaim]) -> None:
        """What is recorded of the parents that peers name."""
        rules = self._rules
        rules.depths = {}
        places: dict[Row, None] = {}
        for claim in claims:
            account = claim.admitted.payer.account
            run = rules.runs.get((claim.admitted.carnet.run, account.issuer, account.id))
            if run is not None:
                places[(run.n, claim.parent_turn)] = None
        for run_number, turn, depth in _DEPTHS(self._connection, [*chain.from_iterable(places)]):
            rules.depths.setdefault((run_number, turn), set()).add(depth)

    def _write(self) -> None:
        write = self._connection.executemany
        rules = self._rules
        changed = [run for run in rules.runs.values() if run.calls != run.was]
        new = [(run.n, *run.key, run.calls, run.started) for run in changed if not run.was]
        if new:
            write(_INSERT_RUN, new)
        if len(new) < len(changed):
            write(_COUNT_CALLS, [(run.calls, run.n) for run in changed if run.was])
        if rules.turns:
            write(INSERT_TURN, rules.turns)
        if rules.again:
            write(RUN_AGAIN, rules.again)
        if rules.journal:
            write(INSERT_JOURNAL, rules.journal)
        if rules.counted:
            write(_SET_RATE, list(rules.counted.items()))
        if rules.reserved:
            write(ADD_TO_QUOTA, [(name, 0, more) for name, more in rules.reserved.items()])

    def _write_tasks(self) -> None:
        """What only quotas, tasks and turns that wait have."""
        write = self._connection.executemany
        rules = self._rules
        if rules.taken:
            write(ADD_TO_QUOTA, [(name, more, 0) for name, more in rules.taken.items()])
        if rules.resolved:
            write(RESOLVE, rules.resolved)
            write(RESUME, rules.resumed)
        if rules.waiting.tasks:
            write(_PUT_TASK, rules.waiting.tasks)
            write(KEEP_CALL, rules.waiting.calls)
            write(_FORGET_CALLBACKS, [row[:1] for row in rules.waiting.tasks])
            write(_PUT_CALLBACK, rules.waiting.callbacks)

    def _use_nonces(self, used: Sequence[Nonce]) -> None:
        first = self._numbers.nonce + 1
        rows = [(n, use.sender, use.nonce, use.expires) for n, use in enumerate(used, first)]
        self._numbers.nonce += len(rows)
        self._connection.executemany(_USE_NONCE, rows)
        if carnet.faults.is_armed:
            point("t1.nonce")
