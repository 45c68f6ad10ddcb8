"""Turns in memory: the port's promises without a disk, for tests that ask about an agent."""

from collections.abc import Callable

import msgspec

from carnet.core.events import Event, read_events
from carnet.core.interrupt import hash_state
from carnet.core.outbound import with_records
from carnet.core.turn import Turn, on_repeat
from carnet.ports.outbox import Letter
from carnet.ports.tasks import Callback, TaskClaim
from carnet.ports.turns import (
    Answer,
    Asked,
    Claimed,
    Debit,
    Denied,
    Fenced,
    Known,
    TurnClaim,
    TurnFinish,
    Verdict,
)


class MemoryTurns:
    """The Turns port over dictionaries: nonces, turns, rates and quotas. It keeps no reservations.

    A rate is counted over one window that begins with its first call and never ends. A task waits
    for ever: nobody takes it.
    """

    def __init__(self) -> None:
        """Start with none."""
        self._keys: dict[bytes, int] = {}
        self._digests: dict[int, bytes] = {}
        self._retryable: set[int] = set()
        self.counts: dict[str, int] = {}  # calls of each bucket
        self.nonces: dict[tuple[str, str], int] = {}  # those consumed, and until when
        self.purses: dict[str, int] = {}  # what is used of each quota
        self.tasks: dict[int, TaskClaim] = {}  # of the turns that wait
        self.letters: list[Letter] = []
        self.finishes: list[TurnFinish] = []
        self._spent_by: dict[tuple[str, str], int] = {}  # the turn that used up a delegation
        self.turns: dict[int, Turn] = {}
        self.batches: dict[int, list[bytes]] = {}
        self.grounds: dict[int, bytes] = {}  # why turns were admitted
        self.interrupted: dict[int, list[Asked]] = {}  # what turns wait for
        self.debits: list[Debit] = []
        self.before_write: Callable[[], None] = lambda: None  # raise here to break a write

    async def claim(self, claim: TurnClaim) -> Verdict:
        """Claim a turn, or learn why not."""
        verdict = self._replayed(claim) or self._decide(claim)
        if claim.nonce is not None and not isinstance(verdict, Denied):
            self.nonces[claim.nonce.sender, claim.nonce.nonce] = claim.nonce.expires
        return verdict

    def _replayed(self, claim: TurnClaim) -> Denied | None:
        nonce = claim.nonce
        if nonce is None or self.nonces.get((nonce.sender, nonce.nonce), 0) <= claim.now:
            return None
        return Denied("replayed")

    def _resolve(self, claim: TurnClaim, answer: Answer) -> Verdict:
        """Use an answer, once; the turn runs on when nothing else is left that it waits for."""
        n = self._keys.get(claim.key, 0)
        asked = self.interrupted.get(n, [])
        meant = [
            one
            for one in asked
            if one.status == "open" and hash_state(one.interrupt.state) == answer.state_hash
        ]
        if not meant or self.turns[n].state != "waiting" or meant[0].expires <= claim.now:
            return Denied("resolution")
        done = msgspec.structs.replace(
            meant[0],
            status="resolved",
            outcome=answer.outcome,
            resolver=answer.resolver,
            resolved=claim.now,
            value=answer.value,
        )
        self.interrupted[n] = [done if one is meant[0] else one for one in asked]
        turn = self.turns[n]
        if any(one.status == "open" for one in self.interrupted[n]):
            return Known(turn)
        self.batches[n] = []
        self.turns[n] = msgspec.structs.replace(
            turn, state="running", fence=turn.fence + 1, waits_until=None
        )
        return Claimed(self.turns[n])

    def _decide(self, claim: TurnClaim) -> Verdict:
        if claim.resolution is not None:
            return self._resolve(claim, claim.resolution)
        n = self._keys.get(claim.key)
        if n is not None:
            return self._repeat(n, claim)
        if self._spent(claim) is not None:
            return Denied("spent")
        if claim.most_run_calls < 1:
            return Denied("run_calls")
        return self._admit(claim) or self._begin(claim)

    def _spent(self, claim: TurnClaim) -> int | None:
        """The turn that used up the delegation of a claim."""
        once = claim.once
        if once is None or self.nonces.get((once.sender, once.nonce), 0) <= claim.now:
            return None
        return self._spent_by[once.sender, once.nonce]

    def _admit(self, claim: TurnClaim) -> Denied | None:
        for rate in claim.rates:
            if self.counts.get(rate.bucket, 0) >= rate.calls:
                return Denied("rate", 60, rate.bucket)
        for quota in claim.quotas:
            if self.purses.get(quota.purse, 0) + max(quota.take, 1) > quota.limit:
                return Denied("quota", quota.retry_after, quota.purse)
        for rate in claim.rates:
            self.counts[rate.bucket] = self.counts.get(rate.bucket, 0) + 1
        for quota in claim.quotas:
            self._use(quota.purse, quota.take)
        return None

    def _use(self, purse: str, amount: int) -> None:
        self.purses[purse] = self.purses.get(purse, 0) + amount

    def _spend(self, claim: TurnClaim, n: int) -> None:
        if claim.once is not None:
            name = (claim.once.sender, claim.once.nonce)
            self.nonces[name] = claim.once.expires
            self._spent_by[name] = n

    def _begin(self, claim: TurnClaim) -> Claimed:
        n = self._keys[claim.key] = len(self._keys) + 1
        self._digests[n] = claim.digest
        self.batches[n] = []
        self.grounds[n] = claim.grounds
        self._spend(claim, n)
        if claim.task is not None:
            self.tasks[n] = claim.task
        turn = self.turns[n] = Turn(
            n=n,
            key=claim.key,
            agent=claim.admitted.agent,
            run=claim.admitted.carnet.run,
            turn=claim.admitted.carnet.turn,
            parent_turn=claim.parent_turn,
            speaker=claim.admitted.carnet.speaker,
            depth=claim.admitted.carnet.depth,
            state="running" if claim.task is None else "queued",
            actor=claim.admitted.caller.actor.name,
            payer=claim.admitted.payer.account,
            created=claim.now,
        )
        return Claimed(turn)

    def _repeat(self, n: int, claim: TurnClaim) -> Verdict:
        turn = self.turns[n]
        repeat = on_repeat(
            turn.state,
            same_digest=self._digests[n] == claim.digest,
            retryable=n in self._retryable,
            worker_alive=True,
        )
        if repeat == "mismatch":
            return Denied("mismatch")
        if repeat != "run_again":
            return Known(turn)
        if self._spent(claim) not in {None, n}:
            return Denied("spent")
        denied = self._admit(claim)
        if denied is not None:
            return denied
        self._spend(claim, n)
        return self._again(turn, claim)

    def _again(self, turn: Turn, claim: TurnClaim) -> Claimed:
        n = turn.n
        self.batches[n] = []
        self.grounds[n] = claim.grounds
        if claim.task is not None:
            self.tasks[n] = claim.task
        again = msgspec.structs.replace(
            turn,
            state="running" if claim.task is None else "queued",
            attempt=turn.attempt + 1,
            fence=turn.fence + 1,
        )
        self.turns[n] = again
        return Claimed(again)

    async def append(self, turn: Turn, first: int, last: int, events: bytes) -> None:
        """Keep a batch."""
        self.before_write()
        self._check(turn)
        if last < first:
            raise ValueError("a batch holds at least one event")
        self.batches[turn.n].append(events)

    async def finish(self, finish: TurnFinish) -> Turn:
        """End a turn."""
        self.before_write()
        self._check(finish.turn)
        own = sum(debit.amount for debit in finish.debits)
        self.debits += finish.debits
        if finish.events:
            self.batches[finish.turn.n].append(finish.events)
        for use in finish.uses:
            self._use(use.purse, use.amount)
        self.letters += finish.letters
        if finish.tell is not None:
            task = self.tasks.get(finish.turn.n)
            url = None if task is None else task.callback
            self.letters += finish.tell([] if url is None else [Callback(url=url)])
        self.finishes.append(finish)
        if finish.interrupts:
            self.interrupted[finish.turn.n] = [
                Asked(interrupt=asked, status="open", expires=finish.waits_until)
                for asked in finish.interrupts
            ]
        if finish.retryable:
            self._retryable.add(finish.turn.n)
        ended = msgspec.structs.replace(
            finish.turn,
            state=finish.state,
            ended=None if finish.state == "waiting" else finish.now,
            waits_until=finish.waits_until or None,
            tokens_in=finish.tokens_in,
            tokens_out=finish.tokens_out,
            cost=own + finish.children_cost,
            run_cost=sum(debit.amount for debit in self.debits),
            code=finish.code,
        )
        self.turns[ended.n] = ended
        return ended

    async def events(self, turn: Turn, since: int = 0) -> list[bytes]:
        """The batches of the current attempt that begin there or later."""
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
        return found

    async def interrupts(self, turn: Turn) -> list[Asked]:
        """What a turn waits for, or waited for."""
        return list(self.interrupted.get(turn.n, ()))

    async def reload(self, turn: Turn) -> Turn:
        """The record as it is now."""
        return self.turns[turn.n]

    def said(self, n: int) -> list[Event]:
        """Everything a turn has said."""
        return [event for batch in self.batches[n] for event in read_events(batch)]

    def _check(self, turn: Turn) -> None:
        now = self.turns[turn.n]
        if now.fence != turn.fence or now.state != "running":
            raise Fenced(f"turn {turn.n}")
