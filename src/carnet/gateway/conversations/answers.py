"""Answers in conversations: asked for as any call, and written down when their turns have ended.

Law 1. An answer is written down before its client is told of its end.
Law 2. A client that leaves loses nothing: what was said until its turn ends is written down by
       whoever sees the end first, this process or another one on the same store.
Law 3. What waits is looked at together: it costs the same whosever it is, and a bounded part of it
       at a time.
Law 4. Of an answer that ends, fails or waits while nobody reads it here its owner is told, in the
       transaction that writes it down: not of one that she stops, and not of what a hook or a
       schedule has begun, which tell of that.
Law 5. Who died while an answer was given holds its conversation up for some seconds at the most.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import Final

from carnet.core.call import Call, Thread
from carnet.core.chain.turn import Turn
from carnet.core.messages.events import (
    Event,
    Interrupted,
    is_terminal,
    read_in_pieces,
)
from carnet.core.people.identity import person_of
from carnet.errors import CarnetError, Internal
from carnet.gateway.conversations.resolutions import Resolutions
from carnet.gateway.conversations.transcript import MOST_BYTES, has_ended, settled_by
from carnet.gateway.runs import Watching
from carnet.ports.calls.agent import Journal
from carnet.ports.calls.conversations import (
    AnswerEnd,
    AnswerNotices,
    Conversations,
    KeptConversation,
    KeptMessage,
    OpenAnswer,
    Settled,
)
from carnet.ports.calls.turns import Turns
from carnet.ports.world.clock import Clock
from carnet.ports.world.outbox import Delivery

LOOK_SECONDS: Final = 1.0  # how late the end of a turn is seen that nobody here tells of
KEEP_SECONDS: Final = 2.0  # between two looks for what others have left
BEGIN_SECONDS: Final = 3.0  # that an answer may take to become a turn
END_SECONDS: Final = 5.0  # that whoever shows an answer may take to write it down
AT_A_TIME: Final = 200
MOST_WAITING: Final = 5_000  # answers that wait, of everybody, which one look goes through
SECOND: Final = 1_000_000

_log = logging.getLogger("carnet.gateway")


class Answers:
    """The answers that are given at one gateway."""

    def __init__(
        self,
        conversations: Conversations,
        turns: Turns,
        watch: Callable[[str], Watching],
        clock: Clock,
        notices: AnswerNotices = lambda _: (),
    ) -> None:
        """`watch` tells when something of a run was recorded; `notices` tell owners."""
        self._notices = notices
        self.on_notice: Callable[[], None] = lambda: None  # is told when there are some
        self._reading: Counter[str] = Counter()  # how many read an answer here, by its id
        self._conversations = conversations
        self._turns = turns
        self._watch = watch
        self._clock = clock
        self._following: dict[str, asyncio.Task[None]] = {}  # by the id of the answer
        self._waited = 0  # how far those that wait were looked at
        self._keeping: asyncio.Task[None] | None = None
        self.is_stopping = False  # who is held at a question is let go

    def start(self) -> None:
        """Begin to look for answers that others have left."""
        self._keeping = asyncio.create_task(self._keep(), name="carnet-conversations")

    async def close(self) -> None:
        """Leave what has not ended to whoever looks next."""
        tasks = [*self._following.values(), *([self._keeping] if self._keeping else [])]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def settle(self, owner: str, answer: KeptMessage, *, is_seen: bool = False) -> bool:
        """Write down an answer whose turn has ended; False if it has not."""
        turn = await self._conversations.turn_of(owner, answer)
        if turn is None or not has_ended(turn):
            return False
        if answer.waits and turn.state == "waiting":  # as it is written down
            return True
        settled = settled_by(
            turn, await self._events(turn), is_seen=is_seen, now=self._clock.wall_us()
        )
        is_read = is_seen or self._reading[answer.id] > 0
        notices = () if is_read else await self._telling(owner, answer, turn, settled)
        await self._conversations.settle(owner, answer.id, settled, notices)
        if notices:
            self.on_notice()
        return True

    @contextmanager
    def read(self, answer: KeptMessage) -> Iterator[None]:
        """Note that somebody reads an answer, for the time of a context."""
        self._reading[answer.id] += 1
        try:
            yield
        finally:
            self._reading[answer.id] -= 1
            if not self._reading[answer.id]:
                del self._reading[answer.id]

    async def _telling(
        self, owner: str, answer: KeptMessage, turn: Turn, settled: Settled
    ) -> Sequence[Delivery]:
        """What tells a person of an answer that nobody has read."""
        person = person_of(owner)
        if person is None:
            return ()
        place = await self._conversations.place_of(owner, answer)
        if place is None or place.is_triggered:
            return ()
        return self._notices(
            AnswerEnd(
                person=person,
                conversation=place.conversation,
                message=answer.id,
                agent=turn.agent,
                state=turn.state if turn.state in ("done", "waiting") else "failed",
                code=settled.code,
                mark=f"{turn.n}.{turn.ended or turn.waits_until}",
            )
        )

    async def _events(self, turn: Turn) -> list[Event]:
        """What was said in a turn, as far as it is kept, and its end."""
        found: list[Event] = []
        since = size = 0
        while batches := await self._turns.events(turn, since, is_piece=True):
            for batch in batches:
                size += len(batch)
                for events in read_in_pieces(batch):
                    since += len(events)
                    found += events if size <= 2 * MOST_BYTES else events[-1:]
            await asyncio.sleep(0)
            if found and is_terminal(found[-1]):
                break
        return found

    async def with_resolutions(
        self, owner: str, answer: KeptMessage, events: Sequence[Event]
    ) -> Sequence[Event]:
        """What was said in an answer, with what somebody was asked in it and has answered."""
        turn = await self._conversations.turn_of(owner, answer)
        return events if turn is None else await Resolutions(self._turns, turn).within(events)

    def follow(self, owner: str, answer: KeptMessage) -> None:
        """Write an answer down when its turn has ended, though nobody reads it."""
        if answer.id not in self._following:
            task = asyncio.create_task(self._follow(owner, answer))
            self._following[answer.id] = task
            task.add_done_callback(lambda _: self._following.pop(answer.id, None))

    async def _follow(self, owner: str, answer: KeptMessage) -> None:
        with self._watch(answer.run or "") as watching:
            while True:
                try:
                    if await self.settle(owner, answer):
                        return
                except CarnetError as error:  # the store may be back at the next look
                    _log.warning("an answer is not written down: %s", error)
                await watching.changed(LOOK_SECONDS)

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(KEEP_SECONDS)
            try:
                await self.keep()
            except CarnetError as error:
                _log.warning("conversations are not looked after: %s", error)
            except Exception:  # noqa: BLE001  a task has no caller; the next look may be well
                _log.exception("conversations are not looked after")

    async def keep(self) -> None:
        """Write down what others have left: those who died, or a call that waited and went on."""
        after, now = 0, self._clock.wall_us()
        begun, ended = (now - int(each * SECOND) for each in (BEGIN_SECONDS, END_SECONDS))
        while found := await self._conversations.given_up(
            after=after, limit=AT_A_TIME, begun=begun, ended=ended
        ):
            after = found[-1].n
            for each in found:
                await self.look(each)
        found, self._waited = await self._conversations.gone_on(
            after=self._waited, limit=AT_A_TIME, most=MOST_WAITING
        )
        for each in found:
            await self.look(each)

    async def look(self, each: OpenAnswer) -> bool:
        """Whether an answer is not being given any more; it is written down then."""
        if each.answer.id in self._following:
            return False
        age = self._clock.wall_us() - each.since
        if each.is_given and age < BEGIN_SECONDS * SECOND:
            return False  # it may be about to begin
        turn = await self._conversations.turn_of(each.owner, each.answer)
        if turn is None and each.is_given:
            await self._conversations.release(each.owner, each.answer.id, None)
            return True
        if turn is None or not has_ended(turn) or (each.is_given and self._ended_just_now(turn)):
            return False
        return await self.settle(each.owner, each.answer)

    def _ended_just_now(self, turn: Turn) -> bool:
        """Whether it has ended just now: whoever shows it writes it down."""
        return turn.ended is not None and self._clock.wall_us() - turn.ended < END_SECONDS * SECOND

    async def look_at(self, conversation: KeptConversation, answer: KeptMessage) -> bool:
        """The same for the answer that a conversation says is being given."""
        found = (conversation.n, conversation.owner, conversation.id, conversation.updated)
        return await self.look(OpenAnswer(*found, is_given=True, answer=answer))


class SettledJournal:
    """A journal whose answers are written down in their conversations before they are told."""

    def __init__(
        self, journal: Journal, answers: Answers, conversations: Conversations, turns: Turns
    ) -> None:
        """`answers` writes them down."""
        self._journal = journal
        self._answers = answers
        self._conversations = conversations
        self._turns = turns

    async def batches(
        self, call: Call, /, heartbeat: float | None = None
    ) -> AsyncGenerator[Sequence[Event], None]:
        """The same events; the first batch is empty, so that the stream begins at once."""
        owner, answer = call.caller.owner, await self._answer(call)
        resolutions = Resolutions(self._turns, call.record)
        is_settled = False
        try:
            yield ()
            inner = self._journal.batches(call, heartbeat)
            async with aclosing(inner):
                async for batch in inner:
                    if batch:
                        is_settled = _ends(batch[-1]) and await self._answers.settle(
                            owner, answer, is_seen=True
                        )
                    yield await resolutions.within(batch)
        finally:
            if not is_settled:
                self._answers.follow(owner, answer)

    async def _answer(self, call: Call) -> KeptMessage:
        thread = thread_of(call)
        found = await self._conversations.find(call.caller.owner, thread.conversation)
        answer = None if found is None else await self._conversations.message(found, thread.answer)
        if answer is None:
            raise Internal("a call in a conversation has no place for its answer")
        return answer

    async def whole(self, call: Call, /) -> Sequence[Event]:
        """All of them."""
        async with aclosing(self.batches(call)) as batches:
            return [event async for batch in batches for event in batch]

    async def size(self, call: Call, /) -> int:
        """How many bytes were recorded of a turn that is known."""
        return await self._journal.size(call)

    async def cancel(self, turns: Collection[int]) -> int:
        """Cancel those of these turns that are running."""
        return await self._journal.cancel(turns)


def _ends(event: Event) -> bool:
    """Whether nothing more is said for now: at the end, or at a question."""
    return is_terminal(event) or isinstance(event, Interrupted)


def thread_of(call: Call) -> Thread:
    """The conversation that a call is made in."""
    thread = call.ask.thread
    if thread is None:
        raise Internal("a call is in no conversation")
    return thread
