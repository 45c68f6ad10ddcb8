"""Letters to others: written with the end of what they tell about, delivered at least once.

Law 1. A letter is kept in the transaction that makes it true, and has one id for ever.
Law 2. Each receiver has a queue of its own, and each sender another one: one that is down, or that
       a sender leads to where nobody takes letters, holds up nobody else.
Law 3. A letter ends as delivered or dead; a dead one is kept, shown, and can be sent again.
"""

from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import Struct

LetterKind = Literal["callback", "notice"]
LetterState = Literal["pending", "delivered", "dead"]


class Letter(Struct, frozen=True, kw_only=True):
    """What is to be told to whom."""

    id: str  # "msg_...": the same at every attempt
    kind: LetterKind
    url: str
    receiver: str  # what has one queue: scheme, host and port, and whose letters they are
    body: bytes
    task: str | None = None  # the id of the task it tells about
    secret_of: str = ""  # whose shared secret signs it: an identity, or "notify"
    learned: bool = True  # the address came from a peer; else the operator wrote it down

    @property
    def host(self) -> str:
        """Its receiver as people know it: scheme, host and port."""
        return self.receiver.partition(" ")[0]


class Posted(Struct, frozen=True, kw_only=True):
    """A letter in its queue."""

    n: int
    letter: Letter
    state: LetterState = "pending"
    attempts: int = 0  # that were marked; the one under way is not counted yet
    due: int  # microseconds since the epoch
    created: int
    replayed: int | None = None  # when it was last let begin again from the first attempt on
    ended: int | None = None
    status: int | None = None  # of the last answer
    reason: str | None = None  # why the last attempt failed, in our own words
    fence: int = 0
    failures: int = 0  # of its receiver, in a row; told by `lease` alone


class Outcome(Struct, frozen=True, kw_only=True):
    """What became of one attempt."""

    state: LetterState
    now: int
    due: int = 0  # of one that stays pending
    status: int | None = None
    reason: str | None = None
    pause_until: int | None = None  # nothing is sent to this receiver before then
    gone: bool = False  # the address said that it will never take letters again (410)


class Outbox(Protocol):
    """The letters of one store."""

    async def put(self, letters: Sequence[Letter], now: int) -> None:
        """Keep letters that belong to no turn (those of a turn go with its finish)."""
        ...

    async def lease(
        self, now: int, *, until: int, at_most: int, per_receiver: int
    ) -> Sequence[Posted]:
        """Take letters that are due, a few for each receiver that is not paused."""
        ...

    async def mark(self, posted: Posted, outcome: Outcome) -> bool:
        """Note what became of an attempt; False if another worker took the letter meanwhile."""
        ...

    async def next_due(self, now: int, *, per_receiver: int = 2) -> int | None:
        """When there will be something to do; None if nothing waits."""
        ...

    async def waiting(self, receiver: str, *, most: int) -> int:
        """How many letters wait for a receiver; `most` if there are as many, or more."""
        ...

    async def is_gone(self, url: str, owner: str) -> bool:
        """Whether an address has said 410 to the letters of this owner (`Letter.secret_of`)."""
        ...

    async def list(
        self, *, state: LetterState | None, limit: int, before: int | None = None
    ) -> Sequence[Posted]:
        """The newest."""
        ...

    async def find(self, letter: str) -> Posted | None:
        """One by its id."""
        ...

    async def replay(self, letters: Sequence[str], now: int) -> int:
        """Send letters again from the first attempt on, and let their addresses off; how many."""
        ...

    async def forget(self, ended_before: int) -> int:
        """Forget letters that were delivered, or died, before then; how many."""
        ...
