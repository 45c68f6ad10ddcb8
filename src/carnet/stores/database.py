"""The narrow waist: what every store asks of a database, and nothing more.

The cold half takes SQL in the subset that SQLite and PostgreSQL share, with `?` for each argument
(a driver that numbers them rewrites it; our texts hold no other question mark). The hot half is
four operations that each driver does with its own SQL, many rows at a time.

Law 1. What an awaited write returns is durable.
Law 2. A row's verdict is its own: one that is refused or broken changes nothing for its neighbours.
Law 3. A commit that failed is `OutcomeUnknown`, never a plain failure; before the commit it is
       `StorageUnavailable` and nothing was written.
Law 4. A claim whose caller went away before the answer is given back: the turn ends as unknown.
       A task goes on to wait instead: whoever asks again is told its name.
"""

from asyncio import Event, Future
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from msgspec import Struct

from carnet.core.chain.turn import Turn
from carnet.ports.calls.turns import TurnClaim, TurnFinish, Verdict

Value = int | str | bytes | None
Row = tuple[Any, ...]
Statement = tuple[str, Sequence[Value]]


class Flush(Struct, frozen=True):
    """Events of a running turn that become durable together."""

    turn: Turn
    first: int
    last: int
    events: bytes


class Lease(Struct, frozen=True):
    """A worker's word that it is alive until then. Turns name their worker, not a lease."""

    worker: str
    now: int
    until: int


class Snapshot(Protocol):
    """One moment of a whole database, read in pieces while others go on writing."""

    def pieces(self, sql: str) -> AsyncIterator[list[Row]]:
        """The rows of a query that takes no argument, some at a time."""

    async def columns(self, table: str) -> list[str]:
        """The columns of a table; none if there is no such table."""


class Database(Protocol):
    """One open database."""

    @property
    def is_shared(self) -> bool:
        """Whether other processes may run turns on it too."""

    @property
    def settled(self) -> str:
        """The condition on a row `j` of the journal that nothing can appear before it any more."""

    @property
    def row_lock(self) -> str:
        """What a SELECT ends with, in a transaction, so that its rows stay as they are."""

    @property
    def abandoned(self) -> str:
        """The condition on a running turn `t` that its worker is gone."""

    @property
    def trouble(self) -> str:
        """Why the last write was not made; empty if it was. The next one may succeed."""

    @property
    def refusing(self) -> Event:
        """Set when no write is taken until the database is opened anew."""

    async def fetch(self, sql: str, args: Sequence[Value] = ()) -> list[Row]:
        """The rows of a query, as they are committed."""

    async def execute(self, sql: str, args: Sequence[Value] = ()) -> int:
        """Run one statement; the number of rows it changed."""

    async def transact(self, statements: Sequence[Statement]) -> list[int]:
        """Run all of them or none; the number of rows each changed."""

    def tell(self, changed: Callable[[Sequence[Turn]], None]) -> None:
        """Have somebody told of the turns that were claimed and ended, batch by batch.

        It is told after the commit, and before those who wait for it.
        """

    def claim(self, claim: TurnClaim, /) -> Future[Verdict]:
        """Claim a turn, or learn why not."""

    def append(self, flush: Flush, /) -> Future[None]:
        """Make events durable. Raises Fenced."""

    def finish(self, finish: TurnFinish, /) -> Future[Turn]:
        """End a turn. Raises Fenced."""

    async def renew(self, lease: Lease) -> None:
        """Say that a worker is alive."""

    async def changes(self) -> int:
        """A number that differs from the last one if somebody else has written meanwhile."""

    def snapshot(self) -> AbstractAsyncContextManager[Snapshot]:
        """Look at all of it as it is now."""

    async def check(self) -> Sequence[str]:
        """What is wrong with the files; empty if nothing is."""

    async def close(self) -> None:
        """Finish what is queued and let go."""


def marks(count: int) -> str:
    """The argument list of `IN (...)`."""
    return ", ".join(["?"] * count)
