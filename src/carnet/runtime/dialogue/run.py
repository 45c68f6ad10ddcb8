"""A run of a conversation: turn after turn, until something halts it.

Before each turn: has somebody stopped it, are there turns left, is there money left. After each
turn: does the predicate say stop. A conversation that takes part in another one is run within the
turn of that one, by the same driver.

Law 1. A turn that was acknowledged is never spoken again; one that died with its driver is, under
       the same id.
Law 2. A run that goes on asks its predicate before anybody speaks.
Law 3. Who goes on with a run does so under the definition that it began with, unless the driver
       says otherwise, and with the credential of whoever pays, if it began with one.
Law 4. A cancellation is an abort, and is recorded as one: the run can go on.
Law 5. What is done within a turn is kept under that turn, and counted there and above.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

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
from carnet.core.dialogue.halt import DialogueLimits, Halt
from carnet.core.dialogue.record import DialogueRecord
from carnet.core.dialogue.transcript import SpokenTurn, named, text_for
from carnet.core.messages.events import Done, End, Failed, Text, Usage
from carnet.core.messages.output import Output
from carnet.errors import Cancelled, DefinitionChanged, ProviderTimeout, UsageInvalid
from carnet.ports.calls.dialogues import DialoguePages
from carnet.runtime.dialogue.attempt import spelled
from carnet.runtime.dialogue.book import DialogueBook, open_book
from carnet.runtime.dialogue.definition import Conversation, Participant, conversation_of
from carnet.runtime.dialogue.place import DialoguePlace
from carnet.runtime.dialogue.policy import awaited
from carnet.runtime.dialogue.stop import DialogueStop
from carnet.runtime.dialogue.turn import DialogueParts, DialogueTurn
from carnet.runtime.stream import closing
from carnet.runtime.wrappers.timed import BY_CALLER

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
        self._limits = _narrowed(conversation.limits, place)
        self.record = DialogueRecord()

    async def events(self) -> AsyncGenerator[DialogueEvent, None]:
        """Drive it; gives what is told of it, each event after it was kept."""
        self._place.refuse_if_final()
        async with self._pages() as pages:
            book = await open_book(self._place.run_id, pages)
            self.record = book.record
            seconds = self._seconds()
            if seconds is not None:
                self._place = replace(self._place, deadline=self._parts.steady() + seconds)
            stop = DialogueStop(self._parts.abort, seconds)
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
            halt = await self._judged(book)
        while halt is None:
            halt = self._halts(book, stop)
            if halt is not None:
                break
            participant = self._conversation.next_speaker(book.state())
            halt = self._unpaid(book, participant)
            if halt is not None:
                break
            turn = self._turn(participant, book, stop)
            async with closing(turn.speak()) as events:
                async for event in events:
                    yield event
            halt = turn.halt or await self._judged(book)
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

    def _seconds(self) -> float | None:
        """What it has left, by its own deadline and by the one above."""
        left = [] if self._limits.seconds is None else [self._limits.seconds]
        if self._place.deadline is not None:
            left.append(self._place.deadline - self._parts.steady())
        return min(left, default=None)

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
            nest=partial(self._nested, book),
        )

    def _nested(self, book: DialogueBook, conversation: Conversation, paid: int) -> Agent:
        most = self._limits.max_spend
        if most is not None:
            most = max(0, most - book.record.spent + paid)
        return NestedDialogue(conversation, self._parts, paid=paid, most=most)

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

    def _unpaid(self, book: DialogueBook, participant: Participant) -> Halt | None:
        """Whether a turn of this participant may cost more than is left (R7)."""
        cap, most = self._limits.max_spend, participant.most
        if cap is None or most is None or book.record.spent + most <= cap:
            return None
        return self._spent(book.record)

    def _spent(self, record: DialogueRecord) -> Halt:
        return Halt(kind="max_spend", spent=record.spent, cap=self._limits.max_spend)

    async def _judged(self, book: DialogueBook) -> Halt | None:
        """Whether the predicate says stop."""
        if self._conversation.halt_on is None:
            return None
        stop = await awaited(self._conversation.halt_on(book.state()))
        if not stop:
            return None
        return Halt(kind="predicate", reason=stop if isinstance(stop, str) else PREDICATE_TRUE)

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
                )
            )
        await book.keep(self._ended(book, Halt(kind="abort"), at))


class NestedDialogue:
    """A conversation that speaks a turn of another one: an Agent."""

    def __init__(
        self, conversation: Conversation, parts: DialogueParts, *, paid: int, most: int | None
    ) -> None:
        """`paid` was counted with earlier attempts at the turn; `most` is what is left."""
        self._conversation = conversation
        self._parts = replace(parts, streams=False)  # a turn within is shown when it was spoken
        self._paid = paid
        self._most = most

    async def __call__(self, call: Call, out: Output, /) -> End:
        """Run it within the turn that the call is; gives every turn of it, behind its name."""
        carnet = call.carnet
        place = replace(_place_of(call), most=self._most)
        seed = text_for(call.ask.messages, carnet.speaker or "")
        run = DialogueRun(self._conversation, place, self._parts, seed=seed)
        try:
            result = await tell_turns(run, out)
        finally:
            out.usage(self._used(run.record))
        check_halt(result.halted, is_late=is_over(carnet.deadline, self._parts))
        return Done()

    def _used(self, record: DialogueRecord) -> Usage:
        tokens_in = [turn.tokens_in for turn in record.turns if turn.tokens_in is not None]
        tokens_out = [turn.tokens_out for turn in record.turns if turn.tokens_out is not None]
        is_known = bool(record.spent) or not record.unknown_costs
        return Usage(
            tokens_in=sum(tokens_in) if tokens_in else None,
            tokens_out=sum(tokens_out) if tokens_out else None,
            cost=record.spent - self._paid if is_known else None,
        )


class NestedConversations:
    """What `visit.conversation` does in a driver without a gateway."""

    def __init__(self, parts: DialogueParts) -> None:
        self._parts = parts

    async def __call__(
        self, call: Call, out: Output, participants: Any, options: Mapping[str, Any], ordinal: int
    ) -> ConversationResult:
        """Run it within the turn that the call is, and count there what it cost."""
        given = dict(options)
        seed, on_event = given.pop("seed", ""), given.pop("on_event", None)
        conversation = conversation_of(participants, given)
        conversation.refuse_names()
        place = replace(_place_of(call), ordinal=ordinal)
        parts = replace(self._parts, streams=on_event is not None)
        run = DialogueRun(conversation, place, parts, seed=seed)
        try:
            async with closing(run.events()) as events:
                async for event in events:
                    if on_event is not None:
                        await awaited(on_event(event))
                    if isinstance(event, ConversationEnded):
                        return event.result
        finally:
            out.usage(Usage(cost=run.record.spent))
        raise AssertionError("a run ends with its result")


def _place_of(call: Call) -> DialoguePlace:
    """The place of a conversation that is run within a turn of ours."""
    carnet = call.carnet
    return DialoguePlace(
        run_id=carnet.run,
        depth=carnet.depth,
        last_depth=carnet.bound(0),
        parent_turn_id=carnet.turn,
        credential=call.credential,
        trace=carnet.trace,
        deadline=carnet.deadline,
    )


async def tell_turns(run: DialogueRun, out: Output) -> ConversationResult:
    """Drive a run, and write every turn of it behind its name; what it came to."""
    async with closing(run.events()) as events:
        async for event in events:
            for turn in _turns(event):
                await out.write(Text(f"{named(turn)}\n"))
            if isinstance(event, ConversationEnded):
                return event.result
    raise AssertionError("a run ends with its result")


def check_halt(halted: Halt, *, is_late: bool) -> None:
    """Raise for what is no answer: it failed, or the turn that it speaks has to stop."""
    if halted.kind == "participant_error":
        raise Failed(halted.code or "").error()
    if halted.kind == "abort":
        raise Cancelled("the run was aborted")
    if halted.kind == "deadline" and is_late:
        raise ProviderTimeout("the time of the turn is over", by=BY_CALLER)


def is_over(deadline: float | None, parts: DialogueParts) -> bool:
    """Whether a time is over."""
    return deadline is not None and parts.steady() >= deadline


def _turns(event: DialogueEvent) -> tuple[SpokenTurn, ...]:
    """The turns that an event brings."""
    if isinstance(event, ConversationResumed):
        return event.transcript
    return (event.turn,) if isinstance(event, TurnEnded) else ()


def _briefly(
    opening: ConversationStarted | ConversationResumed,
) -> ConversationStarted | ConversationResumed:
    """How a run begins, as it is kept: what was spoken before is there already."""
    if isinstance(opening, ConversationStarted):
        return opening
    return replace(opening, transcript=())


def _narrowed(limits: DialogueLimits, place: DialoguePlace) -> DialogueLimits:
    """The limits of a conversation within what is left above it."""
    if place.most is None:
        return limits
    most = place.most if limits.max_spend is None else min(place.most, limits.max_spend)
    return DialogueLimits(max_turns=limits.max_turns, max_spend=most, seconds=limits.seconds)
