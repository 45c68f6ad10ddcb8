"""What makes a task of a claim: one that runs later, or one that is answered at once."""

import msgspec

from carnet.core.call import CallbackWish, Claim
from carnet.core.chain.turn import Turn
from carnet.core.messages.interrupt import StatedResolution, grant_of, hash_state
from carnet.core.people.identity import Token
from carnet.core.sealed_call import Later
from carnet.errors import CarnetError, RunAlreadyStarted, RunOwnerForbidden
from carnet.guards.candidate import Candidate
from carnet.guards.limits import counted_as
from carnet.ports.calls.tasks import ListedTask, Tasks
from carnet.ports.calls.turns import TASKS, Answer
from carnet.ports.world.clock import Ids


def make_later(candidate: Candidate, ids: Ids) -> Later:
    """What makes a task of a claim.

    The sender is the identity that signed, or whoever's token it is.
    """
    claim, sender, target = candidate.claim, candidate.caller.actor.name, candidate.target
    # Addresses at a peer cost nothing to make up: they are counted together.
    agent = target.credit if target.is_remote else target.name
    counted = sender
    if claim.proof is not None:
        sender, counted = claim.proof.principal, counted_as(candidate)
    return Later(
        id=ids.uuid(),
        sender=sender,
        quota=f"{TASKS}{agent}/{counted}",
        callback=_wish(claim),
    )


def make_listed(candidate: Candidate, context: str, ids: Ids) -> ListedTask:
    """What lists a call among the tasks of its sender that is answered at once."""
    claim, sender = candidate.claim, candidate.caller.actor.name
    if claim.proof is not None:
        sender = claim.proof.principal
    return ListedTask(
        id=ids.ordered_uuid(),
        sender=sender,
        skill=claim.ask.skill,
        context=context,
        callback=None if claim.callback is None else _wish(claim),
    )


def _wish(claim: Claim) -> CallbackWish | None:
    if claim.callback is None:
        return None
    return claim.wish or CallbackWish(url=claim.callback)


async def refuse_repeat(tasks: Tasks | None, turn: Turn, context: str | None) -> CarnetError:
    """Why a call is refused that may be made once and was: in its own context, or in another."""
    found = None if tasks is None else await tasks.of_turn(turn.n)
    is_other = found is not None and found.context != context
    return RunOwnerForbidden() if is_other else RunAlreadyStarted()


def answer_of(brought: StatedResolution, token: Token | None = None) -> Answer:
    """What a request brings to a turn that waits, as the store compares and keeps it.

    `token` is the one it came with: whoever holds it is kept as who answers.
    """
    resolution = brought.resolution
    holder = None if token is None else token.holder
    value = None if resolution.value is None else msgspec.json.encode(resolution.value)
    return Answer(
        state_hash=hash_state(brought.state),
        outcome=resolution.outcome,
        resolver=resolution.resolver or holder,
        value=value,
        grant=grant_of(resolution.value),
    )
