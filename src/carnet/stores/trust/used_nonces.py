"""What is used once beside the claim of a turn: evidence, and the credential of a question.

They stand in the table of the nonces of signed requests, which the claim of a turn looks into too:
what was used here claims nothing there. Their numbers are below zero, those of claims above; the
number says who has used it, so that whoever repeats a message may show the same evidence again.

Law 1. One use, on all replicas together, durable before it is answered.
Law 2. A use that has ended may be made again; before that only by the same user.
"""

from hashlib import blake2b
from typing import Final

from carnet.ports.calls.turns import Nonce
from carnet.stores.database import Database

_USE: Final = (
    "INSERT INTO nonce (n, sender, nonce, expires) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (sender, nonce) DO UPDATE SET n = excluded.n, expires = excluded.expires"
    " WHERE nonce.expires <= ?"
)
_USED: Final = "SELECT 1 FROM nonce WHERE sender = ? AND nonce = ? AND n = ?"
_BITS: Final = 62


class UsedNonces:
    """The uses in one store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def use(self, nonce: Nonce, by: str, now: int) -> bool:
        """Use it; False if somebody else has. `by` may use it again, unless it is empty."""
        n = _number(nonce, by)
        row = (n, nonce.sender, nonce.nonce, nonce.expires, now)
        if await self._database.execute(_USE, row):
            return True
        if not by:
            return False
        return bool(await self._database.fetch(_USED, (nonce.sender, nonce.nonce, n)))


def _number(nonce: Nonce, by: str) -> int:
    text = f"{nonce.sender}\0{nonce.nonce}\0{by}".encode()
    digest = int.from_bytes(blake2b(text, digest_size=8).digest())
    return -1 - (digest & ((1 << _BITS) - 1))
