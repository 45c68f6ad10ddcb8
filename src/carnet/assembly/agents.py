"""From `[agents]` and peers to targets: which parts answer for which name."""

from urllib.parse import urlsplit

from carnet.assembly.functions import load_function
from carnet.config import AgentSettings, SecretRef, Settings, resolve_secret
from carnet.core.address import Address, local_name
from carnet.core.carnet import DepthLimits
from carnet.core.money import MICROS
from carnet.core.secret import Secret
from carnet.errors import ConfigInvalid
from carnet.ports.admission import Dispatch
from carnet.ports.agent import Agent, Target
from carnet.ports.clock import Clock, Ids
from carnet.ports.door import Bounds, Door
from carnet.ports.trust import Peer, Peers
from carnet.runtime.breaker import Breaker, Breaking
from carnet.runtime.detached import Detached
from carnet.runtime.limited import Limited
from carnet.runtime.native import Native
from carnet.runtime.remote import Endpoint, Provider, Remote
from carnet.runtime.retrying import Retrying
from carnet.runtime.routing import Routing
from carnet.runtime.timed import Timed

PEER_RETRIES = 2  # safe toward a peer: the turn id makes a repeat the same call
PEER_SECONDS = 600.0
CHAT = "/chat/completions"


class Agents:
    """Builds targets."""

    def __init__(
        self,
        settings: Settings,
        *,
        door: Door,
        clock: Clock,
        ids: Ids,
        dispatch: Dispatch,
        depths: DepthLimits,
    ) -> None:
        """`dispatch` is what the agents call one another through."""
        self._settings = settings
        self._door = door
        self._clock = clock
        self._ids = ids
        self._dispatch = dispatch
        self._depths = depths
        self.breakers: dict[str, Breaker] = {}  # one an endpoint, shared by all who call it

    def circuits(self) -> list[dict[str, str | int]]:
        """The upstreams that are left alone at the moment."""
        return [
            {"upstream": endpoint, "state": breaker.state, "failures": breaker.failures}
            for endpoint, breaker in self.breakers.items()
            if breaker.state != "closed"
        ]

    def router(self, peers: Peers) -> Routing:
        """Everything that can be called."""
        agents = {name: self._target(name, agent) for name, agent in self._settings.agents.items()}
        return Routing(
            agents=agents, peers=peers, domain=self._settings.gateway.domain, reach=self._reach
        )

    def _target(self, name: str, agent: AgentSettings) -> Target:
        is_remote = agent.kind == "tangle"
        return Target(
            name=name,
            speaker=local_name(name),
            agent=self._answering(name, agent),
            credit=f"peer:{name}" if is_remote else f"agent:{name}",
            is_remote=is_remote,
            price=agent.full_price,
            most_cost=_most_cost(agent) if is_remote else 0,
            auth_source=agent.auth_source,
            seconds=agent.timeout,
            last_depth=None if agent.max_depth is None else agent.max_depth - 1,
            takes_credential=agent.may_forward_authorization,
            on_disconnect=agent.on_disconnect,
            default=name == self._settings.default_agent,
            kind=agent.kind,
            needs=f"call:{name}",
        )

    def _answering(self, name: str, agent: AgentSettings) -> Agent:
        if agent.kind == "python":
            answering: Agent = self._native(name, agent)
        elif agent.kind == "openai":
            answering = self._provider(name, agent)
        else:
            answering = self._tangle(name, agent)
        if agent.concurrency is not None:
            limits = self._settings.limits
            answering = Limited(
                answering,
                concurrency=agent.concurrency,
                queue=limits.queue,
                seconds=limits.queue_seconds,
            )
        return answering

    def _native(self, name: str, agent: AgentSettings) -> Agent:
        target = agent.target or ""
        function = load_function(target, self._settings.base, key=f"agents.{name}.target")
        native = Native(
            function,
            self._dispatch,
            last_depth=self._depths.tangle,
            auth_source=agent.auth_source,
        )
        return Timed(Detached(native), seconds=agent.timeout, clock=self._clock)

    def _refuse_own_address(self, name: str, agent: AgentSettings) -> None:
        """A model is not a hop: a gateway that is its own provider would call itself for ever."""
        gateway, parts = self._settings.gateway, urlsplit(agent.url or "")
        own = {gateway.host, "127.0.0.1", "localhost", urlsplit(gateway.public_url).hostname}
        if parts.port == gateway.port and parts.hostname in own:
            reason = "is this gateway itself; name the agent directly, or another provider"
            raise ConfigInvalid(key=f"agents.{name}.url", reason=reason)

    def _provider(self, name: str, agent: AgentSettings) -> Agent:
        self._refuse_own_address(name, agent)
        endpoint = self._endpoint(name, agent, self._secret(agent.api_key, f"{name}.api_key"))
        provider = Provider(self._door, endpoint, system_prompt=agent.system)
        return self._hardened(
            provider, agent.url or "", seconds=agent.timeout, retries=agent.retries
        )

    def _tangle(self, name: str, agent: AgentSettings) -> Agent:
        token = self._secret(agent.token or agent.api_key, f"{name}.token")
        remote = Remote(
            self._door,
            self._endpoint(name, agent, token),
            most_cost=_most_cost(agent),
            takes_credential=agent.may_forward_authorization,
            forwards=agent.auth_source,
        )
        return self._hardened(remote, agent.url or "", seconds=agent.timeout, retries=agent.retries)

    def _endpoint(self, name: str, agent: AgentSettings, token: Secret | None) -> Endpoint:
        return Endpoint(
            url=(agent.url or "").rstrip("/") + CHAT,
            model=agent.model or (name if agent.kind == "tangle" else local_name(name)),
            token=token,
            currency=self._settings.ledger.currency,
            bounds=_bounds(agent.timeout),
        )

    def _reach(self, peer: Peer, address: Address) -> Target:
        """The target for an agent of another organisation."""
        base = peer.url.rstrip("/")
        endpoint = Endpoint(
            url=f"{base}/agents/{address.local}/v1{CHAT}",
            model=address.local,
            token=peer.token,
            currency=self._settings.ledger.currency,
            bounds=_bounds(PEER_SECONDS),
        )
        remote = Remote(
            self._door, endpoint, most_cost=peer.most_cost, takes_credential=peer.may_forward
        )
        return Target(
            name=str(address),
            speaker=address.local,
            agent=self._hardened(remote, base, seconds=PEER_SECONDS, retries=PEER_RETRIES),
            credit=f"peer:{peer.domain}",
            is_remote=True,
            most_cost=peer.most_cost,
            takes_credential=peer.may_forward,
            seconds=PEER_SECONDS,
            kind="peer",
            needs="call:remote",
        )

    def _hardened(self, agent: Agent, endpoint: str, *, seconds: float, retries: int) -> Agent:
        """An agent elsewhere, timed, left alone when it keeps failing, and asked again if it may.

        A peer knows a turn that is sent twice; a model provider would answer and charge twice.
        """
        breaker = self.breakers.get(endpoint)
        if breaker is None:
            breaker = self.breakers[endpoint] = Breaker(clock=self._clock)
        hardened: Agent = Breaking(Timed(agent, seconds=seconds, clock=self._clock), breaker)
        if retries:
            hardened = Retrying(
                hardened,
                retries=retries,
                clock=self._clock,
                ids=self._ids,
                repeats_are_safe=not isinstance(agent, Provider),
            )
        return hardened

    def _secret(self, ref: SecretRef | None, key: str) -> Secret | None:
        return (
            None if ref is None else resolve_secret(ref, self._settings.base, key=f"agents.{key}")
        )


def _bounds(seconds: float) -> Bounds:
    return Bounds(total_seconds=seconds, first_byte_seconds=min(120.0, seconds))


def _most_cost(agent: AgentSettings) -> int:
    return MICROS if agent.max_cost is None else agent.max_cost
