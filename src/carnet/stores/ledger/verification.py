"""Checking the whole ledger: every posting, every shard, every checkpoint, and the sums.

Law 1. Each fault names its row. A row that was changed is named alone: what follows it is checked
       against what it was.
Law 2. A posting that is missing is found by its shard's count, also the last one: where a shard
       ends is written beside it under a seal, and again in the checkpoints.
Law 3. Nothing is believed of a damaged table, not even the type of a value.
"""

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from carnet.ports.calls.turns import DISPUTED
from carnet.stores.database import Row, Snapshot
from carnet.stores.ledger.checkpoints import POSTING, read_ends
from carnet.stores.snapshots import all_rows
from carnet.stores.turn.finish_rules import BEFORE_THE_CHAIN, START, Seals

MOST_FAULTS: Final = 1000  # that are named; all are counted

_CHECKPOINTS = "SELECT n, at, lanes, seal FROM checkpoint ORDER BY n"
_SHARDS = "SELECT id, postings, head, seal FROM lane ORDER BY id"
_SEALED = "SELECT lane, postings FROM sealed ORDER BY lane"
_LEDGER = f"SELECT {POSTING}, lane, seq, hash FROM ledger ORDER BY n"  # noqa: S608
_SPENT = (  # of money, paid and unpaid: other quotas count tokens, tasks and turns
    "SELECT CAST(COALESCE(SUM(spent + unpaid), 0) AS BIGINT) FROM purse"
    " WHERE NOT (name >= 'tokens/' AND name < 'tokens0')"
    " AND NOT (name >= 'tasks/' AND name < 'tasks0')"
    " AND NOT (name >= 'waits/' AND name < 'waits0')"
)
_SETTLED = "SELECT id, at, name, amount, how, seal FROM settlement ORDER BY at, id"
_SHARD, _SEQ = 8, 9  # places in a row of _LEDGER

Progress = Callable[[int], object]


class Fault(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that does not fit."""

    what: str
    shard: str | None = None
    row: int | None = None  # of the ledger
    checkpoint: int | None = None


class Verified(Struct, kw_only=True):
    """What was found."""

    postings: int = 0
    unchained: int = 0  # of them, from before the chain
    shards: int = 0
    checkpoints: int = 0
    last: int | None = None  # when the last checkpoint was written
    seal: str = ""  # its seal; who keeps it elsewhere finds out if the whole ledger is set back
    debits: int = 0
    credits: int = 0
    spent: int = 0  # what the quotas of payers say
    faults: list[Fault] = []
    fault_count: int = 0

    @property
    def ok(self) -> bool:
        """Whether everything fits."""
        return not self.fault_count


async def verify(
    snapshot: Snapshot, seals: Seals, *, expected: str = "", progress: Progress | None = None
) -> Verified:
    """Walk checkpoints, shards and postings. `expected` is the seal of a checkpoint kept elsewhere.

    `progress` is told how many postings have been checked.
    """
    walk = Walk(seals, expected)
    async for piece in snapshot.pieces(_CHECKPOINTS):
        for row in piece:
            walk.checkpoint(row)
    walk.read_shards(await all_rows(snapshot, _SHARDS), await all_rows(snapshot, _SEALED))
    async for piece in snapshot.pieces(_LEDGER):
        for row in piece:
            walk.posting(row)
        if progress is not None:
            progress(walk.found.postings)
    ((spent,),) = await all_rows(snapshot, _SPENT)
    walk.end(spent + walk.settled(await all_rows(snapshot, _SETTLED)))
    return walk.found


class ShardWalk:
    """What has been walked of one shard."""

    __slots__ = ("before", "count", "head", "row")

    def __init__(self) -> None:
        self.count = 0
        self.head = START
        self.before: tuple[bytes, ...] = (START,)  # any of them may stand before the next
        self.row: int | None = None


class Walk:
    """One pass over everything; told row by row."""

    def __init__(self, seals: Seals, expected: str = "") -> None:
        self._seals = seals
        self._expected = expected  # the seal of a checkpoint that must be there
        self.found = Verified(faults=[])
        self._last = (0, START)  # the last checkpoint: its number and seal
        self._ends: dict[str, dict[int, tuple[bytes, int]]] = {}  # shard: count: head, checkpoint
        self._sealed: dict[str, int] = {}  # the most postings a checkpoint has of each shard
        self._own_rows: dict[str, tuple[int, bytes]] = {}  # how each shard ends by its own row
        self._seen: dict[str, ShardWalk] = {}
        self._debits: dict[Any, int] = {}
        self._credits: dict[Any, int] = {}
        self._fitting = 0  # postings whose hash fits

    def fault(self, what: str, **place: Any) -> None:  # noqa: ANN401, RUF100  the fields of a Fault
        """Note what does not fit."""
        self.found.fault_count += 1
        if len(self.found.faults) < MOST_FAULTS:
            self.found.faults.append(Fault(what=what, **place))

    def checkpoint(self, row: Row) -> None:
        """The next checkpoint."""
        n, at, shards, seal = row
        number, before = self._last
        if n != number + 1:
            what = f"checkpoint {number + 1} is missing: {n} follows {number}"
            self.fault(what, checkpoint=number + 1)
        elif seal != self._try(self._seals.checkpoint, before, n, at, shards):
            self.fault("the seal of the checkpoint does not fit", checkpoint=n)
        else:
            self.found.last, self.found.seal = at, seal.hex()
            if self.found.seal == self._expected:
                self._expected = ""
        try:
            for shard, count, head in read_ends(shards):
                self._end_of(shard, count, head, n)
        except (ValueError, TypeError):
            self.fault("the checkpoint cannot be read", checkpoint=n)
        self._last = (n, seal) if isinstance(seal, bytes) else (n, START)
        self.found.checkpoints += 1

    def _end_of(self, shard: str, count: int, head: bytes, n: int) -> None:
        if count <= self._sealed.get(shard, -1):
            self.fault(
                "the shard is shorter than in an earlier checkpoint", shard=shard, checkpoint=n
            )
        self._sealed[shard] = max(count, self._sealed.get(shard, 0))
        self._ends.setdefault(shard, {})[count] = (head, n)

    def _try(self, function: Callable[..., bytes], *args: Any) -> bytes | None:  # noqa: ANN401, RUF100
        """A hash; None of values that cannot even be spelled."""
        try:
            return function(*args)
        except (ValueError, TypeError, OverflowError):
            return None

    def read_shards(self, shards: list[Row], sealed: list[Row]) -> None:
        """Where the shards end by their own rows, and how far the checkpoints have got."""
        for shard, count, head, seal in shards:
            if seal != self._try(self._seals.shard, shard, count, head):
                self.fault("the seal of the shard's end does not fit", shard=shard)
            self._own_rows[shard] = (count, head)
        reached = self._sealed
        marked: dict[str, int] = dict(sealed)
        for shard in sorted(reached.keys() | marked.keys(), key=str):
            if reached.get(shard) != marked.get(shard):
                what = (
                    f"checkpoints seal {reached.get(shard, 0)} postings of the shard,"
                    f" and the note beside them says {marked.get(shard, 0)}"
                )
                self.fault(what, shard=shard)

    def posting(self, row: Row) -> None:
        """The next posting, in the order of their numbers."""
        self.found.postings += 1
        self._sum(row)
        shard = row[_SHARD]
        if shard is None and row[_SEQ] is None and row[-1] is None:
            self._unchained(row)
            return
        seen = self._seen.setdefault(shard, ShardWalk())
        seq, stored, n = row[_SEQ], row[-1], row[0]
        if not isinstance(seq, int) or seq != seen.count + 1:
            self._out_of_order(row, seen)
        else:
            hashes = [self._try(self._seals.posting, before, row[:-1]) for before in seen.before]
            if stored in hashes:
                self._fitting += 1
                seen.before = (stored,)
            else:
                self.fault("the posting is not as it was written", shard=shard, row=n)
                seen.before = tuple(h for h in (stored, *hashes) if isinstance(h, bytes))
            self._reach(shard, seen, row)

    def _reach(self, shard: str, seen: ShardWalk, row: Row) -> None:
        seen.count, seen.head, seen.row = row[_SEQ], row[-1], row[0]
        sealed = self._ends.get(shard, {}).get(seen.count)
        if sealed is not None and sealed[0] not in seen.before:
            what = f"checkpoint {sealed[1]} sealed another posting at this place"
            self.fault(what, shard=shard, row=row[0], checkpoint=sealed[1])

    def _out_of_order(self, row: Row, seen: ShardWalk) -> None:
        n, shard, seq, stored = row[0], row[_SHARD], row[_SEQ], row[-1]
        if isinstance(seq, int) and seq > seen.count + 1:
            missing = seq - seen.count - 1
            what = f"{missing} missing before it: place {seq} follows {seen.count} in the shard"
            self.fault(what, shard=shard, row=n)
            # What stood before it is gone, so it cannot be checked itself; what follows can.
            seen.before = (stored,) if isinstance(stored, bytes) else ()
            seen.count, seen.head, seen.row = seq, stored, n
        else:
            what = f"it does not belong here: place {seq} follows {seen.count} in the shard"
            self.fault(what, shard=shard, row=n)

    def _unchained(self, row: Row) -> None:
        self.found.unchained += 1
        seen = self._seen.setdefault(BEFORE_THE_CHAIN, ShardWalk())
        seen.count += 1
        whole = (*row[:_SHARD], BEFORE_THE_CHAIN, seen.count)
        seen.head = self._try(self._seals.posting, seen.head, whole) or START
        sealed = self._sealed.get(BEFORE_THE_CHAIN)
        if sealed is not None and seen.count > sealed:
            what = "it has no shard, and was written after the chain began"
            self.fault(f"{what}: by hand, or by an older Carnet beside this one", row=row[0])

    def _sum(self, row: Row) -> None:
        amount = row[7]
        if not isinstance(amount, int):
            return  # it is found by its hash
        debit, credit = row[4:6], row[6]
        if isinstance(credit, str) and credit.startswith(DISPUTED):
            return  # nobody owes it
        self._debits[debit] = self._debits.get(debit, 0) + amount
        self._credits[credit] = self._credits.get(credit, 0) + amount

    def settled(self, settlements: list[Row]) -> int:
        """What was paid or forgiven of what was posted as unpaid."""
        total = 0
        for *what, seal in settlements:
            if seal != self._try(self._seals.settlement, *what):
                self.fault(f"the seal of settlement {what[0]} does not fit")
            total += what[3] if isinstance(what[3], int) else 0
        return total

    def end(self, spent: int) -> None:
        """Everything was told: compare what must be equal."""
        if self._expected:
            self.fault("no checkpoint has the seal that was expected: the ledger was set back")
        self._end_unchained()
        for shard in sorted(self._seen.keys() | self._own_rows.keys() | self._ends.keys(), key=str):
            if shard != BEFORE_THE_CHAIN:
                self.found.shards += 1
                self._end_shard(shard)
        found = self.found
        if found.postings > found.unchained and not self._fitting:
            self.fault("no posting fits at all: they were written with another secrets file")
        found.debits, found.credits = sum(self._debits.values()), sum(self._credits.values())
        found.spent = spent
        if not found.debits == found.credits == spent:
            self.fault(
                f"the sums differ: debits {found.debits}, credits {found.credits}, and the quotas"
                f" have spent {spent} (millionths)"
            )

    def _end_unchained(self) -> None:
        count = self._sealed.get(BEFORE_THE_CHAIN)
        if count is None:
            return
        head, checkpoint = self._ends[BEFORE_THE_CHAIN][count]
        seen = self._seen.get(BEFORE_THE_CHAIN, ShardWalk())
        if seen.count < count or (seen.count == count and seen.head != head):
            what = (
                f"the {count} postings from before the chain are not the ones that"
                f" checkpoint {checkpoint} sealed: {seen.count} are there"
            )
            self.fault(what, checkpoint=checkpoint)

    def _end_shard(self, shard: str) -> None:
        seen = self._seen.get(shard, ShardWalk())
        own = self._own_rows.get(shard)
        after = "" if seen.row is None else f" after row {seen.row}"
        if own is None:
            self.fault("the row that says where the shard ends is missing", shard=shard)
        elif own[0] != seen.count:
            what = f"the shard has {own[0]} postings by its own row, and {seen.count} are there"
            many = f": {seen.count - own[0]} too many, the last is row {seen.row}"
            few = f": its end is missing{after}"
            self.fault(what + (many if seen.count > own[0] else few), shard=shard, row=seen.row)
        elif own[1] not in seen.before:
            self.fault("the shard does not end with the hash its own row has", shard=shard)
        sealed = self._sealed.get(shard, 0)
        if sealed > seen.count:
            what = f"a checkpoint sealed {sealed} postings, and {seen.count} are there"
            self.fault(what + f": its end is missing{after}", shard=shard, row=seen.row)
