"""Schedules, hooks and what they are to begin, of one store, and what is forgotten of them."""

from typing import Final

from carnet.ports.world.clock import Clock
from carnet.stores.database import Database
from carnet.stores.secrets.secrets_file import Keys
from carnet.stores.triggers.firings import StoredFirings
from carnet.stores.triggers.hooks import StoredHooks
from carnet.stores.triggers.schedules import StoredSchedules

FORGET_SECONDS: Final = 60.0


class StoredTriggers:
    """What begins conversations of people while they are away."""

    def __init__(self, database: Database, keys: Keys, clock: Clock) -> None:
        self.schedules: Final = StoredSchedules(database)
        self.hooks: Final = StoredHooks(database, keys)
        self.firings: Final = StoredFirings(database)
        self._clock = clock
        self._done: float | None = None

    async def keep(self) -> None:
        """Forget what had its time, each minute."""
        now = self._clock.monotonic()
        if self._done is None or now - self._done >= FORGET_SECONDS:
            self._done = now
            await self.forget()

    async def forget(self) -> int:
        """Forget some of what had its time; how much that was."""
        now = self._clock.wall_us()
        return await self.firings.forget(now) + await self.hooks.forget(now)
