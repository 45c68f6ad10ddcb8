"""A run of a conversation: turn after turn, until something halts it.

Before each turn: has somebody stopped it, are there turns left, is there money left. After each
turn: does the predicate say stop.

Law 1. A turn that was acknowledged is never spoken again; one that died with its driver is, under
       the same id.
Law 2. A run that goes on asks its predicate before anybody speaks.
Law 3. Who goes on with a run does so under the definition that it began with, unless the driver
       says otherwise, and with the credential of whoever pays, if it began with one.
Law 4. A cancellation is an abort, and is recorded as one: the run can go on.
Law 5. A deadline and an abort hold against its own predicate, its order and whoever is told of it.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from msgspec.structs import replace

from carnet.core.call import Agent, Call
from carnet.core.dialogue.events import (
    ConversationEnded,
    ConversationResult,
    ConversationResumed,
    ConversationStarted,
    DialogueEvent,
    TurnDiscarded,
    TurnEnded,
)
from carnet.core.dialogue.halt import Halt
from carnet.core.dialogue.record import DialogueRecord
from carnet.core.dialogue.transcript import SpokenTurn, named, text_for
from carnet.core.messages.events import Done, End, Text
from carnet.core.messages.output import Output
from carnet.errors import Cancelled, DefinitionChanged, UsageInvalid
from carnet.ports.calls.dialogues import DialoguePages
from carnet.runtime.dialogue.attempt import attempt_of, check_halt, conversation_name, spelled
from carnet.runtime.dialogue.book import DialogueBook, open_book
from carnet.runtime.dialogue.definition import Conversation, OnEvent, Participant
from carnet.runtime.dialogue.parts import DialogueParts, is_over
from carnet.runtime.dialogue.place import DialoguePlace, place_of
from carnet.runtime.dialogue.stop import DialogueStop, Stopped
from carnet.runtime.dialogue.turn import DialogueTurn
from carnet.runtime.stream import closing

PREDICATE_TRUE: Final = "predicate_true"
_SAFE: Final = Cancelled().safe_text


class DialogueRun:
    """One run, begun or gone on with."""

    def __init__(
        self,
        conversation: Conversation,
        place: DialoguePlace,
        parts: DialogueParts,
        *,
        seed: str | None = None,
    ) -> None:
        """Without a seed a run that goes on has the one that it began with."""
        self._conversation = conversation
        self._place = place
        self._parts = parts
        self._seed = None if seed is None else spelled(seed)
        self._limits = conversation.limits.within(place.most)
        self._stop: DialogueStop | None = None
        self.record = DialogueRecord()

    async def tell(self, on_event: OnEvent | None = None) -> ConversationResult:
        """Drive it to its end, and tell somebody every event; what it came to."""
        async with closing(self.events()) as events:
            async for event in events:
                if on_event is not None and self._stop is not None:
                    with suppress(Stopped):  # the run sees it
                        await self._stop.ask(on_event, event)
                if isinstance(event, ConversationEnded):
                    return event.result
        raise AssertionError("a run ends with its result")

    async def events(self) -> AsyncGenerator[DialogueEvent, None]:
        """Drive it; gives what is told of it, each event after it was kept."""
        self._place.refuse_if_final()
        async with self._pages() as pages:
            book = await open_book(self._place.run_id, pages)
            self.record = book.record
            ends = self._ends()
            self._place = replace(self._place, deadline=ends)
            self._stop = stop = DialogueStop(self._parts, ends)
            try:
                async with closing(self._drive(book, stop)) as events:
                    async for event in events:
                        yield event
            except (asyncio.CancelledError, GeneratorExit):
                await self._abort(book)
                raise
            finally:
                stop.close()

    @asynccontextmanager
    async def _pages(self) -> AsyncIterator[DialoguePages | None]:
        journal, place = self._parts.journal, self._place
        if journal is None:
            yield None
            return
        async with journal.hold(place.run_id, place.scope) as pages:
            yield pages

    async def _drive(
        self, book: DialogueBook, stop: DialogueStop
    ) -> AsyncGenerator[DialogueEvent, None]:
        halted, halt = book.record.halt, None
        opening = self._opening(book)
        if halted is not None and not self._goes_on(halted, book.record):
            yield opening
            yield self._ended(book, halted, book.record.ended)
            return
        self._check_payer(book.record)
        await book.keep(_briefly(opening))
        yield opening
        if book.record.turns:
            halt = await self._judged(book, stop)
        while halt is None:
            chosen = self._halts(book, stop) or await self._chosen(book, stop)
            if isinstance(chosen, Halt):
                halt = chosen
                break
            turn = self._turn(chosen, book, stop)
            async with closing(turn.speak()) as events:
                async for event in events:
                    yield event
            halt = turn.halt or await self._judged(book, stop)
        yield await book.keep(self._ended(book, halt, self._parts.clock.wall_us()))

    # ------------------------------------------------------------------ beginning

    def _opening(self, book: DialogueBook) -> ConversationStarted | ConversationResumed:
        record, conversation, place = book.record, self._conversation, self._place
        fingerprint, at = conversation.fingerprint, self._parts.clock.wall_us()
        if record.started is None:
            return ConversationStarted(
                run_id=place.run_id,
                participants=conversation.names,
                seed=self._seed or "",
                at=at,
                fingerprint=fingerprint,
                limits=self._limits,
                parent_turn_id=place.parent_turn_id,
                inbound_depth=place.depth,
                forwards=place.credential is not None,
            )
        self._check(record, fingerprint)
        return ConversationResumed(
            run_id=place.run_id,
            participants=conversation.names,
            seed=record.seed if self._seed is None else self._seed,
            transcript=tuple(record.turns),
            at=at,
            fingerprint=fingerprint,
            limits=self._limits,
        )

    def _check(self, record: DialogueRecord, fingerprint: str) -> None:
        """Refuse to go on with what is another conversation."""
        if self._parts.allow_changes:
            return
        if record.fingerprint != fingerprint:
            raise DefinitionChanged("other participants, order or policies", changed="definition")
        if self._seed is not None and self._seed != record.seed:
            raise DefinitionChanged("another seed", changed="seed")

    def _check_payer(self, record: DialogueRecord) -> None:
        """Refuse to go on with what somebody else would have to pay for."""
        started = record.started
        if started is not None and started.forwards and self._place.credential is None:
            raise UsageInvalid(
                reason=f"Run {self._place.run_id} was begun with the credential of who pays.",
                fix="Give it again with propagated_headers: it is in no journal.",
            )

    def _goes_on(self, halt: Halt, record: DialogueRecord) -> bool:
        return halt.may_go_on(self._limits, turns=record.index, spent=record.spent)

    def _ends(self) -> float | None:
        """When its time is over, by its own deadline and by the one above."""
        ends = [] if self._place.deadline is None else [self._place.deadline]
        if self._limits.seconds is not None:
            ends.append(self._parts.steady() + self._limits.seconds)
        return min(ends, default=None)

    # ------------------------------------------------------------------ turns

    def _turn(
        self, participant: Participant, book: DialogueBook, stop: DialogueStop
    ) -> DialogueTurn:
        return DialogueTurn(
            participant,
            book=book,
            place=self._place,
            parts=self._parts,
            policy=participant.policy or self._conversation.policy,
            stop=stop,
            left=self._limits.max_spend,
            nest=self._nested,
        )

    def _nested(self, conversation: Conversation, ordinal: int) -> Agent:
        return NestedDialogue(conversation, self._parts, ordinal)

    def _halts(self, book: DialogueBook, stop: DialogueStop) -> Halt | None:
        """Whether no further turn is begun."""
        limits, record = self._limits, book.record
        kind = stop.look()
        if kind is not None:
            return Halt(kind=kind)
        if record.index >= limits.max_turns:
            return Halt(kind="max_turns", turns=record.index)
        if limits.max_spend is not None and record.spent >= limits.max_spend:
            return self._spent(record)
        return None

    async def _chosen(self, book: DialogueBook, stop: DialogueStop) -> Participant | Halt:
        """Who speaks next, or why nobody does."""
        conversation, state = self._conversation, book.state()
        if not callable(conversation.order):
            participants = conversation.participants
            participant = participants[state.turn_index % len(participants)]
        else:
            try:
                participant = conversation.speaker(await stop.ask(conversation.order, state))
            except Stopped as stopped:
                return Halt(kind=stopped.kind)
        return self._unpaid(book, participant) or participant

    def _unpaid(self, book: DialogueBook, participant: Participant) -> Halt | None:
        """Whether a turn of this participant may cost more than is left (R7)."""
        cap, most = self._limits.max_spend, participant.most
        if cap is None or most is None or book.record.spent + most <= cap:
            return None
        return self._spent(book.record)

    def _spent(self, record: DialogueRecord) -> Halt:
        return Halt(kind="max_spend", spent=record.spent, cap=self._limits.max_spend)

    async def _judged(self, book: DialogueBook, stop: DialogueStop) -> Halt | None:
        """Whether the predicate says stop."""
        if self._conversation.halt_on is None:
            return None
        try:
            verdict = await stop.ask(self._conversation.halt_on, book.state())
        except Stopped as stopped:
            return Halt(kind=stopped.kind)
        if not verdict:
            return None
        reason = verdict if isinstance(verdict, str) else PREDICATE_TRUE
        return Halt(kind="predicate", reason=reason)

    # ------------------------------------------------------------------ end

    def _ended(self, book: DialogueBook, halt: Halt, at: int) -> ConversationEnded:
        result = book.record.result(halt, at)
        return ConversationEnded(run_id=self._place.run_id, result=result, at=at)

    async def _abort(self, book: DialogueBook) -> None:
        """Record that nobody waits for it any more."""
        record, at = book.record, self._parts.clock.wall_us()
        if book.failure is not None or record.started is None or record.halt is not None:
            return
        started = record.open
        if started is not None:
            await book.keep(
                TurnDiscarded(
                    run_id=started.run_id,
                    index=started.index,
                    speaker=started.speaker,
                    turn_id=started.turn_id,
                    attempt=started.attempt,
                    code=Cancelled.code,
                    message=_SAFE,
                    at=at,
                    cost=book.cost,
                    counted=book.counted,
                )
            )
        await book.keep(self._ended(book, Halt(kind="abort"), at))


def _briefly(
    opening: ConversationStarted | ConversationResumed,
) -> ConversationStarted | ConversationResumed:
    """How a run begins, as it is kept: what was spoken before is there already."""
    if isinstance(opening, ConversationStarted):
        return opening
    return replace(opening, transcript=())


class NestedDialogue:
    """A conversation that speaks a turn of another one: an Agent."""

    def __init__(self, conversation: Conversation, parts: DialogueParts, ordinal: int) -> None:
        """`ordinal` tells it from others that are run within the same turn."""
        self._conversation = conversation
        self._parts = replace(parts, streams=False)  # a turn within is shown when it was spoken
        self._ordinal = ordinal

    async def __call__(self, call: Call, out: Output, /) -> End:
        """Run it within the turn that the call is; gives every turn of it, behind its name."""
        attempt, name = attempt_of(out), conversation_name(self._ordinal)
        place = replace(place_of(call), ordinal=self._ordinal, most=attempt.most_of(name))
        seed = text_for(call.ask.messages, call.carnet.speaker or "")
        run = DialogueRun(self._conversation, place, self._parts, seed=seed)
        try:
            result = await tell_turns(run, out)
        finally:
            attempt.converse(name, run.record.usage(), is_kept=self._parts.journal is not None)
        check_halt(result.halted, is_late=is_over(call.carnet.deadline, self._parts))
        return Done()


async def tell_turns(run: DialogueRun, out: Output) -> ConversationResult:
    """Drive a run, and write every turn of it behind its name; what it came to."""
    async with closing(run.events()) as events:
        async for event in events:
            for turn in _turns(event):
                await out.write(Text(f"{named(turn)}\n"))
            if isinstance(event, ConversationEnded):
                return event.result
    raise AssertionError("a run ends with its result")


def _turns(event: DialogueEvent) -> tuple[SpokenTurn, ...]:
    """The turns that an event brings."""
    if isinstance(event, ConversationResumed):
        return event.transcript
    return (event.turn,) if isinstance(event, TurnEnded) else ()
