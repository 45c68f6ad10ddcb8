"""Claiming many turns in one SQLite transaction.

What the claims need is read with a few statements, every verdict is decided in memory
(`claim_rules`), and what was admitted is written with a few more. The writer holds the write lock
meanwhile, so what was read stays true; nothing is sorted by key (D17), as nobody else writes.
"""

from collections.abc import Sequence

from carnet.faults import point
from carnet.ports.turns import Nonce, TurnClaim, Verdict
from carnet.stores.claim_rules import ClaimRules, Run, nonces_of
from carnet.stores.database import Row
from carnet.stores.finishes import ADD_TO_PURSE, INSERT_JOURNAL, KEEP_CALL
from carnet.stores.interrupts import PENDING, RESOLVE
from carnet.stores.rows import Connection, Lookup
from carnet.stores.turn_row import INSERT_TURN, RESUME, RUN_AGAIN, place

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
_PURSES = Lookup(
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

    def __init__(self, connection: Connection) -> None:
        self.turn: int = connection.execute("SELECT COALESCE(MAX(n), 0) FROM turn").fetchone()[0]
        self.run: int = connection.execute("SELECT COALESCE(MAX(n), 0) FROM run").fetchone()[0]
        last: int = connection.execute("SELECT COALESCE(MAX(n), 0) FROM nonce").fetchone()[0]
        self.nonce: int = last

    def new_run(self) -> int:
        self.run += 1
        return self.run

    def new_turn(self) -> int:
        self.turn += 1
        return self.turn

    def new_nonce(self) -> int:
        self.nonce += 1
        return self.nonce


class ClaimBatch:
    """One batch: reads for the rules, and writes what they admitted."""

    def __init__(self, connection: Connection, numbers: Numbers, worker: str) -> None:
        self._connection = connection
        self._numbers = numbers
        # A gateway that starts alone has no others: only its own turns have a worker.
        self._rules = ClaimRules(worker, new_run=numbers.new_run, new_turn=numbers.new_turn)

    def claim(self, claims: Sequence[TurnClaim]) -> list[Verdict]:
        """Decide and write."""
        self._read(claims)
        verdicts = [self._rules.decide(claim) for claim in claims]
        if self._rules.used:
            self._use_nonces(self._rules.used)
        self._write()
        self._write_tasks()
        return verdicts

    def _read(self, claims: Sequence[TurnClaim]) -> None:
        rules = self._rules
        asked = {
            claim.key: (
                claim.admitted.carnet.run,
                claim.admitted.payer.account.issuer,
                claim.admitted.payer.account.id,
            )
            for claim in claims
            if not claim.is_first
        }
        for row in _RUNS(self._connection, list(dict.fromkeys(asked.values()))):
            rules.runs[row[:3]] = Run(row[:3], row[3], row[4], row[4])
        repeats = [
            (run.n, key)
            for key, named in asked.items()
            if (run := rules.runs.get(named)) is not None
        ]
        for row in _TURNS(self._connection, repeats):
            rules.known[row[_KEY]] = row
        for claim in claims:
            if claim.resolution is not None and claim.key in rules.known:
                turn = rules.known[claim.key][_N]
                rules.pending += self._connection.execute(PENDING, (turn,)).fetchall()
        self._read_depths(claims)
        buckets = {rate.bucket for claim in claims for rate in claim.rates}
        rules.tats.update(_RATES(self._connection, [(bucket,) for bucket in buckets]))
        purses = {claim.admitted.payer.purse for claim in claims if claim.admitted.reserve}
        purses |= {quota.purse for claim in claims for quota in claim.quotas}
        rules.held.update(_PURSES(self._connection, [(purse,) for purse in purses]))
        signed = [claim for claim in claims if claim.nonce is not None or claim.once is not None]
        nonces = [(use.sender, use.nonce) for claim in signed for use in nonces_of(claim)]
        for sender, nonce, expires in _NONCES(self._connection, nonces):
            rules.nonces[(sender, nonce)] = expires

    def _read_depths(self, claims: Sequence[TurnClaim]) -> None:
        """What is recorded of the parents that peers name."""
        rules = self._rules
        named = [claim for claim in claims if claim.wire_parent]
        if not named:
            return
        rules.depths = {}
        places: dict[Row, None] = {}
        for claim in named:
            account = claim.admitted.payer.account
            run = rules.runs.get((claim.admitted.carnet.run, account.issuer, account.id))
            if run is not None:
                places[(run.n, claim.parent_turn)] = None
        for run_number, turn, depth in _DEPTHS(self._connection, list(places)):
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
            write(ADD_TO_PURSE, [(name, 0, more) for name, more in rules.reserved.items()])

    def _write_tasks(self) -> None:
        """What only quotas, tasks and turns that wait have."""
        write = self._connection.executemany
        rules = self._rules
        if rules.taken:
            write(ADD_TO_PURSE, [(name, more, 0) for name, more in rules.taken.items()])
        if rules.resolved:
            write(RESOLVE, rules.resolved)
            write(RESUME, rules.resumed)
        if rules.waiting.tasks:
            write(_PUT_TASK, rules.waiting.tasks)
            write(KEEP_CALL, rules.waiting.calls)
            write(_FORGET_CALLBACKS, [row[:1] for row in rules.waiting.tasks])
            write(_PUT_CALLBACK, rules.waiting.callbacks)

    def _use_nonces(self, used: Sequence[Nonce]) -> None:
        number = self._numbers.new_nonce
        rows = [(number(), use.sender, use.nonce, use.expires) for use in used]
        self._connection.executemany(_USE_NONCE, rows)
        point("t1.nonce")
