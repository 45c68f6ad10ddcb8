"""A message that goes on with a task: the answer to what the task waits for.

Law 1. The task is the caller's own, of this agent, and waits; else nothing is taken.
Law 2. The call is made again as it was recorded, with the answer beside it: every guard judges it
       anew, and an answer is used once. The record says which call it is: who has told its chain in
       headers does not have to tell it again.
Law 3. Who resolves by a state need not name the task. A state that is unknown, used, or of somebody
       else's task is refused in the same bytes: who has it by chance learns nothing.
Law 4. Who repeats an answer that was used is told what came of it, where its dialect knows answers
       by the names of what they answer.
Law 5. What was asked stays within its bounds: it does not go on from a place below the one where it
       began, and an answer can lower what it may spend, never raise it: of a budget that was told
       with the first message, what was agreed to be paid since is beside it, as in the document.
"""

from typing import Protocol, TypeGuard

from msgspec.structs import replace

from carnet.core.call import Claim
from carnet.core.chain.carnet import Mark
from carnet.core.chain.turn import Turn
from carnet.core.messages.interrupt import (
    Answered,
    InterruptRecord,
    StatedResolution,
    agreed,
    hash_state,
)
from carnet.core.people.delegation import narrower
from carnet.core.people.proof import Spending
from carnet.errors import (
    ChainMismatch,
    Internal,
    InvalidRequest,
    OperationUnsupported,
    PolicyStateInvalid,
)
from carnet.gateway.own_tasks.asker import Asker, Askers
from carnet.ports.calls.tasks import StoredTask, Tasks
from carnet.ports.calls.turns import Turns
from carnet.wire.dialects.dialect import Arrival, Dialect

_REASONS = {
    "done": "it has ended",
    "failed": "it has ended",
    "unknown": "it has ended",
    "running": "it is being worked on, and asks for nothing",
    "queued": "it has not begun, and asks for nothing",
}


_OVER = frozenset({"failed", "unknown"})  # what would run again if it were sent again


class GoesOn(Dialect, Protocol):
    """A dialect in which a message can go on with a task."""

    def reread(self, request: bytes, arrival: Arrival, /) -> Claim:
        """The claim that a recorded request made."""

    def answer_of(self, claim: Claim, asked: tuple[InterruptRecord, ...], /) -> StatedResolution:
        """What a message answers of all that a task waits for; InvalidRequest if it is nothing."""

    def is_answered(self, claim: Claim, asked: tuple[InterruptRecord, ...], /) -> bool:
        """Whether a message repeats what a task was answered: then it is told what came of it."""


def is_going_on(dialect: Dialect) -> TypeGuard[GoesOn]:
    """Whether messages of a dialect can go on with tasks."""
    return any(way.kind == "any" for way in dialect.ways)


class Continuations:
    """Makes of a message the call that it goes on with."""

    def __init__(self, dialect: GoesOn, askers: Askers, tasks: Tasks, turns: Turns) -> None:
        """`tasks` keeps what was asked, `turns` what is waited for."""
        self._dialect = dialect
        self._askers = askers
        self._tasks = tasks
        self._turns = turns

    async def claim(self, claim: Claim, asker: Asker, arrival: Arrival) -> Claim:
        """The call of the task, with what the message answers."""
        task = await self._found(claim, asker)
        _check_context(claim, task)
        _check_chain(claim, task.turn)
        kept = tuple(await self._turns.interrupts(task.turn))
        resolution = None
        if not self._dialect.is_answered(claim, kept):
            resolution = self._dialect.answer_of(claim, _open(task.turn, kept, claim))
        again = self._dialect.reread(await self._tasks.request(task.turn), arrival)
        if again.ask.context != task.context:
            raise Internal("what was recorded of a task is of another context")
        reply, asked_first = claim.ask.form or {}, again.ask.form or {}
        form = {
            **asked_first,
            **reply,
            "message": asked_first.get("message"),
            "reply": reply.get("message"),
        }
        return replace(
            claim,
            agent=task.turn.agent,
            ask=replace(again.ask, stream=claim.ask.stream, form=form),
            digest=again.digest,
            request=again.request,
            marks=(_place_of(task.turn),),
            key=None,
            is_task=False,
            exactly_once=again.exactly_once and task.turn.state in _OVER,
            resolution=resolution,
            budget=narrower(_announced(again.budget, claim, kept, resolution), claim.budget),
        )

    async def _found(self, claim: Claim, asker: Asker) -> StoredTask:
        """The task that a message goes on with: by its id, or by the state of what it answers."""
        if claim.continues is not None or claim.resumes is None:
            return await self._askers.find(claim.continues or "", claim.agent, asker)
        found = await self._askers.waiting_for(
            hash_state(claim.resumes.reveal()), claim.agent, asker
        )
        if len(found) != 1:  # none of theirs, or who has asked uses one state for several
            raise PolicyStateInvalid
        return found[0]


def _open(
    turn: Turn, kept: tuple[InterruptRecord, ...], claim: Claim
) -> tuple[InterruptRecord, ...]:
    """What a turn waits for still, and a message answers."""
    is_waiting = turn.state == "waiting"
    asked = tuple([one for one in kept if one.status == "open"]) if is_waiting else ()
    if not asked and claim.resumes is not None:
        raise PolicyStateInvalid
    if not is_waiting:
        raise OperationUnsupported(reason=_REASONS[turn.state])
    if not asked:
        raise OperationUnsupported(reason="what it asked for was answered, or is over")
    return asked


def _place_of(turn: Turn) -> Mark:
    """Where a turn stands, whatever its caller said of it when it began."""
    return Mark(
        stamp=turn.bound_by or "task",
        depth=turn.depth,
        last_depth=turn.last_depth,
        run=turn.run,
        turn=turn.turn,
        parent_turn=turn.parent_turn,
        speaker=turn.speaker,
        is_recorded=True,
    )


def _announced(
    budget: Spending | None,
    claim: Claim,
    kept: tuple[InterruptRecord, ...],
    resolution: StatedResolution | None,
) -> Spending | None:
    """The budget of the first message, with room for what was agreed to be paid since.

    A turn that came with a document has that taken from its budget when it runs on.
    """
    is_documented = claim.proof is not None and claim.proof.document is not None
    if budget is None or budget.money is None or not is_documented:
        return budget
    answers = [one.answered for one in kept if one.outcome]
    if resolution is not None:
        asked = [one.interrupt for one in kept if one.interrupt.state == resolution.state]
        answers += [Answered(each, resolution.resolution) for each in asked[:1]]
    return replace(budget, money=budget.money + agreed(answers))


def _check_chain(claim: Claim, turn: Turn) -> None:
    """Refuse a message out of another run, or of a chain that is deeper than the task."""
    if any(mark.run not in {None, turn.run} for mark in claim.marks):
        raise ChainMismatch("the task is known here in another run")
    if any(mark.depth is not None and mark.depth > turn.depth for mark in claim.marks):
        raise ChainMismatch("the task is known here at a smaller depth")


def _check_context(claim: Claim, task: StoredTask) -> None:
    """Refuse a message that names another context than its task is of."""
    message = (claim.ask.form or {}).get("message") or {}
    named = message.get("contextId") or message.get("context_id")
    if named is not None and named != task.context:
        raise InvalidRequest("message.contextId", "is not the context of the task")
