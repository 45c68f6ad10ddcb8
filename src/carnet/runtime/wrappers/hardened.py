"""What stands between a caller and an agent that may be slow, busy, broken or away.

Law 1. There is one order, from the agent outwards: beside its caller, in time, behind a breaker,
       asked again, and only so many at once. Time counts for each attempt, a place for all of them.
Law 2. What calls must share (a breaker, the places) is in the policy and not in the wrappers, so
       that an agent can be hardened when a call is made as well as when a gateway is built.
"""

from msgspec import Struct

from carnet.core.call import Agent
from carnet.ports.world.clock import Clock, Ids
from carnet.runtime.wrappers.breaker import Breaker, Breaking
from carnet.runtime.wrappers.limited import Limited, Places
from carnet.runtime.wrappers.retrying import Retrying
from carnet.runtime.wrappers.timed import Detached, Timed


class Policy(Struct, frozen=True, kw_only=True, eq=False):
    """How an agent is hardened."""

    clock: Clock
    ids: Ids
    seconds: float  # the most one attempt may take
    is_detached: bool = False  # others wrote it: it may swallow a cancellation
    breaker: Breaker | None = None  # of the endpoint that it is reached at
    retries: int = 0
    places: Places | None = None  # None: it answers as many calls as come


def harden(agent: Agent, policy: Policy) -> Agent:
    """The agent within all that its policy asks for."""
    hardened = Detached(agent) if policy.is_detached else agent
    hardened = Timed(hardened, seconds=policy.seconds, clock=policy.clock)
    if policy.breaker is not None and not policy.retries:
        hardened = Breaking(hardened, policy.breaker)
    if policy.retries:
        hardened = Retrying(
            hardened,
            retries=policy.retries,
            clock=policy.clock,
            ids=policy.ids,
            breaker=policy.breaker,
        )
    return hardened if policy.places is None else Limited(hardened, policy.places)
