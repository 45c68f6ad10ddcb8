"""What begins conversations of a person while she is away: her schedules and her hooks (R44).

What is due is a `Firing`: written down once, then begun by one gateway.

Law 1. Every look-up is by the person and the name: what is not hers does not exist for her.
Law 2. A tick of a schedule, and an event of a hook, is written down at most once, however many
       gateways see it and however often it is sent.
Law 3. What is written down is begun, whoever dies meanwhile: a lease runs out, and another gateway
       takes it, under the same key.
Law 4. It runs with the token that made it, or let it go on last, so with no more rights and no more
       money than that has. It rests when that token or she has ended, and she is told so once.
Law 5. A tick that begins nothing, since too much of hers is to begin, is written down as that.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol, TypeVar

from msgspec import Struct

from carnet.core.people.identity import Secret
from carnet.core.triggers.ticks import Due, Missed
from carnet.ports.world.outbox import Delivery

TriggerKind = Literal["webhook", "schedule"]
FiringState = Literal["due", "fired", "failed", "dropped"]
EndReason = Literal["token_revoked", "token_expired"]  # why a trigger rests that nobody paused


class NewSchedule(Struct, frozen=True, kw_only=True):
    """A schedule that is asked for; every part of it was checked."""

    name: str
    person: int
    token: int  # it runs with
    agent: str
    content: str  # what the agent is told
    cron: str
    zone: str
    missed: Missed
    next: int | None  # microseconds


class Schedule(NewSchedule, frozen=True, kw_only=True):
    """A schedule as it is kept."""

    n: int
    created: int
    paused: int | None = None


class NewHook(Struct, frozen=True, kw_only=True):
    """A hook that is asked for; every part of it was checked."""

    name: str
    person: int
    token: int  # it runs with
    agent: str
    scheme: str
    template: str


class Hook(NewHook, frozen=True, kw_only=True):
    """A hook as it is kept; its secrets are elsewhere."""

    n: int
    created: int
    paused: int | None = None
    previous_until: int | None = None  # until when its former secret is good


class NewFiring(Struct, frozen=True, kw_only=True):
    """Something that is to be begun."""

    key: str  # the same whoever begins it
    content: str
    tick: int  # when it was due, or came


class Firing(Struct, frozen=True, kw_only=True):
    """Something that is to be begun now, by whoever leased it."""

    n: int
    kind: TriggerKind
    name: str  # of the schedule or the hook
    key: str
    person: int
    token: int
    agent: str
    content: str
    tick: int
    fence: int
    attempts: int  # that were made before
    conversation: str | None = None  # if it was begun


class FiringEnd(Struct, frozen=True, kw_only=True):
    """How a conversation stands that was begun: it has ended, failed, or waits for somebody."""

    state: Literal["done", "failed", "waiting"]
    conversation: str | None
    code: str | None = None  # why it is not done


class FiringRecord(Struct, frozen=True, kw_only=True):
    """What became of one, for its owner."""

    tick: int
    state: FiringState
    conversation: str | None
    code: str | None  # why it failed
    ended: int | None


Kept_co = TypeVar("Kept_co", covariant=True)


class Owned(Protocol[Kept_co]):
    """What people have of one kind, schedules or hooks, by its names."""

    async def list(self, person: int) -> Sequence[Kept_co]:
        """Hers, by name."""

    async def find(self, person: int, name: str) -> Kept_co | None:
        """One of hers."""

    async def pause(self, person: int, name: str, now: int) -> bool:
        """Let it rest; False if there is none."""

    async def resume(
        self, person: int, name: str, *, token: int, following: int | None = None
    ) -> bool:
        """Let it go on with this token, a schedule at its next tick; False if there is none."""

    async def delete(self, person: int, name: str) -> bool:
        """Forget it, and what it was to begin; False if there is none."""


DropNotices = Callable[[int], Sequence[Delivery]]  # what tells of a tick that begins nothing


class Schedules(Protocol):
    """The schedules of one store."""

    @property
    def own(self) -> Owned[Schedule]:
        """Those of people, by name."""

    async def add(self, new: NewSchedule, *, most: int, now: int) -> Schedule:
        """Keep one. Raises TriggerExists, or TooManyTriggers where she has `most`."""

    async def fire(self, schedule: Schedule, firing: NewFiring, *, most: int) -> None:
        """Have it begin now. Raises TooManyFirings."""

    async def due(self, now: int, *, limit: int) -> Sequence[Schedule]:
        """Those of everybody that are due, the oldest first."""

    async def tick(
        self, schedule: Schedule, due: Due, *, most: int, now: int, notices: DropNotices
    ) -> int | None:
        """Write down what is due and when it is due next; None if another gateway has.

        How many ticks begin nothing, since `most` of hers are to begin. She is told of the first
        of several.
        """


class Hooks(Protocol):
    """The hooks of one store."""

    @property
    def own(self) -> Owned[Hook]:
        """Those of people, by name."""

    async def add(self, new: NewHook, secret: Secret, *, most: int, now: int) -> Hook:
        """Keep one. Raises TriggerExists, or TooManyTriggers where she has `most`."""

    async def secrets(self, hook: Hook, now: int) -> Sequence[Secret]:
        """What a request to it may be signed with: the secret, and the former one for a while."""

    async def rotate(self, hook: Hook, secret: Secret, *, token: int, until: int) -> bool:
        """Give it another secret; the former one is good until then. False if there is none.

        It runs with this token from now on.
        """

    async def receive(
        self, hook: Hook, event: str, firing: NewFiring, *, expires: int, most: int, now: int
    ) -> bool:
        """Write down what an event is to begin; False if the event is known already.

        Raises TriggerPaused, or TooManyFirings where `most` are to begin for her.
        """


class Room(Struct, frozen=True):
    """How much one gateway begins at once for one person, and for whom it does so now."""

    each: int
    taken: Mapping[int, int]  # by the numbers of people

    def of(self, person: int) -> int:
        """How much more may be begun for her."""
        return self.each - self.taken.get(person, 0)


class Resting(Struct, frozen=True, kw_only=True):
    """A schedule or a hook that is to rest, since the token that it runs with has ended."""

    kind: TriggerKind
    name: str
    person: int
    token: int
    agent: str


class Firings(Protocol):
    """What is to be begun, of one store."""

    async def lease(
        self, worker: str, *, until: int, limit: int, room: Room, now: int
    ) -> Sequence[Firing]:
        """Take some that are due and nobody's, the oldest first, of each person what has room."""

    async def renew(self, firing: Firing, *, until: int) -> bool:
        """Hold it for longer; False if another gateway has it."""

    async def begun(self, firing: Firing, conversation: str) -> bool:
        """Note where it is begun; False if another gateway has it."""

    async def end(
        self, firing: Firing, end: FiringEnd, notices: Sequence[Delivery], *, now: int
    ) -> bool:
        """Note that nothing more is to be done, and who is told; False if it is another's now."""

    async def wait(
        self, firing: Firing, notices: Sequence[Delivery], *, due: int, now: int
    ) -> bool:
        """Note that it waits for somebody, and who is told; it is looked at again then."""

    async def put_off(self, firing: Firing, *, due: int) -> bool:
        """Have it tried again then; False if another gateway has it."""

    async def rest(self, trigger: Resting, notices: Sequence[Delivery], *, now: int) -> None:
        """Pause a schedule or a hook whose token has ended, and keep who is told of that."""

    async def recent(
        self, kind: TriggerKind, person: int, name: str, limit: int
    ) -> Sequence[FiringRecord]:
        """What became of those of one schedule or hook of hers, the newest first."""


class NoteBegun(Protocol):
    """Is told the conversation that was begun, when it is kept; False if all is another's now."""

    async def __call__(self, conversation: str, /) -> bool:
        """Note it."""


class Starter(Protocol):
    """Has what is due said to an agent, as if its owner had said it."""

    async def __call__(self, firing: Firing, note: NoteBegun, /) -> FiringEnd:
        """Begin the conversation and see it to its end, for now; under the same key it is the same.

        Raises what keeps it from being answered.
        """


class TokenEnds(Protocol):
    """Says whether the tokens have ended that triggers run with."""

    def known(self, token: int, /) -> EndReason | None:
        """Why one has ended, as far as is known by now; None where it has not."""

    async def __call__(self, token: int, /) -> EndReason | None:
        """The same, looked up where it is not known."""


class Notices(Protocol):
    """What tells the owner how a conversation stands, or a trigger."""

    def __call__(self, firing: Firing, end: FiringEnd, /) -> Sequence[Delivery]:
        """The deliveries; the same for the same end."""

    def dropped(self, schedule: Schedule, tick: int, /) -> Sequence[Delivery]:
        """Those that tell of a tick which begins nothing."""

    def resting(self, trigger: Resting, reason: EndReason, /) -> Sequence[Delivery]:
        """Those that tell of a trigger which rests, since its token has ended."""
