"""Deciding claims: the rules, without a database.

A driver reads what the claims need into `ClaimRules`, asks for a verdict on each, and writes the
rows that came of it. What was read must stay true until the commit: the driver holds the locks.

Law 1. The order is: nonce, known turn, place in the chain, run bound, rates, reservation. A refusal
       leaves no trace. A nonce is used up by every verdict that is no refusal.
Law 2. First come, first served: a batch is decided in the order it was queued.
Law 3. A batch holds no key and no nonce twice; the writer sees to that.
"""

from collections.abc import Callable
from typing import Final

from carnet.core.turn import Turn, on_repeat
from carnet.ports.turns import Claimed, Denied, Known, Nonce, Rate, TurnClaim, Verdict
from carnet.stores.database import Row
from carnet.stores.journal import ACCEPTED, DISCARD, sealed_row
from carnet.stores.rows import TURN_WIDTH, read_turn

_SECOND: Final = 1_000_000


class Run:
    """A run as one payer sees it: what was read, and how many calls it has now."""

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


class ClaimRules:
    """One batch: what was read for it, and the rows to write."""

    def __init__(
        self, worker: str, *, new_run: Callable[[], int], new_turn: Callable[[], int]
    ) -> None:
        self._worker = worker
        self._new_run = new_run
        self._new_turn = new_turn
        # What the driver reads.
        self.runs: dict[Row, Run] = {}
        self.known: dict[bytes, Row] = {}  # TURN_COLUMNS, key, digest, retryable, reserve, purse
        self.alive: set[str | None] = {worker}  # the workers whose turns are not taken over
        self.tats: dict[str, int] = {}
        self.held: dict[str, int] = {}  # spent and reserved of each purse
        self.nonces: dict[Row, int] = {}  # until when those are refused that were used before
        self.depths: dict[Row, set[int]] | None = None  # that calls below (run, turn) may have
        # What the driver writes.
        self.counted: set[str] = set()  # the buckets that changed
        self.reserved: dict[str, int] = {}  # what this batch adds to each purse
        self.turns: list[Row] = []
        self.again: list[Row] = []
        self.journal: list[Row] = []
        self.used: list[Nonce] = []

    def decide(self, claim: TurnClaim) -> Verdict:
        """Admit a claim, or say why not."""
        if claim.nonce is None:
            return self._decide(claim)
        if self.is_replayed(claim):
            return Denied("replayed")
        verdict = self._decide(claim)
        if not isinstance(verdict, Denied):
            self.used.append(claim.nonce)
        return verdict

    def is_replayed(self, claim: TurnClaim) -> bool:
        """Whether its nonce was used before and has not expired."""
        use = claim.nonce
        return use is not None and self.nonces.get((use.sender, use.nonce), 0) > claim.now

    def _decide(self, claim: TurnClaim) -> Verdict:
        known = self.known.get(claim.key)
        if known is not None:
            return self._repeat(claim, known)
        run = self._run_of(claim)
        if claim.wire_parent and not self._fits(claim, run):
            return Denied("chain")
        if run.calls >= claim.most_run_calls:
            return Denied("run_calls")
        denied = self._admit(claim, released=0)
        return denied or self._begin(claim, run)

    def _fits(self, claim: TurnClaim, run: Run) -> bool:
        """Whether the depth is that of its siblings, or one below its parent's own record.

        Nested ids of other implementations collide (R6): then there are several parents.
        """
        found = (self.depths or {}).get((run.n, claim.parent_turn))
        return not found or claim.depth in found

    def _place(self, claim: TurnClaim, run: Run, depths: dict[Row, set[int]]) -> None:
        depths.setdefault((run.n, claim.turn), set()).add(claim.depth + 1)
        if claim.parent_turn is not None:
            depths.setdefault((run.n, claim.parent_turn), set()).add(claim.depth)

    def _run_of(self, claim: TurnClaim) -> Run:
        key = (claim.run, claim.payer.account.issuer, claim.payer.account.id)
        run = self.runs.get(key)
        if run is None:
            run = self.runs[key] = Run(key, self._new_run(), 0, claim.now)
        return run

    def _admit(self, claim: TurnClaim, *, released: int) -> Denied | None:
        tats, denied = self._arrivals(claim) if claim.rates else ({}, None)
        if denied is not None:
            return denied
        if claim.reserve:
            purse, limit = claim.payer.purse, claim.payer.limit
            held = self.held.get(purse, 0) - released + claim.reserve
            if limit is not None and held > limit:
                return Denied("spending")
            self._reserve(purse, claim.reserve)
        if tats:
            self.tats.update(tats)
            self.counted.update(tats)
        return None

    def _arrivals(self, claim: TurnClaim) -> tuple[dict[str, int], Denied | None]:
        """The new mark of each bucket, or the refusal of the one that is full for longest."""
        tats: dict[str, int] = {}
        longest, full = 0, ""
        for rate in claim.rates:
            before = tats.get(rate.bucket, self.tats.get(rate.bucket, 0))
            tats[rate.bucket], wait = next_arrival(rate, before, claim.now)
            if wait is not None and wait > longest:
                longest, full = wait, rate.bucket
        return tats, Denied("rate", longest, full) if longest else None

    def _reserve(self, purse: str, amount: int) -> None:
        self.held[purse] = self.held.get(purse, 0) + amount
        self.reserved[purse] = self.reserved.get(purse, 0) + amount

    def _begin(self, claim: TurnClaim, run: Run) -> Claimed:
        run.calls += 1
        n = self._new_turn()
        if self.depths is not None:
            self._place(claim, run, self.depths)
        self.turns.append(
            (
                *(n, run.n, claim.key, claim.digest, self._worker, claim.turn, claim.parent_turn),
                *(claim.speaker, claim.depth, claim.agent, claim.actor, claim.now),
                *(claim.reserve, claim.payer.purse),
            )
        )
        self.journal.append(sealed_row(n, ACCEPTED, 0, 0, claim.request))
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
            worker_alive=turn.worker in self.alive,
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
        self.again.append((self._worker, fence, attempt, claim.reserve, claim.payer.purse, turn.n))
        note = b'{"attempt":%d}' % turn.attempt
        self.journal.append(sealed_row(turn.n, DISCARD, 0, 0, note))
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
