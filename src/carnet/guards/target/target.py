"""Whom is the call for, and may this caller reach it?

Where in its chain does it stand? Which skill is asked for, in a way that it can be asked, and with
a payload of its shape? May this gateway be made to call back to an address? May the call leave for
another organisation?

Law 1. The permission asked for is the target's, held by the caller; the gateway's own rights are
       never used. What a signed caller may do follows from the trust it has earned
       (`guards.caller.trust`).
Law 2. Every stamp counts: the deepest depth and the lowest limit hold, and contradictions are
       refused. Malformed stamps never get here; the dialect refused them as it read them.
Law 3. An agent elsewhere whose skills we do not know is asked unjudged: it judges for itself.
Law 4. The payload is the last thing judged before the transaction: nobody who may not call learns
       from a schema what is wrong with it.
Law 5. Of a task everything that can be wrong with its payload is told before it is accepted, also
       what no schema says: a text that is no date.
Law 6. A callback is judged for senders that are proved and may call, and before anything is
       claimed: an address that we would not dial registers nothing. It is judged again at each
       attempt to deliver.
Law 7. Whether it may leave is answered before any I/O: a chain with no hop left is refused, and a
       credential that would have to be forwarded to a peer that is not listed stops the call. It is
       never sent without the credential, because then the wrong party would pay.
Law 8. A key by which its caller tells repeats names the turn, unless a stamp does.
"""

import difflib
from collections.abc import Awaitable, Sequence
from typing import Final, Protocol

import msgspec

from carnet.core.call import Ask, Claim
from carnet.core.chain.carnet import Carnet, DepthLimits, Mark, Position, check_depth, merge
from carnet.core.chain.turn_id import key_id
from carnet.core.people.address import handle_of
from carnet.core.people.identity import (
    CHAT,
    Caller,
    Context,
    Mode,
    Secret,
    Skill,
    StatedContext,
)
from carnet.errors import (
    CallbackForbidden,
    CarnetError,
    PaymentRefused,
    PeerNotListed,
    PermissionMissing,
    SchemaInvalid,
    SkillNotFound,
)
from carnet.guards.candidate import Candidate
from carnet.guards.context import LAST_DEPTH, Hosts, spend_depth
from carnet.ports.calls.admission import CameBack
from carnet.ports.calls.agent import Router, Target
from carnet.ports.trust.callers import NO_CALLERS, CallerHosts
from carnet.ports.trust.schemas import Schemas

CALLER_CONTEXT: Final = "caller_context"  # the stamp whose root is believed of verified hosts alone


class WithinChain:
    """Refuses a call that arrived deeper than its chain may go."""  # tangle:depth:refuse

    def __init__(self, callers: CallerHosts = NO_CALLERS, default: int = LAST_DEPTH) -> None:
        """`callers` are the hosts that are listed; `default` is the last depth without stamps."""
        self._hosts = Hosts(callers)
        self._default = default

    def __call__(self, candidate: Candidate, /) -> None:
        """Find out where it stands, and what its caller says of itself."""
        claim = candidate.claim
        stated, marks = claim.context, claim.marks
        if stated is not None:
            self._judge(candidate, stated)
        if marks:  # else it stands at the top
            position = merge(marks)
            if stated is not None and candidate.context is not None:
                position = _rooted(position, candidate.context, marks)
            candidate.position = position
            check_depth(position)
        token, key = candidate.shown, claim.key
        if token is not None and token.chain_depth is not None:
            spend_depth(candidate, token.chain_depth, "token", self._default)
        if key is not None and candidate.position.turn is None:
            proof = claim.proof  # it was proved before; who that is to us is not known yet
            name = key_id(candidate.caller.actor.name if proof is None else proof.principal, key)
            position = candidate.position
            candidate.position = msgspec.structs.replace(
                position, run=position.run or name, turn=f"{name}.t0"
            )

    def _judge(self, candidate: Candidate, stated: StatedContext) -> None:
        proof, now = candidate.claim.proof, candidate.now
        candidate.context, candidate.host = self._hosts.judge(stated, proof, now)
        if proof is None:  # of one that is signed the caller is known later
            caller = candidate.caller
            candidate.caller = msgspec.structs.replace(caller, context=candidate.context)


def _rooted(position: Position, context: Context, marks: Sequence[Mark]) -> Position:
    """A position without a root that is only claimed: it has been compared, and joins no run (R34).

    What another stamp names stays, and so does the run of a task that the call goes on with.
    """
    if context.verified:
        return position
    believed = [mark for mark in marks if mark.is_recorded or mark.stamp != CALLER_CONTEXT]
    runs = [mark.run for mark in believed if mark.run is not None]
    return msgspec.structs.replace(position, run=runs[0] if runs else None)


def came_back(candidate: Candidate, refusal: CarnetError) -> CameBack | None:
    """What there is to note of a refused call that may be one of ours, come back; None if not.

    Whoever is refused for its chain is known by then: a guard before has proved who it is.
    """
    position, peer, shown = candidate.position, candidate.peer, candidate.shown
    domain = peer.domain if peer is not None else None if shown is None else shown.peer
    if domain is None or position.run is None or position.parent_turn is None:
        return None
    return CameBack(
        run=position.run,
        parent_turn=position.parent_turn,
        turn=position.turn or "",
        depth=position.depth,
        peer=domain,
        to=candidate.claim.agent,
        code=refusal.code,
    )


def names_parent(claim: Claim) -> bool:
    """Whether a stamp that counts depth names the parent turn."""
    for mark in claim.marks:  # noqa: SIM110  `any` would be a call for each mark
        if mark.parent_turn is not None and mark.counts:
            return True
    return False


def permit(caller: Caller, target: Target) -> None:
    """Refuse a caller that may not call this target."""
    if not caller.may(target.needs):
        raise PermissionMissing(permission=target.needs)


class KnownAgent:
    """Refuses a claim for an agent that is not there."""

    def __init__(self, router: Router, default: int = LAST_DEPTH) -> None:
        """`router` finds the target of a name; `default` is the last depth without stamps."""
        self._router = router
        self._default = default

    def __call__(self, candidate: Candidate, /) -> None:
        """Prove the target; its own depth limit may be lower than the gateway's."""
        target = self._router.find(candidate.claim.agent)
        candidate.target = target
        if target.chain_depth is not None:
            spend_depth(candidate, target.chain_depth, "agent", self._default)
        position = candidate.position
        if target.last_depth is None or position.last_depth is None:
            return
        lowest = min(target.last_depth, position.last_depth)
        candidate.position = msgspec.structs.replace(position, last_depth=lowest)
        check_depth(candidate.position)


def permitted(candidate: Candidate, /) -> None:
    """Refuse a caller without the target's permission."""
    needs, caller = candidate.target.needs, candidate.caller
    if not caller.may(needs) or (
        caller.agent is not None and caller.agent != candidate.target.name
    ):
        raise PermissionMissing(permission=needs)


def find_skill(target: Target, ask: Ask) -> Skill | None:
    """The skill that is asked for; None where the target's skills are not known.

    Who just talks asks for `chat`, which an agent with skills need not have.
    """
    wanted = CHAT.id if ask.skill is None else ask.skill
    for skill in target.skills:
        if skill.id == wanted:
            return skill
    if not target.skills:
        return None
    names = [skill.id for skill in target.skills]
    near = names if ask.skill is None else difflib.get_close_matches(wanted, names, n=1)
    raise SkillNotFound(suggestion=near[0] if near else "")


def known_skill(candidate: Candidate, /) -> None:
    """Refuse a skill that the agent has not, or a mode that the skill has not."""
    ask = candidate.claim.ask
    skill = candidate.skill = find_skill(candidate.target, ask)
    if skill is not None and ask.skill is not None and _mode(candidate.claim) not in skill.modes:
        modes = ", ".join(skill.modes)
        task = "; it cannot be a task" if candidate.claim.is_task else ""
        raise SchemaInvalid("mode", f"must be one of the skill's: {modes}{task}")


def _mode(claim: Claim) -> Mode:
    if claim.is_task:
        return "async"
    return "stream" if claim.ask.stream else "sync"


class WellFormed:
    """Refuses a payload that the schema of the skill does not take."""

    def __init__(self, schemas: Schemas) -> None:
        """`schemas` were compiled when the gateway started."""
        self._schemas = schemas

    def __call__(self, candidate: Candidate, /) -> None:
        """Check what goes into the skill."""
        skill, payload = candidate.skill, candidate.claim.ask.payload
        if skill is None or payload is None:
            return
        self._schemas.check_input(candidate.target.name, skill, payload)
        converts = candidate.target.converts
        if candidate.claim.is_task and converts is not None:  # a call learns it from the function
            converts(skill.id, payload)


class CallbackCheck(Protocol):
    """Checks the addresses of callbacks."""

    async def check(self, url: str, sender: str, /) -> None:
        """Raise CallbackForbidden, or return."""


class CalledBack:
    """Refuses a callback to where no peer may make us call."""

    def __init__(self, callbacks: CallbackCheck | None) -> None:
        """`callbacks` checks addresses; without it no callback is accepted."""
        self._callbacks = callbacks

    def __call__(self, candidate: Candidate, /) -> Awaitable[None] | None:
        """Judge the callback, where one is named."""
        url = candidate.claim.callback
        if url is None:
            return None
        if self._callbacks is None:
            raise CallbackForbidden(reason="nothing is delivered from here")
        proof = candidate.claim.proof
        sender = candidate.caller.actor.name if proof is None else proof.sender
        return self._callbacks.check(url, sender)


def check_credential(target: Target, credential: Secret | None) -> None:
    """Refuse to forward a credential to a peer that is not listed for it; or to ask without one."""
    if credential is None and target.needs_credential:  # R30
        raise PaymentRefused(reason="absent")
    if target.is_remote and credential is not None and not target.takes_credential:  # R5
        raise PeerNotListed


def onward_carnet(
    carnet: Carnet, target: Target, domain: str, *, key: bytes, depths: DepthLimits
) -> Carnet | None:
    """The carnet that a callee elsewhere receives; None for an agent of ours.

    `key` is that of the record. An agent that is elsewhere but has a name of ours
    has passed the call on, as far as loops go.
    """
    if not target.is_remote:
        return None
    via, limits = handle_of(target.name, domain), depths.by_stamp
    return carnet.next_hop(
        index=0,
        speaker=target.speaker,
        key=key,
        default=limits.get(target.chain, depths.default),  # not by `of`: every call that leaves
        stamp=target.chain,
        via=via,
    )
