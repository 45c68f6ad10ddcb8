"""Work that outlives its request: the tasks of one store.

Law 1. A task is a turn that waits: it is accepted in the claim of its turn and ends in its finish.
Law 2. Whoever runs it holds the turn under its own fence; a worker that is gone loses it, and the
       task waits again, one attempt later. It ends once.
Law 3. What is needed to run it later is sealed, and removed when it ends.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, Literal, Protocol

from msgspec import Struct

from carnet.core.call import CallbackWish
from carnet.core.chain.turn import Turn, TurnState
from carnet.core.people.identity import Secret

MOST_CALLBACKS: Final = 16  # of one task
MOST_OF_STATE: Final = 16  # tasks that wait for an answer with one state, which are looked at

TaskState = Literal["pending", "running", "done", "failed"]


class TaskClaim(Struct, frozen=True, kw_only=True):
    """What the claim of a turn keeps so that it can run later."""

    id: str  # unguessable: who knows it may poll
    sender: str  # the identity that signed
    skill: str | None
    callback: CallbackWish | None  # where the end is told
    call_bytes: bytes  # of `core.sealed_call`; the store seals them
    context: str | None = None  # what its sender groups tasks by, in a dialect that does


class ListedTask(Struct, frozen=True, kw_only=True):
    """What the claim of a turn keeps that runs at once and is a task all the same.

    Whoever asked for it waits, or reads it; it is found, listed, cancelled and told of as any task.
    """

    id: str
    sender: str
    skill: str | None
    context: str
    callback: CallbackWish | None = None


class Callback(Struct, frozen=True, kw_only=True):
    """Where the end of a task is told, and in which words."""

    url: str
    place: int = 0  # among those of its task
    name: str | None = None  # by which whoever named it finds it again
    dialect: str | None = None  # None: as it was named before dialects were kept
    token: str | None = None  # that the receiver wants to see again
    authorization: Secret | None = None  # how we show there who we are
    created: int = 0  # microseconds since the epoch


class StoredTask(Struct, frozen=True, kw_only=True):
    """A task as the store has it: what is shown, and what is run."""

    id: str
    turn: Turn
    sender: str
    skill: str | None = None
    callback: str | None = None  # the first; `Tasks.callbacks` has all
    progress: int | None = None  # thousandths
    note: str | None = None  # what the handler said of its progress
    cancelled: int | None = None  # when somebody asked for its end
    lost: int = 0  # how often whoever ran it was gone before its end
    call_bytes: bytes = b""  # unsealed; of a leased task only
    quota: str | None = None  # that counts it until its end; of a leased task only
    reserve: int | None = None  # what its turn holds, if it has waited; of a leased task only
    payer_quota: str = ""  # of whoever pays; tasks are fair between them. Of a leased task only
    context: str | None = None  # what its sender groups tasks by
    updated: int | None = None  # when its state changed last, where that is kept

    @property
    def state(self) -> TaskState:
        """In the words of the protocol. One that is waiting for a decision is running."""
        states: dict[str, TaskState] = {"queued": "pending", "done": "done", "failed": "failed"}
        return states.get(self.turn.state, "running")


class AwayRoom(Struct, frozen=True, kw_only=True):
    """Which tasks may begin whose agent is elsewhere."""

    most: int
    each: int  # of one tenant, with those that run
    running: Mapping[str, int]  # by `payer_quota`
    without: Collection[str]  # agents that cannot be called at present
    is_known: Callable[[str], bool]  # whether an agent can be called


class ChangedTasks(Struct, frozen=True, kw_only=True):
    """Which tasks of a sender are asked for, of those that have a context."""

    sender: str
    agent: str | None  # None: of any
    limit: int
    before: tuple[int, int] | None = None  # when the last one of the page before changed, and which
    context: str | None = None
    states: Collection[TurnState] = ()  # all of them where none is named
    codes: Collection[str] | None = None  # that they failed with; None: with whichever
    other_codes: Collection[str] = ()  # that they did not fail with
    since: int | None = None  # changed at that time or later
    kept_since: int = 0  # or ended, those that have


class FoundTasks(Struct, frozen=True, kw_only=True):
    """A page of them, the last changed first."""

    tasks: Sequence[StoredTask]
    total: int  # of all pages, as far as they are counted
    following: tuple[int, int] | None  # where the next page begins, as `ChangedTasks.before`


class TaskScope(Struct, frozen=True, kw_only=True):
    """Which tasks there are for whoever asks by an id: of any other nothing is read."""

    actor: str | None = None  # who asked for it with a token
    sender: str | None = None  # who is the sender of it, under this name
    speakers: str | None = None  # or under a name that begins so
    agent: str | None = None  # whose it is
    is_signed: bool = False  # asked for by signature
    has_context: bool = False  # by a dialect that groups tasks


EVERY_TASK: Final = TaskScope()


class Tasks(Protocol):
    """The tasks of one store."""

    async def find(
        self, task: str, *, kept_since: int = 0, scope: TaskScope = EVERY_TASK
    ) -> StoredTask | None:
        """A task by its id; None also for one that ended before `kept_since` or is out of scope."""

    async def of_turn(self, turn: int) -> StoredTask | None:
        """The task of a turn."""

    async def of_state(self, state: bytes, agent: str, actor: str | None) -> Sequence[StoredTask]:
        """Tasks of an agent that wait for the answer which has this state; of one caller, or all.

        There is more than one only where who asks uses a state more than once. The newest of them
        are given, `MOST_OF_STATE` at the most.
        """

    async def request(self, turn: Turn) -> bytes:
        """What was asked of a turn, as it is recorded; empty if it is kept no more."""

    async def request_size(self, turn: Turn) -> int:
        """How many bytes that is, with what is recorded beside it."""

    async def lease(
        self,
        agents: Sequence[tuple[str, int]],
        *,
        most: int,
        running: Mapping[str, int],
        elsewhere: AwayRoom | None = None,
    ) -> Sequence[StoredTask]:
        """Take waiting tasks by their rank: of each agent at most so many, ours to run.

        There are at most `most` of them, and the next is always one of whoever has the fewest that
        run: `running` has their number by `payer_quota`. Those whose agent is `elsewhere` and those
        whose end was asked for come beside them; the latter are only ended.
        """

    async def release(self, turn: Turn, now: int, *, lost: bool = False) -> bool:
        """Let a task that we run wait again, one attempt later; False if it is not ours.

        `lost` counts against it: its end could not be recorded.
        """

    async def progress(self, turn: Turn, thousandths: int, note: str | None) -> None:
        """Say how far it is; of a turn that is not ours, nothing is written."""

    async def cancel(self, task: str, now: int) -> bool:
        """Ask for the end of a task; False if it has ended or there is none."""

    async def cancelled(self) -> Collection[int]:
        """The turns of unfinished tasks whose end was asked for."""

    async def waiting(self) -> int:
        """How many wait to be run."""

    async def waiting_for(self) -> Collection[str]:
        """The agents for which tasks wait."""

    async def callbacks(self, task: str) -> Sequence[Callback]:
        """Where the end of a task is told, in the order in which the addresses were named."""

    async def add_callback(self, task: str, callback: Callback) -> bool:
        """Tell the end there too; False if the task has ended, or has as many as it may."""

    async def remove_callback(self, task: str, place: int) -> bool:
        """Tell the end there no more; False if there is none, or the task has ended."""

    async def list(
        self,
        *,
        reader: str | None,
        limit: int,
        before: int | None = None,
        state: TaskState | None = None,
        agent: str | None = None,
    ) -> tuple[Sequence[StoredTask], int | None]:
        """The newest, and where the next ones begin; `reader` None sees all, others their own."""

    async def changed(self, asked: ChangedTasks) -> FoundTasks:
        """Tasks of one sender that have a context, the last changed first."""

    async def forget(self, ended_before: int) -> int:
        """Forget tasks that ended before then (the turns have their own retention); how many."""
