"""One turn of a dialogue: attempts at it, until it is spoken, left out, or ends the run.

Law 1. Every attempt has the same turn id and a number of its own, also over the death of a driver.
Law 2. What an attempt has cost is kept with its end, however it ended.
Law 3. A stop is not a failure: it is never repeated, and no breaker counts it.
Law 4. A participant that failed halts the run, is left out, or has somebody speak for it.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Final

from carnet.core.call import AGENT_OWNED, FORWARD_USER, Agent, Ask
from carnet.core.dialogue.events import (
    DialogueEvent,
    TurnDiscarded,
    TurnEnded,
    TurnRetried,
    TurnSkipped,
    TurnStarted,
    TurnText,
)
from carnet.core.dialogue.halt import Halt
from carnet.core.dialogue.transcript import SpokenTurn, messages_for
from carnet.errors import (
    Cancelled,
    CarnetError,
    OutcomeUnknown,
    ProviderError,
    ProviderTimeout,
)
from carnet.runtime.dialogue.attempt import (
    AttemptOutput,
    answered,
    check_end,
    never_left,
    spelled,
)
from carnet.runtime.dialogue.book import DialogueBook
from carnet.runtime.dialogue.definition import (
    ChatModelTarget,
    Conversation,
    Participant,
    ParticipantTarget,
    callee_of,
    describe,
)
from carnet.runtime.dialogue.parts import DialogueParts
from carnet.runtime.dialogue.place import CalledTurn, DialoguePlace
from carnet.runtime.dialogue.policy import CallPolicy, Entered, late, leave, result_of
from carnet.runtime.dialogue.stop import DialogueStop, Late, Stopped
from carnet.runtime.stream import closing
from carnet.runtime.wrappers.timed import BY_CALLER
from carnet.telemetry import redact

MOST_DETAIL: Final = 1000  # characters of an error that are kept
_LOST = "The driver ended during this attempt."


Nesting = Callable[[Conversation, int], Agent]  # and its ordinal


class DialogueTurn:
    """One turn while it is spoken."""

    def __init__(
        self,
        participant: Participant,
        *,
        book: DialogueBook,
        place: DialoguePlace,
        parts: DialogueParts,
        policy: CallPolicy,
        stop: DialogueStop,
        left: int | None,
        nest: Nesting,
    ) -> None:
        """`left` is what may be spent yet; `nest` makes an Agent of a conversation."""
        self.halt: Halt | None = None  # why the run ends with it
        self._participant = participant
        self._book = book
        self._place = place
        self._parts = parts
        self._policy = policy
        self._stop = stop
        self._left = left
        self._nest = nest
        self._index = book.record.index
        self._turn_id = place.turn_id(self._index, participant.name)
        self._began = parts.clock.wall_us()
        self._out = AttemptOutput()
        self._end: Exception | None = None  # of the last attempt, where it was not spoken

    async def speak(self) -> AsyncGenerator[DialogueEvent, None]:
        """Have it spoken; gives what is told of it."""
        keep, failure = self._book.keep, self._participant.on_failure
        others = () if failure in ("halt", "skip") else (failure,)
        if self._book.record.open is not None:
            yield await keep(self._lost(self._book.record.open))
        for target in (self._participant.target, *others):
            async with closing(self._attempts(target)) as events:
                async for event in events:
                    yield event
            if self._end is None or self.halt is not None:
                return
        if self._end is not None and failure == "skip":
            yield await keep(self._skipped(self._end))
        elif self._end is not None:
            self.halt = self._failed(self._end)

    # ------------------------------------------------------------------ attempts

    async def _attempts(self, target: ParticipantTarget) -> AsyncGenerator[DialogueEvent, None]:
        keep = self._book.keep
        breaker = self._policy.breaker_of(callee_of(target), self._parts.clock)
        tried = 0
        while True:
            self._book.cost, self._book.counted = 0, {}  # until it is called
            try:
                forwards = await self._forwards()
            except Stopped as stopped:
                self.halt = Halt(kind=stopped.kind)
                return
            yield await keep(self._started(target))
            self._out, self._end = self._output(target), None
            agent, called = self._agent(target), self._called(forwards=forwards)
            try:
                with Entered(breaker):
                    async with closing(self._attempt(agent, called)) as texts:
                        async for text in texts:
                            yield text
            except Exception as error:
                if error is self._book.failure:  # that of our own journal
                    raise
                self._end = error
                yield await keep(self._discarded(error))
            else:
                yield await keep(self._ended(target))
                return
            if not await self._is_tried_again(self._end, tried):
                return
            tried += 1

    async def _is_tried_again(self, error: Exception, tried: int) -> bool:
        """Wait for the next attempt; False if there is to be none."""
        if self._stopped():
            return False
        policy, ids = self._policy, self._parts.ids
        try:
            if policy.asks:  # functions of whoever wrote it
                pause = await self._stop.ask(policy.pause, error, tried, ids)
            else:
                pause = policy.pause(error, tried, ids)
        except Stopped:
            pause = 0.0
        if pause is None:
            return False
        await self._stop.sleep(pause)
        return not self._stopped()

    async def _attempt(
        self, agent: Agent, called: CalledTurn
    ) -> AsyncGenerator[DialogueEvent, None]:
        """Call it once; raises what it ends with, unless it was spoken."""
        out, stop, seconds = self._out, self._stop, self._policy.seconds
        answer = answered(agent, self._place.call(agent, called), out)
        task = asyncio.get_running_loop().create_task(answer)
        task.add_done_callback(lambda _: out.changed.set())
        stop.wake(out.changed)
        clock = Late(seconds, out.changed)
        try:
            while not (task.done() or clock.is_late or stop.look()):
                await out.changed.wait()
                out.changed.clear()
                if text := self._new_text():
                    yield await self._book.keep(text)
            if text := self._new_text():
                yield await self._book.keep(text)
        finally:
            clock.close()
            has_ended = task.done()
            await leave(task)
            out.close()
            self._book.cost, self._book.counted = self._cost(), out.counted
        if not has_ended:
            raise Cancelled(f"{stop.kind}") if stop.look() else late(seconds or 0)
        try:
            check_end(result_of(task), out)
        except ProviderTimeout as error:
            raise self._cut(error, called) from error

    def _cut(self, error: ProviderTimeout, called: CalledTurn) -> CarnetError:
        """What the end of who kept to the time that it was given is: the same as if it had not."""
        if error.facts.get("by") != BY_CALLER or called.deadline is None:
            return error
        if self._stop.look():
            return Cancelled(f"{self._stop.kind}")
        is_over = self._parts.steady() >= called.deadline
        return late(self._policy.seconds or 0) if is_over else error

    def _new_text(self) -> TurnText | None:
        """What was said since the last time, if somebody reads it as it comes."""
        text = self._out.take() if self._parts.streams else ""
        if not text:
            return None
        return TurnText(
            run_id=self._place.run_id,
            index=self._index,
            speaker=self._participant.name,
            turn_id=self._turn_id,
            attempt=self._book.record.attempts,
            text=text,
        )

    async def _forwards(self) -> bool:
        """Whether who pays for the run pays for this attempt."""
        auth = self._participant.auth
        if callable(auth):
            auth = await self._stop.ask(auth, self._book.state())
        if auth not in (FORWARD_USER, AGENT_OWNED):
            raise ValueError(f"auth is 'forward-user' or 'agent-owned', not {auth!r}")
        return auth == FORWARD_USER

    def _called(self, *, forwards: bool) -> CalledTurn:
        participant, book = self._participant, self._book
        state = book.state()
        messages = messages_for(participant.name, state.seed, state.transcript)
        return CalledTurn(
            index=self._index,
            speaker=participant.name,
            turn_id=self._turn_id,
            attempt=book.record.attempts,
            ask=Ask(messages=messages, stream=self._parts.streams),
            forwards=forwards,
            deadline=self._deadline(),
            at=self._began,
        )

    def _deadline(self) -> float | None:
        """When an attempt that begins now has to end."""
        ends = [self._place.deadline]
        if self._policy.seconds is not None:
            ends.append(self._parts.steady() + self._policy.seconds)
        return min([end for end in ends if end is not None], default=None)

    def _agent(self, target: ParticipantTarget) -> Agent:
        if isinstance(target, Conversation):
            return self._nest(target, self._participant.first_ordinal(target))
        return self._parts.callees.of(target, self._participant)

    def _output(self, target: ParticipantTarget) -> AttemptOutput:
        price = target.price if isinstance(target, ChatModelTarget) else None
        return AttemptOutput(
            price=price,
            currency=self._parts.currency,
            before=dict(self._book.record.counted),
            left=None if self._left is None else self._left - self._book.record.spent,
        )

    def _stopped(self) -> bool:
        """Whether the run stops here; then it says why."""
        kind = self._stop.look()
        if kind is not None:
            self.halt = Halt(kind=kind)
        return kind is not None

    # ------------------------------------------------------------------ what is told

    def _started(self, target: ParticipantTarget) -> TurnStarted | TurnRetried:
        record = self._book.record
        number = record.attempts + 1 if record.turn_id == self._turn_id else 1
        at = self._parts.clock.wall_us()
        if number == 1:
            return TurnStarted(
                run_id=self._place.run_id,
                index=self._index,
                speaker=self._participant.name,
                turn_id=self._turn_id,
                attempt=number,
                at=at,
            )
        reason = "the run goes on" if self._end is None else _of(self._end).safe_text
        return TurnRetried(
            run_id=self._place.run_id,
            index=self._index,
            speaker=self._participant.name,
            turn_id=self._turn_id,
            attempt=number,
            reason=reason,
            at=at,
            by=self._by(target),
        )

    def _ended(self, target: ParticipantTarget) -> TurnEnded:
        at, out = self._parts.clock.wall_us(), self._out
        turn = SpokenTurn(
            index=self._index,
            speaker=self._participant.name,
            turn_id=self._turn_id,
            text=out.text,
            attempts=self._book.record.attempts,
            started=self._began,
            ended=at,
            cost=self._cost(),
            tokens_in=out.tokens_in,
            tokens_out=out.tokens_out,
            by=self._by(target),
        )
        return TurnEnded(run_id=self._place.run_id, turn=turn, at=at)

    def _cost(self) -> int | None:
        """What an attempt has cost: what nobody says is, under a cap, the most it may be (R7)."""
        cost = self._out.cost
        return self._participant.most if cost is None else cost

    def _discarded(self, error: Exception) -> TurnDiscarded:
        known = _of(error)
        cost = 0 if never_left(known) else self._cost()
        return TurnDiscarded(
            run_id=self._place.run_id,
            index=self._index,
            speaker=self._participant.name,
            turn_id=self._turn_id,
            attempt=self._book.record.attempts,
            code=known.code,
            message=known.safe_text,
            detail=self._detail(error),
            cost=cost,
            counted=self._out.counted,
            at=self._parts.clock.wall_us(),
        )

    def _lost(self, started: TurnStarted | TurnRetried) -> TurnDiscarded:
        """The end of an attempt that died with its driver: nobody knows what it has cost.

        What a conversation has cost that takes part is in its own journal, and told by the next.
        """
        is_known = isinstance(self._target_of(started), Conversation)
        return TurnDiscarded(
            run_id=started.run_id,
            index=started.index,
            speaker=started.speaker,
            turn_id=started.turn_id,
            attempt=started.attempt,
            code=OutcomeUnknown.code,
            message=_LOST,
            cost=0 if is_known else None,
            at=self._parts.clock.wall_us(),
        )

    def _skipped(self, error: Exception) -> TurnSkipped:
        known = _of(error)
        return TurnSkipped(
            run_id=self._place.run_id,
            index=self._index,
            speaker=self._participant.name,
            turn_id=self._turn_id,
            attempts=self._book.record.attempts,
            code=known.code,
            message=known.safe_text,
            at=self._parts.clock.wall_us(),
        )

    def _failed(self, error: Exception) -> Halt:
        known = _of(error)
        return Halt(
            kind="participant_error",
            participant=self._participant.name,
            code=known.code,
            message=known.safe_text,
            detail=self._detail(error) or None,
        )

    def _detail(self, error: Exception) -> str:
        """What an error says itself, for whoever runs the driver: some of it, and no credential."""
        cause = error.__cause__
        if isinstance(cause, Exception):
            text = f"{type(cause).__name__}: {cause}"
        elif isinstance(error, CarnetError):
            text = error.detail
        else:
            text = f"{type(error).__name__}: {error}"
        credential = self._place.credential
        if credential is not None:
            text = text.replace(credential.reveal(), "***")
        return spelled(redact(text))[:MOST_DETAIL]

    def _target_of(self, started: TurnStarted | TurnRetried) -> object:
        """Whom an attempt called."""
        by = started.by if isinstance(started, TurnRetried) else None
        return self._participant.target if by is None else self._participant.on_failure

    def _by(self, target: ParticipantTarget) -> str | None:
        return None if target is self._participant.target else describe(target)


def _of(error: Exception) -> CarnetError:
    """An error in our words."""
    return error if isinstance(error, CarnetError) else ProviderError(type(error).__name__)
