"""Pruning by itself, beside the calls, in the times that `[retention] every` says.

Law 1. A step is one small transaction, and a look takes `BUSY_SECONDS` at the most: calls go on
       between the steps, and the lease is renewed between the looks.
Law 2. Of several gateways one prunes at a time: who begins writes so into the store, and goes on
       writing it. One that died is followed by another when `every` has passed.
Law 3. When it was last done stands in the store: a gateway that is started often does it as often.
"""

import logging
from collections.abc import AsyncGenerator, Callable
from typing import Final, NamedTuple

from carnet.ports.world.clock import Clock
from carnet.stores.database import Database
from carnet.stores.tables import PRUNED
from carnet.stores.upkeep.retention import Pruned, prune_steps

BUSY_SECONDS: Final = 0.5
LOOK_SECONDS: Final = 60.0  # between two looks at whether it is our turn

_log = logging.getLogger(__name__)

_FIRST = "INSERT INTO meta (name, value) VALUES (?, '0') ON CONFLICT DO NOTHING"
# A time that is still to come was written before the clock was set back.
_BEGIN = (
    "UPDATE meta SET value = ? WHERE name = ?"
    " AND (CAST(value AS BIGINT) <= ? OR CAST(value AS BIGINT) > ?)"
)
_GO_ON = "UPDATE meta SET value = ? WHERE name = ? AND value = ?"


class PruneRule(NamedTuple):
    """What is pruned, and how often."""

    turn_days: int
    event_days: int
    every_seconds: int


class Pruner:
    """Prunes one store, or waits until it may."""

    def __init__(self, database: Database, clock: Clock) -> None:
        """Until it has a rule it does nothing."""
        self._database = database
        self._clock = clock
        self.rule: PruneRule | None = None
        self._looked: float | None = None
        self._mark = ""  # what we wrote last
        self._steps: AsyncGenerator[Pruned, None] | None = None
        self._gone = Pruned()
        self.teller: Callable[[Pruned], object] = lambda _: None

    async def keep(self) -> None:
        """Begin if it is time, go on if it has begun; for a moment."""
        if self.rule is None:
            return
        now = self._clock.monotonic()
        if self._steps is None and (self._looked is None or now - self._looked >= LOOK_SECONDS):
            self._looked = now
            if await self._may_begin(self.rule):
                self._steps, self._gone = self._begun(self.rule), Pruned()
        if self._steps is not None:
            steps, self._steps = self._steps, None  # what fails is begun anew, in its time
            if await self._go_on(steps, now):
                self._steps = steps

    async def close(self) -> None:
        """Leave what has not been forgotten to whoever comes next."""
        if self._steps is not None:
            await self._steps.aclose()

    async def _may_begin(self, rule: PruneRule) -> bool:
        now = self._clock.wall_us()
        since = now - rule.every_seconds * 1_000_000
        await self._database.execute(_FIRST, (PRUNED,))
        self._mark = str(now)
        return bool(await self._database.execute(_BEGIN, (self._mark, PRUNED, since, now)))

    def _begun(self, rule: PruneRule) -> AsyncGenerator[Pruned, None]:
        return prune_steps(
            self._database,
            now=self._clock.wall_us(),
            turn_days=rule.turn_days,
            event_days=rule.event_days,
        )

    async def _go_on(self, steps: AsyncGenerator[Pruned, None], since: float) -> bool:
        """Forget for a while; whether there is more."""
        before, self._mark = self._mark, str(self._clock.wall_us())
        if not await self._database.execute(_GO_ON, (self._mark, PRUNED, before)):
            return False  # we were silent for so long that another has begun
        async for gone in steps:
            self._gone = self._gone.plus(gone)
            self.teller(gone)
            if self._clock.monotonic() - since >= BUSY_SECONDS:
                return True
        if self._gone != Pruned():
            counts = (self._gone.turns, self._gone.events)
            _log.info("pruned: forgot %d turns and %d rows of events", *counts)
        return False
