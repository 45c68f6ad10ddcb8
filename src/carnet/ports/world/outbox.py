"""Webhook deliveries: written with the end of what they tell about, sent until they arrive.

Law 1. A delivery is written in the transaction that makes it true, and keeps its id for ever.
Law 2. Each receiver has a queue for each sender: a receiver that is down, or that a sender chose
       because it always fails, holds up nobody else.
Law 3. A delivery ends as delivered or dead; a dead one is kept, shown, and can be sent again.
"""

from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import Struct

DeliveryKind = Literal["callback", "notice"]
DeliveryState = Literal["pending", "delivered", "dead"]


class Delivery(Struct, frozen=True, kw_only=True):
    """One webhook: what is told, and to which URL."""

    id: str  # "msg_...": the same at every attempt
    kind: DeliveryKind
    url: str
    receiver: str  # what has one queue: scheme, host and port, and whose deliveries they are
    body: bytes
    task: str | None = None  # the id of the task it tells about
    secret_of: str = ""  # whose shared secret signs it: an identity, or "notify"
    turn: int | None = None  # the number of the turn it tells about, with which it is deleted
    learned: bool = True  # the address came from a peer; else the operator wrote it down

    @property
    def host(self) -> str:
        """Its receiver as people know it: scheme, host and port."""
        return self.receiver.partition(" ")[0]


class StoredDelivery(Struct, frozen=True, kw_only=True):
    """A delivery as the outbox keeps it."""

    n: int
    delivery: Delivery
    state: DeliveryState = "pending"
    attempts: int = 0  # that were marked; the one under way is not counted yet
    due: int  # microseconds since the epoch
    created: int
    replayed: int | None = None  # when it was last sent again from the first attempt on
    ended: int | None = None
    status: int | None = None  # of the last answer
    reason: str | None = None  # why the last attempt failed, in our own words
    fence: int = 0
    failures: int = 0  # of its receiver, in a row; told by `lease` alone


class Outcome(Struct, frozen=True, kw_only=True):
    """What became of one attempt."""

    state: DeliveryState
    now: int
    due: int = 0  # of one that stays pending
    status: int | None = None
    reason: str | None = None
    pause_until: int | None = None  # nothing is sent to this receiver before then
    gone: bool = False  # the address has answered 410: it takes no webhooks any more


class Outbox(Protocol):
    """The webhook deliveries of one store."""

    async def put(self, deliveries: Sequence[Delivery], now: int) -> None:
        """Keep deliveries that belong to no turn (those of a turn go with its finish)."""

    async def lease(
        self, now: int, *, until: int, at_most: int, per_receiver: int
    ) -> Sequence[StoredDelivery]:
        """Take deliveries that are due, a few for each receiver that is not paused."""

    async def mark(self, stored: StoredDelivery, outcome: Outcome) -> bool:
        """Note what became of an attempt; False if another worker took the delivery meanwhile."""

    async def next_due(self, now: int, *, per_receiver: int = 2) -> int | None:
        """When there will be something to do; None if nothing waits."""

    async def waiting(self, receiver: str, *, most: int) -> int:
        """How many deliveries wait for a receiver; `most` if there are as many, or more."""

    async def is_gone(self, url: str, owner: str) -> bool:
        """Whether an address has answered 410 to this owner (`Delivery.secret_of`)."""

    async def list(
        self, *, state: DeliveryState | None, limit: int, before: int | None = None
    ) -> Sequence[StoredDelivery]:
        """The newest."""

    async def find(self, delivery: str) -> StoredDelivery | None:
        """One by its id."""

    async def replay(self, deliveries: Sequence[str], now: int) -> int:
        """Send again from the first attempt on, and accept their addresses again; how many."""

    async def forget(self, ended_before: int) -> int:
        """Forget deliveries that ended before then; how many."""
