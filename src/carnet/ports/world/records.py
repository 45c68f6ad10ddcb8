"""What happened: runs, their events and the ledger, for reading."""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import asdict

from carnet.core.chain.turn import Turn
from carnet.core.messages.interrupt import InterruptRecord
from carnet.core.messages.outbound_call import OutboundCall
from carnet.core.people.identity import Account

# For whom this is read: reads are fair between callers. None is the gateway itself.
READER: Final[ContextVar[str | None]] = ContextVar("carnet_reader", default=None)
STRANGER: Final = ""  # whoever has shown nothing of itself


class RunSummary(Struct, frozen=True, kw_only=True):
    """One line of `carnet runs`."""

    run: str
    started: int
    ended: int | None
    agent: str  # of the first turn
    payer: Account
    turns: int
    depth: int  # the deepest reached here
    cost: int
    state: str
    code: str | None = None  # of the newest turn in it that failed
    caller: str | None = None  # what the caller of the first turn said of itself


class RunFilter(Struct, frozen=True, kw_only=True):
    """What a run, and a turn of it, must be like for the run to be listed; None is anything.

    It is found within a second of its claim, and of its end.
    """

    agent: str | None = None
    actor: str | None = None
    speaker: str | None = None
    state: str | None = None
    code: str | None = None
    correlation: str | None = None
    payer: str | None = None  # of the run, as it is written: `alice@acme.example`
    since: int | None = None  # the run began then or later, in microseconds

    def named(self) -> dict[str, str]:
        """What was asked for of a turn."""
        asked = asdict(self)
        return {name: asked[name] for name in OF_TURN if asked[name] is not None}

    @property
    def is_of_runs(self) -> bool:
        """Whether something was asked for that a run itself has."""
        return self.payer is not None or self.since is not None

    def fits(self, turn: Turn) -> bool:
        """Whether a turn is like that."""
        return all(getattr(turn, name) == value for name, value in self.named().items())


OF_TURN: Final = ("agent", "actor", "speaker", "state", "code", "correlation")
ANY_RUN: Final = RunFilter()


class JournalEntry(Struct, frozen=True, kw_only=True):
    """One row of the journal of a run."""

    n: int
    turn: str
    kind: str  # accepted | events | discard | ended
    first: int
    last: int
    data: bytes  # what was asked, or a batch of events
    size: int | None = None  # of data that did not fit, and was not read
    turn_n: int = 0  # the number of the turn: two callers may use one id


class LedgerEntry(Struct, frozen=True, kw_only=True):
    """One posting: the debit account owes, the credit account is owed."""

    n: int
    at: int
    run: str
    turn: str
    debit: Account
    credit: str
    amount: int


class CallOut(Struct, frozen=True, kw_only=True):
    """One call to another organisation, as a directory counts it."""

    to: str
    state: str
    code: str | None
    cost: int | None  # micro-units; None where nobody said
    began: int  # microseconds since the epoch; of the turn that it was, or that made it
    took: int | None  # microseconds; None where it has no turn of its own, or has not ended


class Records(Protocol):
    """Readers over the store. `reader` None sees all; otherwise an actor's own runs."""

    async def runs(
        self,
        *,
        reader: str | None,
        limit: int,
        before: int | None,
        matching: RunFilter = ANY_RUN,
    ) -> tuple[Sequence[RunSummary], int | None]:
        """The newest runs, and where the next ones begin; there may be fewer than `limit` before.

        `before` is where those begin that are asked for.
        """

    async def run(self, run: str, *, reader: str | None) -> Sequence[Turn]:
        """The turns of a run, oldest first; empty if there is none to see."""

    async def outbound(
        self, run: str, *, reader: str | None
    ) -> Mapping[int, Sequence[OutboundCall]]:
        """The calls that turns of a run made to other organisations, by the turn's number."""

    async def questions(self, turns: Sequence[Turn]) -> Mapping[int, Sequence[InterruptRecord]]:
        """What these turns wait for or were answered, by the turn's number; without its secret.

        A person is told by her name, as who answers and as who has answered.
        """

    async def grounds(self, run: str, *, reader: str | None) -> Mapping[int, bytes]:
        """Why the turns of a run were admitted, by the turn's number: of `core.chain.grounds`."""

    async def entries(
        self, run: str, *, reader: str | None, after: int, limit: int, most_bytes: int = ...
    ) -> Sequence[JournalEntry]:
        """The journal of a run after a row, as much of it as fits.

        A row that does not fit by itself comes without its data, and tells its size.
        """

    async def calls_out(self, limit: int) -> Sequence[CallOut]:
        """The newest calls to other organisations, of everybody; the newest first."""

    async def ledger(
        self, *, run: str | None, account: str | None, limit: int
    ) -> Sequence[LedgerEntry]:
        """Postings, newest first."""
