"""What people are asked: the interrupts of calls that began here.

Law 1. A question belongs to whoever made the call that it came up in; nobody else finds it.
Law 2. It is answered once. Who answers it is recorded with the answer.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from msgspec import Struct

from carnet.core.chain.turn import Turn
from carnet.core.messages.interrupt import InterruptRecord, Resolution
from carnet.errors import (
    AnsweredOtherwise,
    BudgetExceeded,
    InterruptExpired,
    InterruptNotFound,
    InvalidRequest,
    SpendingLimitReached,
)

# What says for certain that nothing was agreed to.
NOT_AGREED: Final = (
    *(SpendingLimitReached, InterruptExpired, AnsweredOtherwise, InterruptNotFound),
    *(InvalidRequest, BudgetExceeded),
)


class InboxEntry(Struct, frozen=True, kw_only=True):
    """One question, and the turn that waits for its answer."""

    n: int  # by which a list goes on
    record: InterruptRecord
    turn: Turn
    owner: str
    digest: bytes  # of the call
    call_bytes: bytes = b""  # of `core.sealed_call`, unsealed; empty when the turn has ended


class Inbox(Protocol):
    """The questions of one store."""

    async def list(
        self, *, owner: str | None, is_open: bool, limit: int, before: int | None = None
    ) -> Sequence[InboxEntry]:
        """The newest first; `owner` None is everybody's. Without what is kept of the calls."""

    async def find(self, name: str, *, owner: str | None) -> InboxEntry | None:
        """One of them by the public id of its interrupt, with what is kept of the call."""

    async def of_state(self, state: bytes) -> Sequence[InboxEntry]:
        """Open ones by the hash of their secret, the newest of them, with their calls.

        There is more than one only where who asks uses a state more than once.
        """


class Rule(Struct, frozen=True, kw_only=True):
    """An answer that was given for the future."""

    n: int
    owner: str
    chain: str  # who asks, and through whom: each address after the one that it came by
    kind: str
    ceiling: int | None  # in all, in micro-units; of a payment alone
    used: int
    created: int
    question: str = ""  # which one, of `question_of`


class Rules(Protocol):
    """The rules of one store. Each is its owner's alone."""

    async def add(
        self,
        *,
        owner: str,
        agent: str,
        kind: str,
        ceiling: int | None,
        now: int,
        question: str = "",
    ) -> None:
        """Keep one, once. Raises InvalidRequest for one too many of theirs.

        `question` is what tells it from others of its kind.
        """

    async def list(self, owner: str) -> Sequence[Rule]:
        """Those of somebody that hold, the newest first."""

    async def use(
        self, *, owner: str, agent: str, kind: str, amount: int, question: str = ""
    ) -> int | None:
        """Use one that fits, for so much; its number, or None if none does."""

    async def give_back(self, n: int, amount: int) -> None:
        """Take back what was used of one for nothing."""

    async def end(self, owner: str, n: int, now: int) -> bool:
        """Let one hold no more; False if there is none of theirs."""


class Deciding(Protocol):
    """Takes the answers of people."""

    async def decide(self, entry: InboxEntry, resolution: Resolution) -> InboxEntry:
        """Answer a question, and have its turn run on; the question as it is then."""

    async def remember(self, entry: InboxEntry, ceiling: int | None) -> None:
        """Give the same answer to the same question of the same agent from now on."""
