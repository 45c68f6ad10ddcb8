"""What is known of others and of ourselves, kept in memory: tokens, people, peers and keys.

Law. What somebody else writes is seen by the next look; who asks for something unknown may have a
look out of turn, and a flood of those who do costs little.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from carnet.ports.world.clock import Clock
from carnet.ports.world.records import READER
from carnet.stores.database import Database
from carnet.stores.ledger.budgets import StoredBudgets
from carnet.stores.ledger.vouchers import StoredVouchers
from carnet.stores.trust.callers import StoredCallers
from carnet.stores.trust.delegations import StoredDelegations
from carnet.stores.trust.own_keys import StoredKeys
from carnet.stores.trust.peers import StoredPeers
from carnet.stores.trust.people import StoredPeople
from carnet.stores.trust.pinned_keys import StoredPinnedKeys
from carnet.stores.trust.sessions import StoredSessions
from carnet.stores.trust.tokens import StoredTokens

LOOK_AGAIN_SECONDS: Final = 0.05


class StoredTrust(Struct, frozen=True, kw_only=True, eq=False):
    """Whom the gateway knows."""

    tokens: StoredTokens
    people: StoredPeople
    peers: StoredPeers
    keys: StoredKeys
    pinned: StoredPinnedKeys
    delegations: StoredDelegations
    vouchers: StoredVouchers  # that we have issued
    callers: StoredCallers  # hosts whose caller contexts can be verified
    budgets: StoredBudgets
    sessions: StoredSessions  # which are looked up one by one, and not read here

    async def refresh(self) -> None:
        """Read all of it again.

        Tokens come last: whoever is told of it next knows a new one before a call is let in by it.
        """
        await self.peers.refresh()
        await self.keys.refresh()
        await self.pinned.refresh()
        await self.people.refresh()
        await self.delegations.refresh()
        await self.vouchers.refresh()
        await self.callers.refresh()
        await self.budgets.refresh()
        await self.tokens.refresh()


class TrustReader:
    """Reads it again when somebody else has written."""

    def __init__(
        self, trust: StoredTrust, database: Database, clock: Clock, on_change: Callable[[], None]
    ) -> None:
        """`on_change` is told when a look has found something new."""
        self._trust = trust
        self._database = database
        self._clock = clock
        self._on_change = on_change
        self._version = self._readings = 0
        self._reading = asyncio.Lock()  # one at a time
        self._looked = clock.monotonic() - LOOK_AGAIN_SECONDS  # when somebody last asked for it
        self._looking: asyncio.Task[bool] | None = None  # many who ask at once share one look

    async def refresh(self) -> None:
        """Read it again, whoever has written."""
        async with self._reading:
            await self._read(await self._database.changes())

    async def _read(self, version: int) -> None:
        await self._trust.refresh()
        self._version = version
        self._readings += 1

    async def look(self) -> bool:
        """Read it again if somebody else has written; whether they had."""
        async with self._reading:  # a look that finds nothing new found it all read
            version = await self._database.changes()
            if version == self._version:
                return False
            await self._read(version)
        self._on_change()
        return True

    async def look_again(self) -> bool:
        """Look out of turn, for a token or peer that is not known yet; seldom, however often asked.

        A token made a moment ago works at once, and a flood of unknown ones costs little: those who
        ask share one look, which begins after the last of them has asked.
        """
        if self._looking is None:
            self._looking = asyncio.create_task(self._look_soon(self._readings))
        return await asyncio.shield(self._looking)

    async def _look_soon(self, before: int) -> bool:
        """Look, not too soon after the last time; whether more was read than `before`."""
        READER.set(None)  # it is for all who ask
        await asyncio.sleep(LOOK_AGAIN_SECONDS - self._clock.monotonic() + self._looked)
        self._looking = None  # what is written from now on may not be seen by this look
        self._looked = self._clock.monotonic()
        await self.look()
        return self._readings != before
