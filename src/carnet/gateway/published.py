"""What the agents of a gateway say about themselves, for every dialect that asks."""

from collections.abc import Callable
from urllib.parse import quote, urlsplit

from msgspec import Struct

from carnet.core.people.address import Identities
from carnet.core.people.identity import CHAT
from carnet.errors import AgentNotFound
from carnet.http.exchange import Exchange
from carnet.ports.calls.agent import Router, Target
from carnet.ports.trust.keys import OwnKeys
from carnet.ports.world.clock import Clock
from carnet.wire.dialects.dialect import AgentKey, AgentView, Terms, most_cost


class Capacity(Struct, frozen=True, kw_only=True, eq=False):
    """What may be asked of us in a minute, and how much there is to do now."""

    agent_calls: int  # of all senders to one agent
    sender_calls: int  # of one sender
    open_calls: Callable[[], int] = int
    waiting_tasks: Callable[[], int] = int
    currency: str = "credits"
    max_depth: int = 4  # the first that is refused
    body_bytes: int = 0  # of a signed request


class Published:
    """Finds agents by the paths and hosts of requests, and tells about them."""

    def __init__(
        self,
        *,
        router: Router,
        identities: Identities,
        keys: OwnKeys,
        clock: Clock,
        domain: str,
        public_url: str,
        capacity: Capacity,
    ) -> None:
        """`public_url` is where others reach us; it may be known only when the server listens."""
        self._router = router
        self._identities = identities
        self._keys = keys
        self._clock = clock
        self._domain = domain
        self.public_url = public_url
        self._capacity = capacity
        self.started = clock.monotonic()

    def named(self, exchange: Exchange) -> str:
        """The agent that the host of a request names; empty for the default one."""
        host = (exchange.headers.get("host") or "").lower().partition(":")[0]
        return self._identities.name(host) or ""

    def recipient(self, exchange: Exchange, agent: str | None) -> str | None:
        """The identity of an agent that a request came to; None at a host that is not ours.

        What is signed for a host is meant for us if it is one by which we are known.
        """
        authority = (exchange.headers.get("host") or "").lower()
        host = authority.partition(":")[0]
        name = self._identities.name(host)
        own = urlsplit(self.public_url).netloc.lower()
        if name is None and host != self._domain and authority != own:
            return None
        return self._identities.of(agent if agent is not None else name or "")

    def local(self) -> list[Target]:
        """The agents that are served here."""
        return list(self._router.local())

    def view(self, name: str) -> AgentView:
        """An agent as a dialect shows it."""
        target, identity = self._known(name)
        return AgentView(
            id=identity,
            name=target.name,
            version=target.version,
            description=target.description or f"The agent {target.name} of {self._domain}.",
            url=self.url(target),
            skills=target.skills or (CHAT,),
            keys=tuple(
                [
                    AgentKey(key.kid, key.public, key.state != "revoked")
                    for key in self._keys.published(self._clock.wall_us())
                ]
            ),
            trust=target.trust,
            require_auth=target.require_auth,
            requests_per_minute=self._capacity.agent_calls,
            requests_per_sender=self._capacity.sender_calls,
            tokens_per_sender_per_day=target.tokens_per_day,
            uptime=int(self._clock.monotonic() - self.started),
            active=self._capacity.open_calls(),
            queued=self._capacity.waiting_tasks(),
            terms=self.terms(target),
        )

    def terms(self, target: Target) -> Terms:
        """What callers may know of an agent before they call."""
        capacity, depth = self._capacity, self._capacity.max_depth
        return Terms(
            currency=capacity.currency,
            price=target.price,
            most_cost=most_cost(target),
            max_depth=depth if target.last_depth is None else min(depth, target.last_depth + 1),
            calls_per_minute=capacity.sender_calls,
            body_bytes=capacity.body_bytes,
        )

    def terms_of(self, name: str) -> Terms | None:
        """Those of an agent that has a card; None for the default one where there is none."""
        if name:
            return self.terms(self._known(name)[0])
        try:
            return self.terms(self.target(""))
        except AgentNotFound:
            return None

    def _known(self, name: str) -> tuple[Target, str]:
        """An agent that is known to others, and its identity."""
        target = self.target(name)
        identity = self._identities.of(target.name)
        if identity is None:
            raise AgentNotFound
        return target, identity

    def target(self, name: str) -> Target:
        """The agent of ours that is called so; the default one for an empty name."""
        return self._router.own(name)

    def url(self, target: Target) -> str:
        """What stands before the paths of an agent of ours."""
        base = self.public_url.rstrip("/")
        return base if target.default else f"{base}/agents/{quote(target.name, safe='')}"
