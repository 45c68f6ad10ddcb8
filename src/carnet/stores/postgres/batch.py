"""A batch of hot jobs in one PostgreSQL transaction, beside other processes that do the same.

First every lock is taken, then everything is decided in memory (`claim_rules`, `finish_rules`),
then all is written with one statement.

Law 1. Locks are taken in one order: nonces, runs, rates, quotas, budgets, by key in each (D17).
       Nothing is waited for after that, so overlapping batches wait for one another and never in a
       circle. A nonce that was used before is refused at once: its claim locks nothing more.
Law 2. Turns and their journal are changed under the lock of their run.
Law 3. A row that exists only because it had to be locked is deleted before the commit.
Law 4. Nobody claims under a lease that has run out: a worker that slept renews it first, so that
       what it claims is not taken over at once.
Law 5. What runs again or runs on by a claim of the batch is nobody's to end in the same batch: the
       claims come first, as if each had been a batch of its own.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

from carnet.core.chain.turn import Turn
from carnet.faults import point
from carnet.ports.calls.turns import TurnClaim, TurnFinish
from carnet.stores.commit.batch import Batch, Outcome
from carnet.stores.database import Flush, Row
from carnet.stores.outbox import GONE, delivery_row
from carnet.stores.postgres import budgets
from carnet.stores.postgres import statements as sql
from carnet.stores.turn.answers import MOST_COUNTED, queues
from carnet.stores.turn.claim_rules import ClaimRules, Run, nonces_of
from carnet.stores.turn.finish_rules import FinishRules, Shard, appended
from carnet.stores.turn.interrupts import places, read_holds, refunded
from carnet.stores.turn.row import AGAIN, BEGUN, ENDED, RESUMED, has_waited, parent_of, place
from carnet.stores.turn.sealed_calls import WaitingRows

Columns = list[Sequence[Any]]

_N, _KEY, _STATE, _WORKER = place("n"), place("key"), place("state"), place("worker")
_RESERVE, _QUOTA, _HOLDS = place("reserve"), place("purse"), place("holds")
_FOREVER: Final = 1 << 62  # a time that never comes


class QuerySession(Protocol):
    """The part of a connection that a batch uses."""

    async def query(self, text: str, *args: object) -> list[Row]:
        """Run one statement; its rows."""


def columns(rows: Sequence[Row], width: int) -> Columns:
    """Rows as one list for each column, which is how they are sent."""
    return list(zip(*rows, strict=True)) if rows else [()] * width


class HotBatch:
    """One batch: what was read for it, and what will be written."""

    def __init__(
        self, session: QuerySession, worker: str, batch: Batch, shard: Shard, *, lease_us: int
    ) -> None:
        """`lease_us` is how long a lease of the worker lasts; 0: it has none yet."""
        self._session = session
        self._shard = shard
        self._worker = worker
        self._lease_us = lease_us
        self._batch = batch
        self._asked: list[TurnClaim] = [job[0] for job in batch.claims]
        self._claims = self._asked  # those of them that are no replay
        self._flushes: list[Flush] = [job[0] for job in batch.appends]
        self._finishes: list[TurnFinish] = [job[0] for job in batch.finishes]
        self._postings: list[int] = []  # numbers for the postings
        self._claiming = ClaimRules(worker)  # every run will have been locked, and so exists
        self._finishing = FinishRules()
        self._fences: dict[int, int] = {}
        self._costs: dict[int, int] = {}  # of each run that is locked, as it was
        self._new_runs: list[int] = []
        self._new_rates: list[str] = []
        self._new_quotas: list[str] = []
        self._new_nonces: dict[Row, int] = {}

    async def apply(self) -> list[Outcome]:
        """Lock, decide and write; an answer for each job."""
        await self._use_nonces()
        await self._lock_runs()
        await self._read_turns()
        await self._read_depths()
        await self._lock_rates()
        await self._lock_quotas()
        await self._read_fronts()
        claiming = self._claiming
        await budgets.lock(self._session, self._claims, self._finishes, claiming, self._finishing)
        verdicts = [claiming.decide(claim) for claim in self._asked]
        for row in (*claiming.again, *claiming.resumed, *claiming.holding, *claiming.budgeted):
            self._fences.pop(row[-1], None)
            self._finishing.held.pop(row[-1], None)
        self._finishing.spent = claiming.held  # with what was reserved a moment ago
        appends_done, journal = appended(self._flushes, self._fences)
        ended = [self._finishing.end(finish) for finish in self._finishes]
        await self._write(journal)
        await self._clean()
        return [
            *zip(self._batch.claims, verdicts, strict=True),
            *zip(self._batch.appends, appends_done, strict=True),
            *zip(self._batch.finishes, ended, strict=True),
        ]

    async def _use_nonces(self) -> None:
        asked = [c for c in self._asked if c.nonce is not None or c.once is not None]
        signed = {(u.sender, u.nonce): u.expires for c in asked for u in nonces_of(c)}
        if not signed:
            return
        rows = [(*name, signed[name]) for name in sorted(signed)]
        now = min(claim.now for claim in self._asked)
        for n, sender, nonce in await self._session.query(sql.USE_NONCES, *columns(rows, 3), now):
            self._new_nonces[(sender, nonce)] = n
        point("t1.nonce")
        self._claiming.nonces = {name: _FOREVER for name in signed if name not in self._new_nonces}
        self._claims = [c for c in self._asked if not self._claiming.is_replayed(c)]

    async def _lock_runs(self) -> None:
        keys: dict[Row, int] = {}  # and when it started, if it is new
        for turn in self._written():
            keys[(turn.run, turn.payer.issuer, turn.payer.id)] = turn.created
        for claim in self._claims:
            account = claim.admitted.payer.account
            keys[(claim.admitted.carnet.run, account.issuer, account.id)] = claim.now
        rows = [(*key, keys[key]) for key in sorted(keys)]
        found = await self._session.query(
            sql.LOCK_RUNS, *columns(rows, 4), len(self._claims), self._worker
        )
        numbers: list[int] = []
        for n, name, issuer, account, calls, cost, is_new in found:
            if n is None:
                await self._renew(holds=is_new)
                continue
            if name is None:
                numbers.append(n)
                continue
            key = (name, issuer, account)
            self._claiming.runs[key] = Run(key, n, calls, calls)
            self._costs[n] = cost
            if is_new:
                self._new_runs.append(n)
        self._claiming.turn_numbers = numbers

    async def _renew(self, *, holds: bool) -> None:
        if self._claims and self._lease_us and not holds:
            await self._session.query(sql.RENEW, self._worker, self._lease_us)

    def _written(self) -> Iterator[Turn]:
        for flush in self._flushes:
            yield flush.turn
        for finish in self._finishes:
            yield finish.turn

    async def _read_turns(self) -> None:
        claiming = self._claiming
        new = set(self._new_runs)
        repeats: list[Row] = []
        for claim in self._claims:
            account = claim.admitted.payer.account
            run = claiming.runs[(claim.admitted.carnet.run, account.issuer, account.id)]
            if run.n not in new:
                repeats.append((run.n, claim.key))
        if repeats:
            await self._read_repeats(repeats)
        numbers = list(dict.fromkeys(turn.n for turn in self._written()))
        if numbers:
            # What exceeds may have one more: the part that is unpaid.
            postings = sum(len(finish.debits) + finish.exceeds for finish in self._finishes)
            found = await self._session.query(sql.HELD_TURNS, numbers, postings)
            held = [row for row in found if row[3] is not None]
            self._postings = sorted(row[0] for row in found if row[3] is None)
            self._fences = {row[0]: row[1] for row in held if row[5] == "running"}
            self._finishing.read([(*row, self._costs[row[4]]) for row in held])
            await self._read_callbacks()

    async def _read_callbacks(self) -> None:
        """Where the ends of tasks are told: their runs are locked."""
        numbers: list[int] = []
        for finish in self._finishes:
            if finish.tell is not None:
                numbers.append(finish.turn.n)  # noqa: PERF401  a comprehension costs each end a call
        if numbers:
            self._finishing.callbacks = await self._session.query(sql.CALLBACKS, numbers)

    async def _read_repeats(self, repeats: list[Row]) -> None:
        claiming = self._claiming
        lost: list[int] = []
        for row in await self._session.query(sql.KNOWN_TURNS, *columns(repeats, 2)):
            claiming.known[row[_KEY]] = row
            if row[-1]:
                claiming.alive.add(row[_WORKER])
            elif row[_STATE] == "running":
                lost.append(row[_N])
        await self._read_pending()
        if lost:
            claiming.tasks_lost = {n for (n,) in await self._session.query(sql.LOST_TASKS, lost)}

    async def _read_pending(self) -> None:
        """What turns wait for that are given an answer, or have waited for."""
        known = self._claiming.known
        found = [(known[c.key], c.resolution) for c in self._claims if c.key in known]
        numbers = [row[_N] for row, answer in found if answer is not None or has_waited(row)]
        if numbers:
            self._claiming.pending = await self._session.query(sql.PENDING, numbers)

    async def _read_depths(self) -> None:
        """What is recorded of the parents that peers name."""
        named = [claim for claim in self._claims if claim.wire_parent]
        if not named:
            return
        depths: dict[Row, set[int]] = {}
        places: dict[Row, None] = {}
        for claim in named:
            account = claim.admitted.payer.account
            run = self._claiming.runs[(claim.admitted.carnet.run, account.issuer, account.id)]
            places[(run.n, parent_of(claim))] = None
        for run_number, turn, depth in await self._session.query(
            sql.DEPTHS, *columns(list(places), 2)
        ):
            depths.setdefault((run_number, turn), set()).add(depth)
        self._claiming.depths = depths

    async def _lock_rates(self) -> None:
        buckets = sorted({rate.bucket for claim in self._claims for rate in claim.rates})
        if buckets:
            for bucket, tat, is_new in await self._session.query(sql.LOCK_RATES, buckets):
                self._claiming.tats[bucket] = tat
                if is_new:
                    self._new_rates.append(bucket)

    async def _lock_quotas(self) -> None:
        """Lock all quotas if a verdict depends on one; one that is not taken of is looked at."""
        quotas = [quota for claim in self._claims for quota in claim.quotas]
        limits = any(
            (claim.admitted.reserve or claim.resolution is not None)
            and claim.admitted.payer.limit is not None
            for claim in self._claims
        )
        limits = limits or self._claiming.pending != []
        exceeds = any(finish.exceeds or finish.state == "waiting" for finish in self._finishes)
        if limits or exceeds or any(quota.take for quota in quotas):
            await self._lock_all_quotas({quota.name for quota in quotas if quota.take})
        names = {quota.name for quota in quotas}
        names |= {claim.admitted.payer.quota for claim in self._claims if claim.may_cost}
        looked_at = sorted(names - self._claiming.held.keys())
        if looked_at:
            self._claiming.read_quotas(await self._session.query(sql.READ_QUOTAS, looked_at))

    async def _read_fronts(self) -> None:
        """How far the tasks are that wait for the agents of new ones."""
        agents = {claim.admitted.agent for claim in self._claims if claim.task is not None}
        if agents:
            found = await self._session.query(sql.FRONTS, sorted(agents))
            self._claiming.fronts = {agent: rank or 0 for agent, rank in found}
        waiting = queues(self._claims, self._claiming.known)
        if waiting:
            rows = await self._session.query(sql.QUEUED, *columns(waiting, 2), MOST_COUNTED)
            self._claiming.queued = {(agent, payer): count for agent, payer, count in rows}

    async def _lock_all_quotas(self, names: set[str]) -> None:
        names |= {claim.admitted.payer.quota for claim in self._claims if claim.admitted.reserve}
        known = [*self._claiming.known.values()]
        names |= {row[_QUOTA] for row in known if row[_RESERVE] or self._claiming.pending}
        names |= {row[3] for row in self._finishing.held.values() if row[2]}
        holding = [row[6] for row in self._finishing.held.values() if row[6]]
        names |= {hold[0] for holds in holding for hold in read_holds(holds)}
        payers = [finish.payer for finish in self._finishes if finish.debits]
        names |= {name for payer in payers for name in (payer.quota, payer.owing)}
        names |= {use.quota for finish in self._finishes for use in finish.uses}
        names |= {use.quota for finish in self._finishes for use in finish.holding}
        names |= {quota for row in known for quota, _ in places(row[_HOLDS])}
        found = await self._session.query(sql.LOCK_QUOTAS, sorted(names))
        self._claiming.read_quotas([row[:3] for row in found])
        self._new_quotas += [row[0] for row in found if row[3]]

    def _quotas(self) -> list[Row]:
        more = dict(self._finishing.quotas)
        for name, reserved in self._claiming.reserved.items():
            spent, before = more.get(name, (0, 0))
            more[name] = (spent, before + reserved)
        for name, taken in self._claiming.taken.items():
            spent, before = more.get(name, (0, 0))
            more[name] = (spent + taken, before)
        return [(name, *more[name]) for name in sorted(more)]

    def _runs(self) -> list[Row]:
        costs = self._finishing.run_costs_changed
        return [
            (run.n, run.calls, costs.get(run.n, self._costs[run.n]))
            for run in self._claiming.runs.values()
            if run.calls != run.was or run.n in costs
        ]

    async def _write(self, appends: list[Row]) -> None:
        claiming, finishing = self._claiming, self._finishing
        journal = claiming.journal + appends + finishing.journal
        rates = list(claiming.counted.items())
        quotas = self._quotas()
        postings = self._shard.link(finishing.ledger, iter(self._postings))
        if not (journal or rates or quotas or claiming.resolved or finishing.reopened):
            return
        await self._session.query(
            sql.WRITE,
            *columns(claiming.turns, len(BEGUN)),
            *columns(claiming.again, len(AGAIN) + 1),
            *columns(finishing.turns, len(ENDED) + 1),
            *columns(self._runs(), len(sql.RUN)),
            *columns(journal, len(sql.JOURNAL)),
            *columns(postings, len(sql.LEDGER)),
            *columns([self._shard.row()] if postings else [], len(sql.SHARD)),
            *columns(rates, len(sql.RATE)),
            *columns(quotas, len(sql.QUOTA)),
        )
        if finishing.budgets is not None:
            await budgets.write(self._session, claiming, finishing)
        if finishing.unpaid:
            await self._session.query(sql.ADD_UNPAID, *columns(list(finishing.unpaid.items()), 2))
        if claiming.waiting.tasks or claiming.resolved:
            await self._write_waiters()
        await self._write_listed()
        if finishing.requeued or finishing.deliveries or finishing.tasks or finishing.touched:
            await self._write_tasks()
        if claiming.lost or finishing.outbound:
            outbound = claiming.lost + finishing.outbound
            await self._session.query(sql.PUT_OUTBOUND, *columns(outbound, len(sql.OUTBOUND)))
        if finishing.refunds or finishing.calls or finishing.closed or finishing.reopened:
            await self._write_waiting()

    async def _write_listed(self) -> None:
        waiting, query = self._claiming.waiting, self._session.query
        if waiting.listed:
            await query(sql.LIST_TASKS, *columns(waiting.listed, len(sql.TASK)))
        if waiting.callbacks:
            await query(sql.PUT_CALLBACKS, *columns(waiting.callbacks, len(sql.CALLBACK)))

    async def _write_waiters(self) -> None:
        """What is to run later, and what was answered; and where it waits."""
        claiming = self._claiming
        if claiming.waiting.tasks:
            await self._put_tasks(claiming.waiting)
        if claiming.resolved:
            await self._write_answers()
        if claiming.waiting.ranks:
            await self._session.query(sql.SET_RANKS, *columns(claiming.waiting.ranks, 2))

    async def _write_answers(self) -> None:
        """What turns were answered that waited, and those that run on."""
        claiming, query = self._claiming, self._session.query
        resumed = columns(claiming.resumed, len(RESUMED) + 1)
        await query(sql.RESOLVE, *columns(claiming.resolved, 6), *resumed)
        if claiming.holding:
            await query(sql.HOLD_MORE, *columns(claiming.holding, 2))
        if claiming.driven:
            await query(sql.DRIVE_TASKS, *columns(claiming.driven, len(sql.TASK)))

    async def _put_tasks(self, waiting: WaitingRows) -> None:
        query = self._session.query
        await query(sql.PUT_TASKS, *columns(waiting.tasks, len(sql.TASK)))
        await query(sql.KEEP_CALLS, *columns(waiting.calls, 3))

    async def _write_tasks(self) -> None:
        """What finishes of tasks leave behind."""
        finishing, query = self._finishing, self._session.query
        if finishing.requeued:
            await query(sql.WAIT_AGAIN, *columns(finishing.requeued, 4))
        if finishing.touched:
            await query(sql.TOUCH_TASKS, *columns(finishing.touched, 2))
        if finishing.tasks:
            await query(sql.END_TASKS, *columns(finishing.tasks, 2))
        if finishing.deliveries:
            rows = sorted(delivery_row(delivery, now) for delivery, now in finishing.deliveries)
            await query(sql.PUT_DELIVERIES, *columns(rows, 11), GONE)

    async def _write_waiting(self) -> None:
        """What turns leave behind that wait for an answer."""
        finishing, query = self._finishing, self._session.query
        if finishing.refunds:
            found = refunded(await query(sql.REFUNDS, *columns(finishing.refunds, 2)))
            await query(sql.REFUND, *columns(found, 3))
        if finishing.calls:
            await query(sql.KEEP_CALLS, *columns(finishing.calls, 3))
            await query(sql.PUT_INTERRUPTS, *columns(finishing.interrupts, len(sql.INTERRUPT)))
        if finishing.closed:
            await query(sql.EXPIRE, finishing.closed)
        if finishing.reopened:
            await query(sql.REOPEN, *columns(finishing.reopened, 2))

    async def _clean(self) -> None:
        """Delete what was made for its lock and then not used."""
        called = {run.n for run in self._claiming.runs.values() if run.calls}
        runs = [n for n in self._new_runs if n not in called]
        rates = [bucket for bucket in self._new_rates if bucket not in self._claiming.counted]
        moved = {row[0] for row in self._quotas()} if self._new_quotas else set()
        moved |= self._finishing.unpaid.keys()
        quotas = [name for name in self._new_quotas if name not in moved]
        used = {(use.sender, use.nonce) for use in self._claiming.used}
        nonces = [n for name, n in self._new_nonces.items() if name not in used]
        if runs or rates or quotas or nonces:
            await self._session.query(sql.CLEAN, runs, rates, quotas, nonces)
