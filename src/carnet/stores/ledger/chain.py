"""The chain of the ledger: what makes a changed, missing or invented posting show.

A shard is the chain of one writer process; a chain over all of them would be a lock over all of
them. Every hash is keyed with a secret that is not in the database, so that who can write the
database alone cannot write a posting that fits.

Law 1. A hash covers the one before it and every column of its row, each with its own length
       (MessagePack), so that no two rows are spelled the same.
Law 2. The head moves with the commit: what was rolled back leaves no gap, and after a commit that
       may or may not have happened a new shard begins.
"""

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Final

import msgspec

from carnet.stores.database import Row

HASH_BYTES: Final = 32
START: Final = bytes(HASH_BYTES)  # what stands before the first of a shard, and of the checkpoints
BEFORE_THE_CHAIN: Final = ""  # the shard of postings that have none

_spell = msgspec.msgpack.Encoder().encode


class Seals:
    """The keyed hashes of one store (BLAKE2b, 256 bits), a kind of its own for each use."""

    __slots__ = ("_checkpoint", "_posting", "_shard")

    def __init__(self, secret: bytes) -> None:
        """`secret` is one that is never rotated: old rows must fit for ever."""
        key = blake2b(key=secret, person=b"carnet.ledger", digest_size=HASH_BYTES).digest()
        self._posting = blake2b(key=key, person=b"carnet.posting", digest_size=HASH_BYTES)
        self._shard = blake2b(key=key, person=b"carnet.lane", digest_size=HASH_BYTES)
        self._checkpoint = blake2b(key=key, person=b"carnet.check", digest_size=HASH_BYTES)

    def posting(self, before: bytes, row: Row) -> bytes:
        """The hash of a posting: n, at, run, turn, issuer, account, credit, amount, shard, seq."""
        state = self._posting.copy()
        state.update(before + _spell(row))
        return state.digest()

    def shard(self, shard: str, postings: int, head: bytes) -> bytes:
        """The seal of the row that says where a shard ends."""
        state = self._shard.copy()
        state.update(_spell((shard, postings, head)))
        return state.digest()

    def checkpoint(self, before: bytes, n: int, at: int, shards: str) -> bytes:
        """The seal of a checkpoint."""
        state = self._checkpoint.copy()
        state.update(before + _spell((n, at, shards)))
        return state.digest()


class Shard:
    """The end of one shard, as its writer remembers it."""

    __slots__ = ("_begun", "_end", "_kept", "_marked", "_seals", "_worker", "name")

    def __init__(self, seals: Seals, worker: str) -> None:
        self._seals = seals
        self._worker = worker
        self._begun = 0
        self.leave()

    def leave(self) -> None:
        """Begin a new shard: nobody knows whether the last batch was written."""
        self._begun += 1
        self.name = f"{self._worker}.{self._begun}"
        self._end = self._kept = self._marked = (0, START)

    def resume(self, postings: int, head: bytes) -> None:
        """Go on where the database says that the shard ends."""
        self._end = self._kept = self._marked = (postings, head)

    def link(self, postings: Sequence[Row], numbers: Iterator[int]) -> list[Row]:
        """The rows to insert, in their order: with number, shard, place in the shard and hash."""
        linked: list[Row] = []
        seq, head = self._end
        name, posting = self.name, self._seals.posting
        for row in postings:
            seq += 1
            whole = (next(numbers), *row, name, seq)
            head = posting(head, whole)
            linked.append((*whole, head))
        self._end = (seq, head)
        return linked

    def row(self) -> Row:
        """The row that says where the shard ends now."""
        seq, head = self._end
        return (self.name, seq, head, self._seals.shard(self.name, seq, head))

    def keep(self) -> None:
        """What was linked is committed."""
        self._kept = self._end

    def back(self) -> None:
        """It was rolled back."""
        self._end = self._kept

    def mark(self) -> None:
        """Remember this place, for a savepoint."""
        self._marked = self._end

    def undo(self) -> None:
        """Go back to the place that was marked."""
        self._end = self._marked
