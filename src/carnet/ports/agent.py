"""What answers a call.

Law. An Agent is any callable from a Call to an asynchronous stream of Events that ends in exactly
one terminal event or raises; whatever journals, retries or times an Agent is an Agent.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Sequence
from typing import Any, Final, Protocol

from msgspec import Struct

from carnet.core.call import Call
from carnet.core.events import Event
from carnet.core.money import Price
from carnet.core.skill import CHAT, Skill, Trust

FORWARD_USER: Final = "forward-user"  # the person behind the run pays for the calls it makes
AGENT_OWNED: Final = "agent-owned"  # the agent itself does


class Agent(Protocol):
    """Answers a call with events."""

    def __call__(self, call: Call, /) -> AsyncIterator[Event]:
        """Start answering."""
        ...


class Journal(Protocol):
    """An Agent that records what it says, and can say it again.

    `batches` gives the same events in the groups they were committed in: what a reader sees was
    durable before. The last batch holds one Usage and the terminal event.
    """

    def __call__(self, call: Call, /) -> AsyncIterator[Event]:
        """One event at a time, for callers in process."""
        ...

    def batches(
        self, call: Call, /, heartbeat: float | None = None
    ) -> AsyncGenerator[Sequence[Event], None]:
        """Committed groups of events, for the gateway; an empty one after a silence."""
        ...

    async def whole(self, call: Call, /) -> Sequence[Event]:
        """The same events when all of them are there."""
        ...

    async def cancel(self, turns: Collection[int]) -> int:
        """Cancel those of these turns that are running here; how many were told."""
        ...


class Target(Struct, frozen=True, kw_only=True, eq=False):
    """Where a name leads: a local agent, or an agent of another organisation."""

    name: str  # the stored name: "echo", or "@critic@globex.example"
    speaker: str  # the local name of the called agent
    agent: Agent
    credit: str  # the ledger account that is credited: "agent:echo", "peer:globex.example"
    is_remote: bool = False  # calls to it get the next hop's papers
    last_depth: int | None = None  # lower than the gateway's, for this agent alone
    price: Price = Price()
    most_cost: int = 0  # the most another organisation may charge for one call
    auth_source: str = FORWARD_USER  # who pays for the calls it makes; or agent-owned, per-call
    takes_credential: bool = False  # listed: a forwarded credential may leave to it
    on_disconnect: str = "cancel"  # cancel | finish
    seconds: float | None = None  # how long one call may take, retries and waiting included
    default: bool = False
    kind: str = "python"
    needs: str = ""  # the permission a caller must hold
    skills: tuple[Skill, ...] = (CHAT,)  # what it can be asked for by name
    trust: Trust = "authenticated"  # which signed callers may call it, where a skill does not say
    reentry: bool = False  # may be called again within its own chain
    version: str = "1.0.0"  # its own, as its card shows it; never that of this program
    description: str = ""  # for its card; by default its name and domain
    converts: Callable[[str, dict[str, Any]], None] | None = None  # refuses what does not
    injection_scan: bool = True  # payloads for it are searched for phrases that take over models
    at_once: int | None = None  # calls that it answers at once; None is as many as come
    tokens_per_day: int | None = None  # that one signed sender may use; None is unbounded

    @property
    def may_cost(self) -> bool:
        """Whether somebody may have to pay for a call."""
        return not self.price.is_free or (self.is_remote and self.most_cost > 0)


class Router(Protocol):
    """Finds the target of a name or address."""

    def find(self, name: str) -> Target:
        """The target, or AgentNotFound, PeerUnknown or AddressInvalid."""
        ...

    def local(self) -> Sequence[Target]:
        """The agents served here, in the order of the configuration."""
        ...
