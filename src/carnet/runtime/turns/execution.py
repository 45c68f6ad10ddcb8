"""A turn while it runs, and how it is told to stop.

Here is also how it ends, what it has used, and how it goes on after it has waited.

Law. Whatever an agent does or raises, its turn has one end. What it raised beyond our own errors is
in the log, under an incident that the caller is told.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

import msgspec

from carnet.core.call import Call
from carnet.core.chain.turn import Turn
from carnet.core.chain.turn_id import is_unscoped
from carnet.core.messages.events import (
    STATES,
    UNKNOWN_COST,
    End,
    Event,
    Extension,
    Failed,
    Usage,
    Waiting,
)
from carnet.core.messages.interrupt import Interrupt
from carnet.core.messages.outbound_call import OutboundCall
from carnet.core.messages.output import Output
from carnet.core.people.proof import SECOND_US
from carnet.errors import (
    AgentFailed,
    AgentNotFound,
    CarnetError,
    Internal,
    OutcomeUnknown,
    TooManyQuestions,
)
from carnet.ports.calls.admission import CameBack
from carnet.ports.calls.agent import Target
from carnet.ports.calls.turns import Fenced, Turns
from carnet.ports.world.clock import Ids
from carnet.runtime.turns.broadcast import Broadcast
from carnet.runtime.turns.recording import Recording
from carnet.wire.grammar.times import when

MOST_RETURNS: Final = 16  # calls that came back to us, that one turn notes
MOST_WAITS: Final = 100  # times that one turn waits for answers
# Answers what a call asks for, where there are rules; as what it runs on then.
ByRule = Callable[[Call, Sequence[Interrupt]], Awaitable[Call | None]]

STOP_SECONDS = 5.0  # how long a cancelled turn may take to be recorded


class Execution:
    """A turn that is running. It can be stopped while its agent speaks, not in its recording."""

    __slots__ = (
        *("_on_left", "broadcast", "call", "end", "fence", "is_task", "leaving", "let_go"),
        *("listening", "record", "recording", "returns", "revoked", "stopped", "task"),
    )

    task: asyncio.Task[None]

    def __init__(self, call: Call, on_left: "Callable[[Execution], None] | None") -> None:
        """The task is set when it has been made; `on_left` is told when nobody reads it."""
        self.broadcast = Broadcast(self._left)
        self.call = call
        self.record = call.record
        self.fence = call.record.fence
        self.is_task = call.task is not None and not call.at_once
        self._on_left = on_left
        self.let_go = False  # it is to wait again rather than to fail
        self.end: End | None = None  # once it is recorded
        self.listening = False
        self.stopped = False
        self.revoked = False  # it may not end otherwise than cancelled
        self.leaving: asyncio.Task[None] | None = None  # while it has no reader here
        self.recording: Recording | None = None  # once it runs
        self.returns = 0  # calls that came back to us out of it, and are noted

    def _left(self) -> None:
        if self._on_left is not None:
            self._on_left(self)

    def has_made(self, returned: CameBack) -> bool:
        """Whether it is the call to a peer that this one was made in, by that same peer."""
        call, target = self.call, self.call.target
        sent = call.onward or call.carnet
        is_it = (sent.run, sent.turn) == (returned.run, returned.parent_turn)
        return is_it and target.is_remote and target.credit == f"peer:{returned.peer}"

    def is_above(self, child: Turn) -> bool:
        """Whether a call was made in it, in process."""
        return (child.run, child.parent_turn) == (self.record.run, self.record.turn)

    def note(self, returned: CameBack) -> None:
        """Record a call that came back to us and was refused; a few of them."""
        if self.recording is None or self.returns >= MOST_RETURNS:
            return
        self.returns += 1
        refused = OutboundCall(
            ordinal=0,
            child_turn=returned.turn,
            to=returned.to,
            depth=returned.depth,
            state="refused",
            code=returned.code,
        )
        self.recording.called(refused)

    def stop(self) -> None:
        """Cancel the agent, or keep it from being started."""
        if not self.stopped:
            self.stopped = True
            if self.listening:
                self.task.cancel()


async def stop_all(executions: Sequence[Execution]) -> None:
    """Stop them, and wait a moment for them to be recorded."""
    for running in executions:
        running.stop()
    if executions:
        await asyncio.wait([running.task for running in executions], timeout=STOP_SECONDS)


def note_waits(executions: Iterable[Execution], call: Call) -> None:
    """Note that a call waits: with the turn that it was made in, in process, and its budget."""
    for running in executions:
        if running.recording is not None and running.is_above(call.record):
            running.recording.has_below = True
    if call.allowance is not None:
        call.allowance.counted |= {call.record.key}


def waits_or_fails(
    waiting: Waiting, record: Turn, ids: Ids, now: int, currency: str
) -> Waiting | Failed:
    """How a turn ends that asks: with a secret for each that it asks for itself.

    It fails where it was answered as often as it may: the fence is raised by each answer, and by
    each attempt.
    """
    if record.fence - record.attempt >= MOST_WAITS:
        return Failed.of(TooManyQuestions(limit=MOST_WAITS))
    return Waiting(
        tuple(
            [
                each if each.state else _asked(each, ids, now, currency)
                for each in waiting.interrupts
            ]
        )
    )


def _asked(asked: Interrupt, ids: Ids, now: int, currency: str) -> Interrupt:
    until = asked.expires_at
    if asked.lasts is not None:
        until = when(now + int(asked.lasts * SECOND_US))
    return msgspec.structs.replace(
        asked,
        state=ids.token(),
        currency=None if asked.amount is None else currency,
        expires_at=until,
        lasts=None,
    )


async def ask_rules(
    by_rule: ByRule, turns: Turns, call: Call, record: Turn, end: Waiting
) -> tuple[Call | None, Waiting]:
    """As what a call runs on, where all that it asks for was answered; and what it still asks."""
    try:
        onward = await by_rule(call, end.interrupts)
        if onward is None and end.interrupts[1:]:
            end = await still_asked(turns, record, end)
    except CarnetError:
        logger.exception("no rule is asked", extra=log_fields(call, "", ""))
        return None, end
    return onward, end


async def still_asked(turns: Turns, record: Turn, end: Waiting) -> Waiting:
    """The end of a turn that waits, with those alone that nobody has answered."""
    asked = await turns.interrupts(record)
    return Waiting(tuple([o.interrupt for o in asked if o.status == "open"]) or end.interrupts)


def absent(agent: str) -> Target:
    """What stands for an agent that is not there any more."""

    async def silent(_: Call, __: Output, /) -> Failed:
        return Failed.of(AgentNotFound())

    return Target(name=agent, speaker=agent, agent=silent, credit=f"agent:{agent}")


logger = logging.getLogger("carnet.runtime")


async def listen(
    call: Call, recording: Recording, ids: Ids, cancelled: Callable[[], Failed]
) -> End:
    """Have the agent of a call speak into its recording, and give its end.

    `cancelled` gives that of an agent that was told to stop.
    """
    inner = call if call.onward is None else msgspec.structs.replace(call, carnet=call.onward)
    try:
        end = await call.target.agent(inner, recording)
        if type(end) not in STATES:
            raise TypeError(f"an agent ends with Done, Failed or Waiting, not {end!r}")  # noqa: TRY301  # here it ends the turn
    except asyncio.CancelledError:
        # The end must still be recorded: the task was told to stop, not to forget.
        task = asyncio.current_task()
        if task is None or not task.cancelling():
            return Failed.of(AgentFailed("a cancellation that nobody asked for"))
        task.uncancel()
        broken = recording.broken
        return cancelled() if broken is None else _failed(call, broken, ids)
    except Exception as error:  # noqa: BLE001  whatever an agent raises must end its turn
        if isinstance(error, CarnetError):
            recording.words = error.words
        return _failed(call, error, ids)
    return end


def _failed(call: Call, error: Exception, ids: Ids) -> Failed:
    if isinstance(error, Fenced):
        return Failed.of(OutcomeUnknown(str(error)))
    if isinstance(error, CarnetError):
        logger.info("call failed", extra=log_fields(call, error.code, str(error)))
        return Failed.of(error)
    internal = Internal(str(error), incident=ids.uuid())
    fields = {**log_fields(call, internal.code, str(error)), **internal.facts}
    logger.error("agent raised", exc_info=error, extra=fields)
    return Failed.of(internal)


def usage_of(call: Call, record: Turn, events: Sequence[Event], currency: str) -> Usage:
    """What a turn has used and cost, as its caller is told."""
    # A forwarded credential of our own issue is billed by us; the forwarder owes nothing.
    ours = call.payer.by_forwarding and call.payer.own_issue and not call.is_child
    unknown = False
    for event in events:  # a generator would cost a call an event
        if type(event) is Extension and event.name == UNKNOWN_COST:
            unknown = True
    return Usage(
        record.tokens_in,
        record.tokens_out,
        0 if ours else None if unknown else record.cost,
        0 if ours else None if unknown else record.run_cost,
        currency,
    )


def log_fields(call: Call, code: str, detail: str) -> dict[str, object]:
    """What a line of the log says of a call."""
    carnet = call.carnet
    return {
        "run": carnet.run,
        "turn": carnet.turn,
        "agent": call.agent,
        "code": code,
        "detail": detail,
    }


def as_before(call: Call, names: Sequence[str]) -> Call:
    """The same call that its first attempt was: its calls out have the ids that they had.

    Of its budget the tokens are used that it used then.
    Who repeats a call names the run, of which we may have been the first to say the name.
    """
    carnet, onward = call.carnet, call.onward
    if call.allowance is not None:
        used = (call.record.tokens_in or 0) + (call.record.tokens_out or 0)
        call.allowance.ran_before(call.record.key, used)
    if not any(is_unscoped(carnet.run, name) for name in names if name != call.record.turn):
        return call
    carnet = msgspec.structs.replace(carnet, run_is_ours=True)
    if onward is not None:
        turn = carnet.child_turn(0, onward.speaker or "", call.record.key)
        onward = msgspec.structs.replace(onward, turn=turn, parent_turn=None)
    return msgspec.structs.replace(call, carnet=carnet, onward=onward)
