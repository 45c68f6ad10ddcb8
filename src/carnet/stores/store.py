"""A store: the ports over one database, and what keeps them fresh.

Law 1. Opened is not started: only `start` takes over turns and writes the mark of an unclean stop.
Law 2. What others write (tokens, people, peers, keys) is seen within a second.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from carnet.core.people.caller_host import CallerHost
from carnet.core.people.identity import Secret
from carnet.core.people.proof import Spending
from carnet.errors import CarnetError, ConfigInvalid
from carnet.ports.money.budgets import BudgetRecord
from carnet.ports.trust.keys import PinnedKey
from carnet.ports.trust.trust import Peer
from carnet.ports.world.clock import Clock
from carnet.ports.world.outbox import Delivery
from carnet.stores.calls.inbox import StoredInbox
from carnet.stores.calls.questions import StoredQuestions
from carnet.stores.calls.records import StoredRecords
from carnet.stores.calls.rules import StoredRules
from carnet.stores.calls.steps import StoredSteps
from carnet.stores.calls.tasks import StoredTasks
from carnet.stores.calls.turns import RunWatch, RunWatches, SearchRows, StoredTurns
from carnet.stores.conversations.conversations import StoredConversations
from carnet.stores.database import Database, Lease, Snapshot
from carnet.stores.ledger.checkpoints import EVERY_SECONDS, Checkpoints
from carnet.stores.ledger.differences import Difference, differences
from carnet.stores.ledger.payments import StoredPayments
from carnet.stores.ledger.settlements import Settlements
from carnet.stores.ledger.statements import StoredStatements
from carnet.stores.ledger.verification import Progress, Verified, verify
from carnet.stores.memory.files import StoredMemory
from carnet.stores.outbox import StoredOutbox
from carnet.stores.secrets.seal import WordSeal, derive
from carnet.stores.secrets.secrets_file import Keys
from carnet.stores.triggers.triggers import StoredTriggers
from carnet.stores.trust.receipts import StoredReceipts
from carnet.stores.trust.strangers import StoredStrangers
from carnet.stores.trust.trust import StoredTrust, TrustReader
from carnet.stores.trust.used_nonces import UsedNonces
from carnet.stores.turn.callbacks import StoredCallbacks
from carnet.stores.turn.finish_rules import Seals
from carnet.stores.turn.interrupts import Interrupts
from carnet.stores.turn.sealed_calls import CallSeal
from carnet.stores.upkeep.cluster import StoredCluster
from carnet.stores.upkeep.expiry import Expiry
from carnet.stores.upkeep.pruner import Pruner
from carnet.stores.upkeep.recovery import recover, take_up
from carnet.stores.upkeep.retention import (
    RETENTION_HOURS,
    Cleanup,
    Nonces,
    Pruned,
    RetentionHours,
    count_old,
    prune,
)
from carnet.stores.upkeep.revocation import Revocations

LOOK_SECONDS: Final = 1.0
FLUSH_SECONDS: Final = 5.0
LEASE_SECONDS: Final = 30.0
POLL_SECONDS: Final = 0.1  # how late a reader of a run sees what another gateway wrote

_log = logging.getLogger(__name__)

_MARK = "running"  # in meta while a gateway runs: who finds it was not the one to remove it
_READ_MARK = "SELECT value FROM meta WHERE name = ?"
_SET_MARK = (
    "INSERT INTO meta (name, value) VALUES (?, ?)"
    " ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)
_REMOVE_MARK = "DELETE FROM meta WHERE name = ? AND value = ?"
_PROBE = "UPDATE meta SET value = value WHERE name = ?"
_END_LEASE = "DELETE FROM worker WHERE id = ?"


class Worker(Struct, frozen=True, kw_only=True, eq=False):
    """Who has opened a store, and for what."""

    name: str
    serves: bool  # as a gateway, which runs turns
    lease_seconds: float = LEASE_SECONDS
    release: Callable[[], object] | None = None  # lets its lock go, where there is one


class Store:
    """What survives a crash."""

    _upkeep: asyncio.Task[None] | None = None  # until it is started
    on_budget: Callable[[BudgetRecord], Sequence[Delivery]] | None = None  # what tells of one

    def __init__(
        self,
        *,
        database: Database,
        trust: StoredTrust,
        secrets: Keys,
        clock: Clock,
        worker: Worker,
        hours: RetentionHours = RETENTION_HOURS,
    ) -> None:
        """`worker` is us."""
        self._database, self._clock, self.callers = database, clock, trust.callers
        self._serves, self._release, self.worker = worker.serves, worker.release, worker.name
        self._lease_seconds, self.delegations = worker.lease_seconds, trust.delegations
        self._watches = RunWatches(poll_seconds=POLL_SECONDS if database.is_shared else None)
        self._trust = TrustReader(trust, database, clock, self._trust_changed)
        self._flushed = self._renewed = self._sealed = clock.monotonic()
        self._secrets, self._seals = secrets, Seals(secrets.names)
        self._nonces, self._search_rows = Nonces(database, clock), SearchRows(database)
        self._checkpoints, self.used_nonces = self._beside(database)
        self.tokens, self.peers, self.people = trust.tokens, trust.peers, trust.people
        self.keys, self.pinned, self.vouchers = trust.keys, trust.pinned, trust.vouchers
        call_seal, search_rows = CallSeal(secrets), self._search_rows
        waiting = self._waiting = Interrupts(database, secrets, wait_hours=hours.waiting)
        self.receipts, self.questions = StoredReceipts(database), StoredQuestions(database, waiting)
        callbacks, self.sessions = StoredCallbacks(database, call_seal), trust.sessions
        self.turns: Final = StoredTurns(
            database, self._watches, call_seal, waiting, callbacks, search_rows
        )
        self.tasks: Final = StoredTasks(
            database, self._watches, call_seal, callbacks, self.worker, search_rows
        )
        self.inbox, self.rules = StoredInbox(database, waiting, call_seal), StoredRules(database)
        self.expiry: Final = Expiry(database, self.tasks, callbacks, clock)
        self.revocations: Final = Revocations(trust, database, clock, self.expiry)
        self.conversations, self.steps = (
            StoredConversations(database, derive(secrets.seal, "deleted", "")),
            StoredSteps(database),
        )
        self.word_seal, self.memory = WordSeal(secrets.seal), StoredMemory(database)
        self.outbox, self.triggers = (
            StoredOutbox(database),
            StoredTriggers(database, secrets, clock),
        )
        self.records: Final = StoredRecords(database, search_rows, waiting, self.people)
        self.payments, self.statements, self.settlements = self._money(database, search_rows)
        self.budgets = trust.budgets
        self.cluster: Final = StoredCluster(database, self.worker) if database.is_shared else None
        self.pruner: Final = Pruner(database, clock)
        self._cleanup = Cleanup(database, self.tasks, self.outbox, clock, task_hours=hours.tasks)

    def _money(
        self, database: Database, search_rows: SearchRows
    ) -> tuple[StoredPayments, StoredStatements, Settlements]:
        """What is told of the ledger, and noted beside it."""
        payments, statements = (
            StoredPayments(database, search_rows),
            StoredStatements(database, search_rows),
        )
        return payments, statements, Settlements(database, self._seals)

    def _beside(self, database: Database) -> tuple[Checkpoints, UsedNonces]:
        return Checkpoints(database, self._seals), UsedNonces(database)

    def take(
        self,
        peers: Iterable[Peer],
        keys: Iterable[PinnedKey],
        callers: Iterable[tuple[CallerHost, Secret | None]] = (),
        *,
        wait_hours: int,
    ) -> None:
        """Hold to a configuration file that was read again: peers, their keys, calling hosts."""
        self.peers.take(peers)
        self.pinned.take(keys)
        self.callers.take(callers)
        self._waiting.wait_hours = wait_hours
        self._trust_changed()

    def bound_waiting(self, per_caller: int) -> None:
        """Let no more turns of one caller wait for answers."""
        self._waiting.per_caller = per_caller

    def is_writable(self) -> bool:
        """Whether the last write succeeded."""
        return not self._database.trouble

    def is_broken(self) -> bool:
        """Whether a commit failed: nothing is written any more until the process starts anew."""
        return self._database.refusing.is_set()

    async def until_broken(self) -> None:
        """Wait until it is."""
        await self._database.refusing.wait()

    def webhook_secret(self, identity: str) -> bytes:
        """The secret that we share with an identity, to sign what we send to its callbacks.

        All gateways with the same secrets file know it; it is stored nowhere.
        """
        return derive(self._secrets.seal, "webhook", identity)

    async def probe(self) -> None:
        """Write nothing, but as a write would: raises if it could not be made."""
        await self._database.execute(_PROBE, ("",))

    async def start(self, limits: Mapping[str, Spending] | None = None) -> int:
        """Take the store into service; the number of turns that an earlier worker left behind.

        `limits` are the budgets that the configuration has.
        """
        lost = 0
        if self._serves:
            if not self._database.is_shared:
                await self._check_files()
                await self._database.execute(_SET_MARK, (_MARK, self.worker))
                await self.outbox.let_go(self._clock.wall_us())  # nobody else can be sending
                await self.triggers.firings.let_go()
            lost = await recover(self._database, now=self._clock.wall_us())
            await self._renew()
            lost += await take_up(self._database, self.worker, now=self._clock.wall_us())
            await self._seal()
            await self.keys.ensure(self._clock.wall_us())
        await self.refresh()
        if limits is not None:
            await self.budgets.take_written(limits, self._clock.wall_us())
        self._upkeep = asyncio.create_task(self._keep_up(), name="carnet-store-upkeep")
        return lost

    async def _check_files(self) -> None:
        if not await self._database.fetch(_READ_MARK, (_MARK,)):
            return
        wrong = await self._database.check()
        if wrong:
            raise ConfigInvalid(
                "; ".join(wrong),
                key="[store] url",
                reason="the database is damaged; restore a backup, or set it aside and start anew",
            )

    @property
    def strangers(self) -> StoredStrangers:
        """Those whom we have met without knowing them; nothing of them is held in memory."""
        return StoredStrangers(self._database, self._clock)

    async def refresh(self) -> None:
        """Read tokens, peers and keys again."""
        await self._trust.refresh()

    async def reread(self) -> None:
        """Take over what we wrote ourselves: what ends with it ends here at the next look."""
        await self._trust.refresh()
        self._trust_changed()

    async def look(self) -> bool:
        """Read tokens, peers and keys again if somebody else has written; whether they had."""
        return await self._trust.look()

    async def look_again(self) -> bool:
        """Look out of turn, for a token or peer that is not known yet."""
        return await self._trust.look_again()

    async def upkeep(self) -> None:
        """One look: what is due to be written, and what others wrote.

        Each part is tried whatever becomes of the others: the lease must not be lost because
        somebody's tokens cannot be read. What failed first is raised at the end.
        """
        now = self._clock.monotonic()
        since = now - self._renewed
        is_due = self._serves and since >= self._lease_seconds / 3
        parts: list[Callable[[], Awaitable[object]]] = [self._renew] if is_due else []
        parts.append(self.look)
        if self._serves and self.cluster is not None:
            parts.append(self.cluster.look)
        if now - self._flushed >= FLUSH_SECONDS:
            self._flushed = now
            parts.append(self.tokens.flush)
        # Others may have stopped meanwhile. If our own lease had run out, then theirs perhaps for
        # the same reason: the database was away, and they are about to renew it.
        if is_due and self.cluster is not None and since < self._lease_seconds:
            parts += [self._recover, self.cluster.forget]
        if self._serves and now - self._sealed >= EVERY_SECONDS:
            parts.append(self._seal)
        if self._serves:
            parts += [self.sessions.keep, self.revocations.keep, self._search_rows.keep]
            parts += [self._nonces.keep, self._expire, self._cleanup.keep, self.pruner.keep]
            parts += [self.triggers.keep, self._delete, self._warn]
        await _all_of(parts)

    def _trust_changed(self) -> None:
        self._watches.touch_all()
        self.revocations.read()

    async def _recover(self) -> None:
        if await recover(self._database, now=self._clock.wall_us()):
            self._search_rows.look_back()

    async def _expire(self) -> None:
        await self.expiry.end(self._clock.wall_us())

    async def _warn(self) -> None:
        """Tell of budgets of which most is used: kept to be told, then noted, so once at least."""
        tell = self.on_budget
        for one in () if tell is None else await self.budgets.to_warn():
            now = self._clock.wall_us()
            await self.outbox.put([] if tell is None else tell(one), now)
            await self.budgets.warned(one, now)

    async def _delete(self) -> None:
        await self.conversations.deletion.finish(self._clock.wall_us())
        await self.conversations.deletion.scrub()

    async def _seal(self) -> None:
        self._sealed = self._clock.monotonic()
        await self._checkpoints.write(self._clock.wall_us())

    async def _renew(self) -> None:
        renewed = self._clock.monotonic()
        now = self._clock.wall_us()
        until = now + int(self._lease_seconds * 1_000_000)
        await self._database.renew(Lease(self.worker, now, until))
        self._renewed = renewed

    async def _keep_up(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self.upkeep()
            except CarnetError as error:  # the next look may succeed; readiness shows it meanwhile
                _log.warning("store upkeep failed: %s", error)
            except Exception:  # noqa: BLE001  a task has no caller; the next look may be well
                _log.exception("store upkeep failed")

    def watch(self, run: str) -> RunWatch:
        """Be woken when something of a run is committed here: `with store.watch(run) as watch`."""
        return self._watches.on(run)

    async def prune(self, *, turn_days: int, event_days: int, dry_run: bool = False) -> Pruned:
        """Forget what is older, and what had its time; with `dry_run` only count turns and events.

        How long tasks are kept was said when the store was opened.
        """
        now = self._clock.wall_us()
        if dry_run:
            return await count_old(
                self._database, now=now, turn_days=turn_days, event_days=event_days
            )
        gone = await prune(self._database, now=now, turn_days=turn_days, event_days=event_days)
        late = await self._cleanup.forget()
        return replace(gone, tasks=gone.tasks + late.tasks, deliveries=late.deliveries)

    def snapshot(self) -> AbstractAsyncContextManager[Snapshot]:
        """Look at all of it as it is now."""
        return self._database.snapshot()

    async def verify_ledger(
        self, *, expected: str = "", progress: Progress | None = None
    ) -> Verified:
        """Check every posting of the ledger, as it is at one moment."""
        async with self._database.snapshot() as snapshot:
            return await verify(snapshot, self._seals, expected=expected, progress=progress)

    async def differences(self, *, elsewhere: Sequence[str], limit: int) -> list[Difference]:
        """Where our ledger and those of peers may differ; `elsewhere` are our names for theirs."""
        self._search_rows.look_back()  # calls that were lost with a process are found by these
        await self._search_rows.keep()
        return await differences(self._database, elsewhere=elsewhere, limit=limit)

    async def close(self) -> None:
        """Write what is pending and let go. A store that cannot be written is let go as it is."""
        if self._upkeep is not None:
            self._upkeep.cancel()
            await asyncio.wait([self._upkeep])
        await self.pruner.close()
        with contextlib.suppress(CarnetError):
            await self.tokens.flush()
            if self._upkeep is not None and self._serves:
                if not self._database.is_shared:
                    await self._database.execute(_REMOVE_MARK, (_MARK, self.worker))
                await self._database.execute(_END_LEASE, (self.worker,))
                await self._search_rows.keep()
                await self._seal()
        await self._database.close()
        if self._release is not None:
            self._release()


async def _all_of(parts: Sequence[Callable[[], Awaitable[object]]]) -> None:
    failed: CarnetError | None = None
    for part in parts:
        try:
            await part()
        except CarnetError as error:
            failed = failed or error
    if failed is not None:
        raise failed
