"""Whether the ledger is as it was written, by its chain of hashes: `carnet ledger verify`.

Law 1. One walk at a time. Who asks for one while another runs is told how far that is.
Law 2. A walk ends after `MOST_SECONDS`, with what it has seen: a longer ledger is for the command.
Law 3. What was found is told until the next walk, with when that was.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from carnet.core.money.amount import format_amount
from carnet.core.people.identity import Caller
from carnet.http.exchange import Exchange, Row, reply_json
from carnet.ports.world.clock import Clock
from carnet.stores.ledger.verification import Progress, Verified
from carnet.wire.grammar.times import when

Page = dict[str, Any]

MOST_SECONDS: Final = 30.0
MOST_FAULTS: Final = 100  # that are told
NEVER: Final[Page] = {"state": "never"}


class ChainPages:
    """The state of the chain, over HTTP."""

    def __init__(
        self,
        verify: Callable[[Progress], Awaitable[Verified]],
        clock: Clock,
        *,
        currency: str,
        seconds: float = MOST_SECONDS,
    ) -> None:
        self._verify = verify
        self._clock = clock
        self._currency = currency
        self._seconds = seconds
        self._found = NEVER
        self._running: Page | None = None

    async def show(self, exchange: Exchange, caller: Caller) -> None:
        """GET /ledger/chain: what the last walk found, or how far the running one is."""
        del caller
        await reply_json(exchange, self._running or self._found)

    async def walk(self, exchange: Exchange, caller: Caller) -> None:
        """POST /ledger/chain: check every posting now."""
        del caller
        if self._running is None:
            await self._walk()
        await reply_json(exchange, self._running or self._found)

    async def _walk(self) -> None:
        began = when(self._clock.wall_us())
        self._running = running = {"state": "running", "at": began, "postings": 0}
        try:
            async with asyncio.timeout(self._seconds):
                found = await self._verify(lambda count: running.update(postings=count))
        except TimeoutError:
            self._found = {**running, "state": "too_long", "seconds": self._seconds}
        else:
            self._found = {"at": began, **verified_page(found, self._currency)}
        finally:
            self._running = None


def verified_page(found: Verified, currency: str) -> Page:
    """What a walk found."""
    return {
        "state": "whole" if found.ok else "broken",
        "postings": found.postings,
        "before_the_chain": found.unchained,
        "shards": found.shards,
        "checkpoints": found.checkpoints,
        "last_checkpoint": when(found.last),
        "seal": found.seal or None,
        "debits": format_amount(found.debits),
        "credits": format_amount(found.credits),
        "currency": currency,
        "fault_count": found.fault_count,
        "faults": [msgspec.to_builtins(fault) for fault in found.faults[:MOST_FAULTS]],
    }


_MANAGES: Final[dict[str, Any]] = {"permission": "admin:books", "answer": "Page"}
ROUTES: Final = (
    Row(
        method="GET",
        path="/ledger/chain",
        endpoint=ChainPages.show,
        summary="What the last check of the ledger found",
        **_MANAGES,
    ),
    Row(
        method="POST",
        path="/ledger/chain",
        endpoint=ChainPages.walk,
        summary="Check every posting of the ledger",
        **_MANAGES,
    ),
)
