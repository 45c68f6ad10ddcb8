"""Claiming many turns in one SQLite transaction.

What the claims need is read with a few statements, every verdict is decided here in memory, and
what was admitted is written with a few more. The writer holds the write lock meanwhile, so what
was read stays true.

Law 1. The order is: known turn, run bound, rate, reservation. A refusal leaves no trace.
Law 2. First come, first served: a batch is decided in the order it was queued. Sorting by key is
       for databases with several writers (D17); here there is one.
Law 3. A batch holds no key twice; the writer sees to that.
"""

from collections.abc import Sequence
from typing import Final

from carnet.core.turn import Turn, on_repeat
from carnet.ports.turns import Claimed, Denied, Known, Rate, TurnClaim, Verdict
from carnet.stores.database import Row
from carnet.stores.finishes import ADD_TO_PURSE, INSERT_JOURNAL
from carnet.stores.journal import ACCEPTED, DISCARD, sealed_row
from carnet.stores.rows import TURN_WIDTH, Connection, Lookup, read_turn

_SECOND: Final = 1_000_000

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


class _Run:
    __slots__ = ("calls", "key", "n", "started", "was")

    def __init__(self, key: Row, n: int, calls: int, started: int) -> None:
        self.key = key
        self.n = n
        self.was = calls  # 0: the row does not exist yet
        self.calls = calls
        self.started = started


def next_arrival(rate: Rate, tat: int, now: int) -> tuple[int, int | None]:
    """GCRA: the bucket's new mark, or the seconds to wait.

    `calls` may come at once; then one more each `seconds / calls`. A mark further ahead than a full
    bucket comes from a clock that was set back, and is read as a full bucket.
    """
    gap = -(-rate.seconds * _SECOND // rate.calls)
    tat = max(now, min(tat, now + rate.calls * gap))
    wait = tat - (rate.calls - 1) * gap - now
    if wait > 0:
        return tat, -(-wait // _SECOND)
    return tat + gap, None


class ClaimBatch:
    """One batch: what was read for it, and what will be written."""

    def __init__(self, connection: Connection, numbers: Numbers, worker: str) -> None:
        self._connection = connection
        self._numbers = numbers
        self._worker = worker
        self._runs: dict[Row, _Run] = {}
        self._known: dict[bytes, Row] = {}
        self._tats: dict[str, int] = {}
        self._counted: set[str] = set()  # the buckets that changed
        self._held: dict[str, int] = {}  # spent and reserved of each purse
        self._reserved: dict[str, int] = {}  # what this batch adds to it
        self._turns: list[Row] = []
        self._again: list[Row] = []
        self._journal: list[Row] = []

    def claim(self, claims: Sequence[TurnClaim]) -> list[Verdict]:
        """Decide and write."""
        self._read(claims)
        verdicts = [self._decide(claim) for claim in claims]
        self._write()
        return verdicts

    def _read(self, claims: Sequence[TurnClaim]) -> None:
        asked = [(c.run, c.payer.account.issuer, c.payer.account.id) for c in claims]
        for row in _RUNS(self._connection, list(dict.fromkeys(asked))):
            self._runs[row[:3]] = _Run(row[:3], row[3], row[4], 0)
        repeats = [
            (run.n, claim.key)
            for claim, key in zip(claims, asked, strict=True)
            if (run := self._runs.get(key)) is not None
        ]
        for row in _TURNS(self._connection, repeats):
            self._known[row[TURN_WIDTH]] = row
        buckets = {claim.rate.bucket for claim in claims if claim.rate is not None}
        self._tats.update(_RATES(self._connection, [(bucket,) for bucket in buckets]))
        purses = {claim.payer.purse for claim in claims if claim.reserve}
        self._held.update(_PURSES(self._connection, [(purse,) for purse in purses]))

    def _decide(self, claim: TurnClaim) -> Verdict:
        known = self._known.get(claim.key)
        if known is not None:
            return self._repeat(claim, known)
        run = self._run_of(claim)
        if run.calls >= claim.most_run_calls:
            return Denied("run_calls")
        denied = self._admit(claim, released=0)
        return denied or self._begin(claim, run)

    def _run_of(self, claim: TurnClaim) -> _Run:
        key = (claim.run, claim.payer.account.issuer, claim.payer.account.id)
        run = self._runs.get(key)
        if run is None:
            self._numbers.run += 1
            run = self._runs[key] = _Run(key, self._numbers.run, 0, claim.now)
        return run

    def _admit(self, claim: TurnClaim, *, released: int) -> Denied | None:
        tat = 0
        if claim.rate is not None:
            before = self._tats.get(claim.rate.bucket, 0)
            tat, wait = next_arrival(claim.rate, before, claim.now)
            if wait is not None:
                return Denied("rate", wait)
        if claim.reserve:
            purse, limit = claim.payer.purse, claim.payer.limit
            held = self._held.get(purse, 0) - released + claim.reserve
            if limit is not None and held > limit:
                return Denied("spending")
            self._reserve(purse, claim.reserve)
        if claim.rate is not None:
            self._tats[claim.rate.bucket] = tat
            self._counted.add(claim.rate.bucket)
        return None

    def _reserve(self, purse: str, amount: int) -> None:
        self._held[purse] = self._held.get(purse, 0) + amount
        self._reserved[purse] = self._reserved.get(purse, 0) + amount

    def _begin(self, claim: TurnClaim, run: _Run) -> Claimed:
        run.calls += 1
        self._numbers.turn = n = self._numbers.turn + 1
        self._turns.append(
            (
                *(n, run.n, claim.key, claim.digest, self._worker, claim.turn, claim.parent_turn),
                *(claim.speaker, claim.depth, claim.agent, claim.actor, claim.now),
                *(claim.reserve, claim.payer.purse),
            )
        )
        self._journal.append(sealed_row(n, ACCEPTED, 0, 0, claim.request))
        return Claimed(
            Turn(
                n=n,
                agent=claim.agent,
                run=claim.run,
                turn=claim.turn,
                parent_turn=claim.parent_turn,
                speaker=claim.speaker,
                depth=claim.depth,
                actor=claim.actor,
                payer=claim.payer.account,
                created=claim.now,
                worker=self._worker,
            )
        )

    def _repeat(self, claim: TurnClaim, row: Row) -> Verdict:
        turn = read_turn(row)
        _, digest, retryable, reserve, purse = row[TURN_WIDTH:]
        repeat = on_repeat(
            turn.state,
            same_digest=digest == claim.digest,
            retryable=bool(retryable),
            worker_alive=turn.worker == self._worker,  # a gateway that starts alone has no others
        )
        if repeat == "mismatch":
            return Denied("mismatch")
        if repeat != "run_again":
            return Known(turn)
        denied = self._admit(claim, released=reserve if purse == claim.payer.purse else 0)
        if denied is not None:
            return denied
        if reserve:  # held by an attempt that nobody ended
            self._reserve(purse, -reserve)
        return self._begin_again(claim, turn)

    def _begin_again(self, claim: TurnClaim, turn: Turn) -> Claimed:
        fence, attempt = turn.fence + 1, turn.attempt + 1
        self._again.append((self._worker, fence, attempt, claim.reserve, claim.payer.purse, turn.n))
        note = b'{"attempt":%d}' % turn.attempt
        self._journal.append(sealed_row(turn.n, DISCARD, 0, 0, note))
        return Claimed(
            Turn(
                n=turn.n,
                agent=turn.agent,
                run=turn.run,
                turn=turn.turn,
                parent_turn=turn.parent_turn,
                speaker=turn.speaker,
                depth=turn.depth,
                attempt=attempt,
                fence=fence,
                actor=turn.actor,
                payer=turn.payer,
                created=turn.created,
                worker=self._worker,
            )
        )

    def _write(self) -> None:
        write = self._connection.executemany
        changed = [run for run in self._runs.values() if run.calls != run.was]
        new = [(run.n, *run.key, run.calls, run.started) for run in changed if not run.was]
        if new:
            write(_INSERT_RUN, new)
        if len(new) < len(changed):
            write(_COUNT_CALLS, [(run.calls, run.n) for run in changed if run.was])
        if self._turns:
            write(_INSERT_TURN, self._turns)
        if self._again:
            write(_RUN_AGAIN, self._again)
        if self._journal:
            write(INSERT_JOURNAL, self._journal)
        if self._counted:
            write(_SET_RATE, [(bucket, self._tats[bucket]) for bucket in self._counted])
        if self._reserved:
            write(ADD_TO_PURSE, [(name, 0, more) for name, more in self._reserved.items()])
