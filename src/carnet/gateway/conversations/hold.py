"""A stream that stays open at a question, and goes on when somebody has answered it.

Law 1. It is held for so many seconds at each question; then it ends as if it were not held.
Law 2. It shows what it would show who asks again: the question, the answer, and the rest. If the
       agent says something else when it runs on, its end is not known.
Law 3. A stream that is held looks at its question when its run has changed, and else once a second
       at the most; many of them less often. It holds no call of an agent, and counts as a stream.
Law 4. The end of the gateway ends it, and so does the end of what its reader was let in by.
Law 5. What it was shown is kept as a digest, and it gives back the room in which its record was
       read (A74): a stream that is held costs no more than any silent one.
"""

import logging
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, aclosing, nullcontext
from typing import Final

from msgspec.structs import replace

from carnet.core.call import Call
from carnet.core.chain.turn import Turn
from carnet.core.messages.events import Event, Failed, Interrupted, Usage, Waiting
from carnet.core.messages.interrupt import InterruptRecord
from carnet.core.messages.shown import Shown
from carnet.errors import Cancelled, CarnetError, OutcomeUnknown
from carnet.gateway.conversations.resolutions import answered, resolved
from carnet.gateway.runs import Watching
from carnet.guards.readers import READER_BYTES, Readers
from carnet.ports.calls.agent import Journal
from carnet.ports.calls.turns import Turns
from carnet.ports.world.clock import Clock

LOOK_SECONDS: Final = 1.0
EACH_SECONDS: Final = 0.005  # between two looks, for each that is held
MOST_BYTES: Final = 1024 * 1024  # of what was said before a question; with more it is not held
_UNKNOWN: Final[Sequence[Event]] = (Usage(), Failed.of(OutcomeUnknown()))
_REFUSED: Final[Sequence[Event]] = (Usage(), Failed.of(Cancelled()))
_GOING_ON: Final = frozenset({"running", "queued"})

_log = logging.getLogger("carnet.gateway")


class HeldJournal:
    """A journal whose streams stay open at a question."""

    def __init__(
        self,
        journal: Journal,
        turns: Turns,
        watch: Callable[[str], Watching],
        clock: Clock,
        *,
        readers: Readers,
        seconds: float,
        has_ended: Callable[[Call], bool],
        is_stopping: Callable[[], bool],
    ) -> None:
        """`watch` tells when something of a run was recorded; `readers` has room for records.

        `has_ended` tells whether what let a call in was revoked, `is_stopping` of the gateway.
        """
        self._journal = journal
        self._turns = turns
        self._watch = watch
        self._clock = clock
        self._readers = readers
        self._seconds = seconds
        self._has_ended = has_ended
        self._is_stopping = is_stopping
        self._held = 0

    async def batches(
        self, call: Call, /, heartbeat: float | None = None
    ) -> AsyncGenerator[Sequence[Event], None]:
        """The same events; at a question it, and what somebody answers, before the rest."""
        place = _Place(call)
        room: AbstractAsyncContextManager[None] = nullcontext()  # whoever answers has it
        with ExitStack() as lent:
            while True:
                async with room, aclosing(self._rest(place, heartbeat)) as batches:
                    async for batch in batches:
                        yield batch
                if place.waiting is None:
                    return
                if place.is_in_room:
                    place.is_in_room = False
                    lent.enter_context(self._readers.lent(place.reader, READER_BYTES))
                hold = _Hold(place.waiting, self._clock.monotonic() + self._seconds, heartbeat)
                async with aclosing(self._wait(place.call, hold)) as answers:
                    async for batch in answers:
                        yield batch
                if hold.turn is None or hold.is_refused:
                    yield _REFUSED if hold.is_refused else (place.waiting,)
                    return
                place.run_on(hold.turn)
                room = self._room(place)

    def _room(self, place: "_Place") -> AbstractAsyncContextManager[None]:
        """The room in which a turn that ran on is read, where its record is."""
        if place.call.record.state in _GOING_ON:
            return nullcontext()
        return self._readers.room(place.reader, READER_BYTES)

    async def _rest(
        self, place: "_Place", heartbeat: float | None
    ) -> AsyncGenerator[Sequence[Event], None]:
        """What was not shown yet, up to the end or a question."""
        async with aclosing(self._journal.batches(place.call, heartbeat)) as batches:
            async for batch in batches:
                rest = place.rest(batch)
                if rest is None:
                    yield _UNKNOWN
                    return
                if rest and isinstance(rest[-1], Waiting):
                    yield await self._asked(place, rest[:-1], rest[-1])
                elif rest or not batch:
                    yield rest

    async def _asked(
        self, place: "_Place", rest: Sequence[Event], waiting: Waiting
    ) -> Sequence[Event]:
        """What is told at a question: it alone, or the end if it cannot be held there."""
        if await self._journal.size(place.call) > MOST_BYTES:
            return (*rest, waiting)
        place.waiting = waiting
        return (*rest, *[Interrupted(each) for each in waiting.interrupts])

    async def _wait(self, call: Call, hold: "_Hold") -> AsyncGenerator[Sequence[Event], None]:
        """What is answered, and an empty batch after a silence, until `hold` says how it ended."""
        self._held += 1
        try:
            with self._watch(call.record.run) as watching:
                while True:
                    news = await self._look(call, hold)
                    if news and not hold.is_refused:
                        yield news
                    now = self._clock.monotonic()
                    if hold.has_ended(now) or self._is_stopping():
                        return
                    if hold.is_silent(now):
                        yield ()
                    look = max(LOOK_SECONDS, EACH_SECONDS * self._held)
                    await watching.changed(min(look, hold.until - now))
        finally:
            self._held -= 1

    async def _look(self, call: Call, hold: "_Hold") -> Sequence[Event]:
        """See how it stands; what is new. A store that cannot be read is asked at the next look."""
        hold.is_refused = self._has_ended(call)
        try:
            records = await self._turns.interrupts(call.record)
            if hold.is_over(records):
                hold.turn = await self._going_on(call.record, records)
        except CarnetError as error:
            _log.warning("a stream is held, and its question cannot be read: %s", error)
            return ()
        return hold.news(records)

    async def _going_on(self, record: Turn, records: Sequence[InterruptRecord]) -> Turn | None:
        """The turn if it has gone on, or has ended; None while it is about to."""
        turn = await self._turns.reload(record)
        asks_more = any(each.status == "open" for each in records)
        return turn if turn.state != "waiting" or asks_more else None

    async def whole(self, call: Call, /) -> Sequence[Event]:
        """All of them."""
        return await self._journal.whole(call)

    async def size(self, call: Call, /) -> int:
        """How many bytes were recorded of a turn that is known."""
        return await self._journal.size(call)

    async def cancel(self, turns: Collection[int]) -> int:
        """Cancel those of these turns that are running."""
        return await self._journal.cancel(turns)


class _Place:
    """How far one reader is in a turn that may run on."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.waiting: Waiting | None = None
        # Whoever tells what is recorded holds room for that (`gateway.answer`).
        self.is_in_room = call.known and call.record.state not in _GOING_ON
        self._shown = Shown()
        self._before: Shown | None = None  # what was shown before it ran on

    @property
    def reader(self) -> str:
        """Who reads."""
        return self.call.caller.actor.name

    def rest(self, batch: Sequence[Event]) -> Sequence[Event] | None:
        """What of a batch was not shown; None if it is not what was shown."""
        rest = batch if self._before is None else self._before.rest(batch)
        self._shown.add(rest or ())
        return rest

    def run_on(self, turn: Turn) -> None:
        """It was answered: it says everything again."""
        self.call = replace(self.call, record=turn, known=True)
        self.waiting, self._before = None, self._shown.copy()


class _Hold:
    """One stream that is held at its questions."""

    def __init__(self, waiting: Waiting, until: float, heartbeat: float | None) -> None:
        self._open = [each.id for each in waiting.interrupts]
        self._shown: set[str] = set()
        self._heartbeat = heartbeat
        self._silent: float | None = None  # since when
        self.until = until
        self.turn: Turn | None = None  # that goes on
        self.is_refused = False

    def news(self, records: Sequence[InterruptRecord]) -> list[Event]:
        """What was answered since the last look."""
        found = [
            each for each in answered(records, self._open) if each.interrupt.id not in self._shown
        ]
        self._shown.update([each.interrupt.id for each in found])
        if found:
            self._silent = None
        return [resolved(each) for each in found]

    def is_over(self, records: Sequence[InterruptRecord]) -> bool:
        """Whether nothing is open any more of what it is held for."""
        return not any(
            each.status == "open" and each.interrupt.id in self._open for each in records
        )

    def has_ended(self, now: float) -> bool:
        """Whether it is held no longer: it goes on, or nobody waits for it any more."""
        return self.turn is not None or self.is_refused or now >= self.until

    def is_silent(self, now: float) -> bool:
        """Whether nothing was told for so long that something has to be."""
        if self._silent is None:
            self._silent = now
        if self._heartbeat is None or now - self._silent < self._heartbeat:
            return False
        self._silent = now
        return True
