"""What accounts have paid for (R26)."""

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from carnet.core.people.identity import Account
from carnet.ports.world.records import LedgerEntry, RunSummary

Kind = Literal["payer", "peer", "agent", "run"]


class HeldAccount(Struct, frozen=True):
    """An account, and since when whoever asks has it."""

    account: Account
    since: int = 0  # microseconds since the epoch


class Total(Struct, frozen=True, kw_only=True):
    """What was debited in all."""

    name: str
    postings: int
    amount: int


class UsedQuota(Struct, frozen=True):
    """How much of what a payer may spend is used."""

    spent: int  # micro-units, what is unpaid included
    held: int  # for calls that run


class Payments(Protocol):
    """Readers over the postings of accounts."""

    async def quotas(self, names: Sequence[str]) -> Mapping[str, UsedQuota]:
        """How much of each of these is used; of one that nothing was spent of, nothing."""

    async def postings(
        self,
        held: Sequence[HeldAccount],
        *,
        limit: int,
        before: int | None = None,
        run: str | None = None,
    ) -> tuple[Sequence[LedgerEntry], int | None]:
        """Postings that debit these accounts, newest first, and where the next ones begin."""

    async def runs(
        self, held: Sequence[HeldAccount], *, limit: int, before: int | None = None
    ) -> tuple[Sequence[RunSummary], int | None]:
        """The newest runs that these accounts pay for, and where the next ones begin."""
