"""From `[agents]` and peers to targets: which parts answer for which name."""

from urllib.parse import urlsplit

from carnet.assembly.functions import load_agent
from carnet.config import AgentSettings, SecretRef, Settings, resolve_secret
from carnet.core.address import AGENT, local_name
from carnet.core.carnet import DepthLimits
from carnet.core.money import MICROS
from carnet.core.secret import Secret
from carnet.core.skill import CHAT, Skill
from carnet.errors import ConfigInvalid
from carnet.ports.admission import Dispatch
from carnet.ports.agent import Agent, Target
from carnet.ports.clock import Clock, Ids
from carnet.ports.door import Bounds, Door
from carnet.ports.schemas import Schemas
from carnet.ports.steps import Progress, Steps
from carnet.ports.trust import Peer, Peers
from carnet.runtime.breaker import Breaker, Breaking
from carnet.runtime.cards import Cards, Place
from carnet.runtime.detached import Detached
from carnet.runtime.errand import Errands, Recipient, identities_of
from carnet.runtime.limited import Limited
from carnet.runtime.native import Native
from carnet.runtime.proving import Verifying
from carnet.runtime.remote import Endpoint, Lane, Provider, Remote, Skilled
from carnet.runtime.retrying import Retrying
from carnet.runtime.routing import Routing
from carnet.runtime.samvad import Samvad
from carnet.runtime.signing import Signing
from carnet.runtime.skills import Definition
from carnet.runtime.stamps import Stamping
from carnet.runtime.timed import Timed

PEER_RETRIES = 2  # safe toward a peer: the turn id makes a repeat the same call
PEER_SECONDS = 600.0
COMPLETIONS = "/chat/completions"
REMOTE_KINDS = frozenset({"tangle", "samvad"})  # other organisations


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
        signing: Signing,
        verifying: Verifying,
        schemas: Schemas,
        steps: Steps,
        progress: Progress,
    ) -> None:
        """`dispatch` is what the agents call one another through.

        `signing` and `verifying` are for peers that know us by our key instead of a token; `steps`
        and `progress` are for our own functions.
        """
        self._settings = settings
        self._door = door
        self._clock = clock
        self._ids = ids
        self._dispatch = dispatch
        self._depths = depths
        self._signing = signing
        self._verifying = verifying
        self._schemas = schemas
        self._steps = steps
        self._progress = progress
        self._cards = Cards(door, clock)
        self._definitions: dict[str, Definition] = {}
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

    async def close(self) -> None:
        """End what is being fetched for them."""
        await self._cards.close()

    def _target(self, name: str, agent: AgentSettings) -> Target:
        is_remote = agent.kind in REMOTE_KINDS
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
            skills=self._skills(name, agent),
            trust=agent.trust,
            reentry=agent.reentry,
            converts=self._definition(name, agent).check if agent.kind == "python" else None,
            injection_scan=agent.injection_scan,
            version=agent.version,
            description=agent.description or "",
            at_once=agent.concurrency,
            tokens_per_day=agent.tokens_per_sender_per_day
            or self._settings.limits.sender_tokens_per_day,
        )

    def _skills(self, name: str, agent: AgentSettings) -> tuple[Skill, ...]:
        """What can be asked for by name. Of an agent elsewhere its own side is the judge."""
        if agent.kind in REMOTE_KINDS:
            return ()
        if agent.kind != "python":
            return (CHAT,)
        skills = self._definition(name, agent).skills
        self._schemas.compile(name, skills)
        return skills

    def _definition(self, name: str, agent: AgentSettings) -> Definition:
        if name not in self._definitions:
            key = f"agents.{name}.target"
            self._definitions[name] = load_agent(agent.target or "", self._settings.base, key=key)
        return self._definitions[name]

    def _answering(self, name: str, agent: AgentSettings) -> Agent:
        if agent.kind == "python":
            answering: Agent = self._native(name, agent)
        elif agent.kind == "openai":
            answering = self._provider(name, agent)
        elif agent.kind == "samvad":
            answering = self._samvad(name, agent)
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
        native = Native(
            self._definition(name, agent),
            self._dispatch,
            last_depth=self._depths.tangle,
            auth_source=agent.auth_source,
            schemas=self._schemas,
            steps=self._steps,
            progress=self._progress,
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
            stamping=_stamping(agent),
            lane=self._lane(self._peer_at(agent.url or "")) if token is None else None,
            skilled=self._skilled(
                agent.url or "", None, f'write kind = "samvad" in [agents.{name}]'
            ),
        )
        return self._hardened(remote, agent.url or "", seconds=agent.timeout, retries=agent.retries)

    def _endpoint(self, name: str, agent: AgentSettings, token: Secret | None) -> Endpoint:
        return Endpoint(
            url=(agent.url or "").rstrip("/") + COMPLETIONS,
            model=agent.model or (name if agent.kind == "tangle" else local_name(name)),
            token=token,
            currency=self._settings.ledger.currency,
            bounds=_bounds(agent.timeout),
        )

    def _samvad(self, name: str, agent: AgentSettings) -> Agent:
        url = (agent.url or "").rstrip("/")
        recipient = Recipient(
            place=Place(url),
            identities=frozenset({agent.identity} if agent.identity else ()),
            peer=self._peer_at(url),
            form=agent.signature_form,
            bounds=_bounds(agent.timeout),
        )
        samvad = Samvad(
            self._errands(recipient),
            skill=agent.skill,
            token=self._secret(agent.token, f"{name}.token"),
            most_cost=_most_cost(agent),
            currency=self._settings.ledger.currency,
            stamping=_stamping(agent),
        )
        return self._hardened(samvad, url, seconds=agent.timeout, retries=agent.retries)

    def _errands(self, recipient: Recipient) -> Errands:
        return Errands(
            self._door,
            recipient,
            cards=self._cards,
            signing=self._signing,
            verifying=self._verifying,
            sender=f"{AGENT}{self._settings.gateway.domain}",
            clock=self._clock,
            ids=self._ids,
        )

    def _reach(self, peer: Peer, local: str, name: str) -> Target:
        """The target for an agent of another organisation; its default one has no local name."""
        speaks_samvad = peer.dialect == "samvad"
        agent = self._samvad_of(peer, local) if speaks_samvad else self._tangle_of(peer, local)
        return Target(
            name=name,
            speaker=local or peer.domain.partition(".")[0],
            agent=self._hardened(
                agent, peer.url.rstrip("/"), seconds=PEER_SECONDS, retries=PEER_RETRIES
            ),
            credit=f"peer:{peer.domain}",
            is_remote=True,
            most_cost=peer.most_cost,
            takes_credential=peer.may_forward,
            seconds=PEER_SECONDS,
            kind="peer",
            needs="call:remote",
            skills=(),  # its own side is the judge
        )

    def _tangle_of(self, peer: Peer, local: str) -> Remote:
        base = peer.url.rstrip("/")
        endpoint = Endpoint(
            url=f"{base}/agents/{local}/v1{COMPLETIONS}" if local else f"{base}/v1{COMPLETIONS}",
            model=local or f"{AGENT}{peer.domain}",
            token=peer.token,
            currency=self._settings.ledger.currency,
            bounds=_bounds(PEER_SECONDS),
        )
        return Remote(
            self._door,
            endpoint,
            most_cost=peer.most_cost,
            stamping=Stamping(takes_credential=peer.may_forward),
            lane=self._lane(peer.domain) if peer.token is None else None,
            skilled=self._skilled(
                peer.url, peer.domain, f"carnet peers add {peer.domain} --dialect samvad"
            ),
        )

    def _skilled(self, url: str, domain: str | None, way: str) -> Skilled:
        """Whether the gateway behind a URL is a Carnet, by what it shows of itself."""
        home = Place(url.partition("/agents/")[0].rstrip("/").removesuffix("/v1"))
        return Skilled(lambda: self._cards.is_carnet(home, domain), way)

    def _lane(self, domain: str | None) -> Lane | None:
        """How we are known to a peer that has given us no token."""
        return None if domain is None else Lane(self._signing, self._verifying, domain)

    def _peer_at(self, url: str) -> str | None:
        """The domain of the peer whose gateway this is, by what the configuration says of peers."""
        origin = urlsplit(url)[:2]
        peers = self._settings.peers.items()
        return next((name for name, peer in peers if urlsplit(peer.url)[:2] == origin), None)

    def _samvad_of(self, peer: Peer, local: str) -> Samvad:
        base = peer.url.rstrip("/")
        recipient = Recipient(
            place=Place(f"{base}/agents/{local}" if local else base),
            identities=identities_of(peer.domain, local),
            peer=peer.domain,
            form=peer.signature_form,
            bounds=_bounds(PEER_SECONDS),
        )
        return Samvad(
            self._errands(recipient),
            token=peer.token,
            most_cost=peer.most_cost,
            currency=self._settings.ledger.currency,
            stamping=Stamping(takes_credential=peer.may_forward),
        )

    def _hardened(self, agent: Agent, endpoint: str, *, seconds: float, retries: int) -> Agent:
        """An agent elsewhere, timed, left alone when it keeps failing, and asked again if it may.

        A Tangle peer knows a turn that is sent twice; a model provider, or an agent of an SDK,
        would answer and charge twice.
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
                repeats_are_safe=isinstance(agent, Remote),
            )
        return hardened

    def _secret(self, ref: SecretRef | None, key: str) -> Secret | None:
        return (
            None if ref is None else resolve_secret(ref, self._settings.base, key=f"agents.{key}")
        )


def _bounds(seconds: float) -> Bounds:
    return Bounds(total_seconds=seconds, first_byte_seconds=min(120.0, seconds))


def _stamping(agent: AgentSettings) -> Stamping:
    return Stamping(takes_credential=agent.may_forward_authorization, forwards=agent.auth_source)


def _most_cost(agent: AgentSettings) -> int:
    if agent.max_cost is None:
        return 0 if agent.kind == "samvad" else MICROS  # SAMVAD has no word for a price
    return agent.max_cost
