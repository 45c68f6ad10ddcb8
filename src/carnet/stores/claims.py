"""Claiming many turns in one SQLite transaction.

What the claims need is read with a few statements, every verdict is decided in memory
(`claim_rules`), and what was admitted is written with a few more. The writer holds the write lock
meanwhile, so what was read stays true; nothing is sorted by key (D17), as nobody else writes.
"""

from collections.abc import Sequence

from carnet.ports.turns import TurnClaim, Verdict
from carnet.stores.claim_rules import ClaimRules, Run
from carnet.stores.finishes import ADD_TO_PURSE, INSERT_JOURNAL
from carnet.stores.rows import TURN_WIDTH, Connection, Lookup

_RUNS = Lookup(
    "WITH w (id, issuer, account) AS (VALUES {keys})"
    " SELECT r.id, r.issuer, r.account, r.n, r.calls FROM w CROSS JOIN run r"
    " ON r.id = w.id AND r.issuer = w.issuer AND r.account = w.account",
    width=3,
)
_TURNS = Lookup(
    "WITH w (run, key) AS (VALUES {keys})"
    " SELECT {turn}, t.key, t.digest, t.retryable, t.reserve, t.purse"
    " FROM w CROSS JOIN turn t ON t.run = w.run AND t.key = w.key JOIN run r ON r.n = t.run",
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

_INSERT_RUN = "INSERT INTO run (n, id, issuer, account, calls, started) VALUES (?, ?, ?, ?, ?, ?)"
_COUNT_CALLS = "UPDATE run SET calls = ? WHERE n = ?"
_INSERT_TURN = (
    "INSERT INTO turn (n, run, key, digest, state, worker, fence, attempt, turn, parent, speaker,"
    " depth, agent, actor, created, reserve, purse)"
    " VALUES (?, ?, ?, ?, 'running', ?, 1, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_RUN_AGAIN = (
    "UPDATE turn SET state = 'running', worker = ?, fence = ?, attempt = ?, ended = NULL,"
    " tokens_in = NULL, tokens_out = NULL, cost = NULL, run_cost = NULL, code = NULL,"
    " retryable = 0, reserve = ?, purse = ? WHERE n = ?"
)
_SET_RATE = (
    "INSERT INTO rate (bucket, tat) VALUES (?, ?)"
    " ON CONFLICT (bucket) DO UPDATE SET tat = excluded.tat"
)


class Numbers:
    """The next row numbers. One process writes turns, so it may count in memory."""

    __slots__ = ("run", "turn")

    def __init__(self, connection: Connection) -> None:
        self.turn: int = connection.execute("SELECT COALESCE(MAX(n), 0) FROM turn").fetchone()[0]
        self.run: int = connection.execute("SELECT COALESCE(MAX(n), 0) FROM run").fetchone()[0]

    def new_run(self) -> int:
        self.run += 1
        return self.run

    def new_turn(self) -> int:
        self.turn += 1
        return self.turn


class ClaimBatch:
    """One batch: reads for the rules, and writes what they admitted."""

    def __init__(self, connection: Connection, numbers: Numbers, worker: str) -> None:
        self._connection = connection
        # A gateway that starts alone has no others: only its own turns have a worker.
        self._rules = ClaimRules(worker, new_run=numbers.new_run, new_turn=numbers.new_turn)

    def claim(self, claims: Sequence[TurnClaim]) -> list[Verdict]:
        """Decide and write."""
        self._read(claims)
        verdicts = [self._rules.decide(claim) for claim in claims]
        self._write()
        return verdicts

    def _read(self, claims: Sequence[TurnClaim]) -> None:
        rules = self._rules
        asked = {
            claim.key: (claim.run, claim.payer.account.issuer, claim.payer.account.id)
            for claim in claims
            if not claim.is_first
        }
        for row in _RUNS(self._connection, list(dict.fromkeys(asked.values()))):
            rules.runs[row[:3]] = Run(row[:3], row[3], row[4], 0)
        repeats = [
            (run.n, key)
            for key, named in asked.items()
            if (run := rules.runs.get(named)) is not None
        ]
        for row in _TURNS(self._connection, repeats):
            rules.known[row[TURN_WIDTH]] = row
        buckets = {claim.rate.bucket for claim in claims if claim.rate is not None}
        rules.tats.update(_RATES(self._connection, [(bucket,) for bucket in buckets]))
        purses = {claim.payer.purse for claim in claims if claim.reserve}
        rules.held.update(_PURSES(self._connection, [(purse,) for purse in purses]))

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
            write(_INSERT_TURN, rules.turns)
        if rules.again:
            write(_RUN_AGAIN, rules.again)
        if rules.journal:
            write(INSERT_JOURNAL, rules.journal)
        if rules.counted:
            write(_SET_RATE, [(bucket, rules.tats[bucket]) for bucket in rules.counted])
        if rules.reserved:
            write(ADD_TO_PURSE, [(name, 0, more) for name, more in rules.reserved.items()])
