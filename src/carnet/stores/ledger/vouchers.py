"""The vouchers that this gateway has issued, and those of them that were revoked.

Law 1. A voucher needs no row to hold: whoever it is shown to verifies it with our key. The row is
       written before anybody is given the voucher, so that what we owe can be listed and revoked.
Law 2. What is kept says who owes what, and cannot be shown in the place of the voucher.
Law 3. An id is told as revoked until the voucher would have expired by itself, and no longer.
"""

import builtins
from typing import Final

from msgspec import Struct

from carnet import faults
from carnet.core.people.proof import SECOND_US
from carnet.core.voucher import Voucher
from carnet.ports.calls.turns import Nonce
from carnet.ports.world.clock import Clock
from carnet.stores.database import Database, Row

_RECORD: Final = (
    "INSERT INTO voucher (issuer, id, amount, audience, account, currency, holder, issued, expires)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_COLUMNS: Final = "id, audience, account, amount, currency, holder, issued, expires, ended"
_LIST: Final = (
    f"SELECT {_COLUMNS} FROM voucher WHERE issuer = ?"  # noqa: S608  our own names
    " AND (? = 1 OR (expires > ? AND ended IS NULL)) ORDER BY issued DESC, id LIMIT ?"
)
_FIND: Final = f"SELECT {_COLUMNS} FROM voucher WHERE issuer = ? AND id = ?"  # noqa: S608  the same
_END: Final = (
    "UPDATE voucher SET ended = ? WHERE issuer = ? AND id = ? AND ended IS NULL AND expires > ?"
)
_ENDED: Final = "SELECT id, expires FROM voucher WHERE ended IS NOT NULL AND expires > ?"
_USED: Final = "SELECT expires FROM nonce WHERE sender = ? AND nonce = ?"


class IssuedVoucher(Struct, frozen=True, kw_only=True):
    """A voucher of ours, as it is listed."""

    id: str
    audience: str
    account: str
    amount: int
    currency: str
    holder: str | None
    issued: int  # microseconds since the epoch
    expires: int
    ended: int | None

    def state(self, now: int) -> str:
        """In a word."""
        if self.ended is not None:
            return "revoked"
        return "expired" if self.expires <= now else "live"


class StoredVouchers:
    """Those of one store."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._ended: dict[str, int] = {}  # by id, until when it would have held

    def is_ended(self, id: str, /) -> bool:
        """Whether one of ours was revoked; from memory, at most a second old."""
        return id in self._ended

    def ended(self) -> dict[str, int]:
        """The ids that were revoked, each with until when it would have held."""
        return self._ended

    async def record(self, voucher: Voucher) -> None:
        """Note one that is about to be given to somebody."""
        row = (
            *(voucher.issuer, voucher.id, voucher.amount, voucher.audience, voucher.account),
            *(voucher.currency, voucher.holder),
            *(voucher.issued * SECOND_US, voucher.expires * SECOND_US),
        )
        faults.point("voucher.before_record")
        await self._database.execute(_RECORD, row)
        faults.point("voucher.after_record")

    async def list(
        self, issuer: str, now: int, *, limit: int, with_ended: bool = False
    ) -> builtins.list[IssuedVoucher]:
        """Those that hold, newest first; or all."""
        rows = await self._database.fetch(_LIST, (issuer, int(with_ended), now, limit))
        return [_read(row) for row in rows]

    async def find(self, issuer: str, id: str) -> IssuedVoucher | None:
        """One by its id."""
        rows = await self._database.fetch(_FIND, (issuer, id))
        return _read(rows[0]) if rows else None

    async def end(self, issuer: str, id: str, now: int) -> bool:
        """Revoke one; False if there is none that holds."""
        ended = await self._database.execute(_END, (now, issuer, id, now))
        faults.point("voucher.after_end")
        await self.refresh()
        return ended > 0

    async def is_used(self, use: Nonce) -> bool:
        """Whether a call here has used one up, whoever issued it."""
        return bool(await self._database.fetch(_USED, (use.sender, use.nonce)))

    async def refresh(self) -> None:
        """Read again what was revoked."""
        self._ended = dict(await self._database.fetch(_ENDED, (self._clock.wall_us(),)))


def _read(row: Row) -> IssuedVoucher:
    id, audience, account, amount, currency, holder, issued, expires, ended = row
    return IssuedVoucher(
        id=id,
        audience=audience,
        account=account,
        amount=amount,
        currency=currency,
        holder=holder,
        issued=issued,
        expires=expires,
        ended=ended,
    )
