"""From `[agents]` and peers to targets: which parts answer for which name."""

from collections.abc import Mapping

from carnet.assembly.agents.breakers import Breakers
from carnet.assembly.agents.kinds import CONTEXTS, KINDS, MENTIONS, Built, Kind, Parts
from carnet.config import AgentSettings
from carnet.config.sources import all_of
from carnet.core.call import Target
from carnet.core.people.address import Address, local_name
from carnet.errors import ConfigInvalid
from carnet.gateway.partners.directory import KnownCard, SectionElsewhere
from carnet.ports.trust.trust import Peer, Peers
from carnet.runtime.agents.a2a_peer import A2aPeer
from carnet.runtime.agents.agents_api_peer import AgentsApiPeer
from carnet.runtime.agents.remote import Remote
from carnet.runtime.agents.stranger import StrangerAgent
from carnet.runtime.visit.fan_out.questions import ByRule
from carnet.runtime.visit.routing import Routing
from carnet.runtime.wrappers.hardened import Policy, harden
from carnet.runtime.wrappers.limited import Places
from carnet.wire.dialects import samvad
from carnet.wire.dialects.a2a.card import A2aCard

PEER_RETRIES = 2
PEER_SECONDS = 600.0

# The stamp whose limit a chain has that begins with a call to such a peer; else Tangle's.
_CHAINS: dict[type, str] = {A2aPeer: MENTIONS, AgentsApiPeer: CONTEXTS}


class Agents:
    """Builds targets."""

    def __init__(
        self, parts: Parts, kinds: Mapping[str, Kind] = KINDS, breakers: Breakers | None = None
    ) -> None:
        """`kinds` are those that sections may name; `breakers` know how upstreams did so far."""
        self._parts = parts
        self._kinds = kinds
        self._elsewhere = parts.elsewhere
        self._client = parts.elsewhere.client
        self.signing = self._client.signing  # as whom we sign
        self.breakers = breakers or Breakers(self._client.clock)

    def router(self, peers: Peers) -> Routing:
        """Everything that can be called; all agents that cannot be built are refused at once."""
        settings = self._parts.settings
        agents: dict[str, Target] = {}
        wrong: list[ConfigInvalid] = []
        for name, agent in settings.agents.items():
            try:
                agents[name] = self._target(name, agent)
            except ConfigInvalid as error:
                wrong.append(error)
        if wrong:
            raise all_of(wrong)
        return Routing(
            agents=agents,
            peers=peers,
            domain=settings.gateway.domain,
            reach=self._reach,
            meet=self._meet if settings.gateway.strangers else None,
        )

    def known_cards(self) -> list[KnownCard]:
        """What agents elsewhere publish of themselves, as far as we have read it."""
        cards: list[tuple[str, str, samvad.Card | A2aCard]] = [
            *(("SAMVAD", site.url, card) for site, card in self._client.cards.known()),
            *(("A2A", site.url, card) for site, card in self._elsewhere.cards.known()),
        ]
        return [
            KnownCard(
                url=url,
                dialect=dialect,
                name=card.name,
                description=card.description,
                skills=tuple(skill.id for skill in card.skills),
            )
            for dialect, url, card in cards
        ]

    def sections_elsewhere(self) -> list[SectionElsewhere]:
        """The sections of the configuration that name agents of others."""
        return [
            SectionElsewhere(name=name, dialect=agent.kind, url=agent.url or "")
            for name, agent in self._parts.settings.agents.items()
            if self._kinds[agent.kind].is_remote
        ]

    def answer_by(self, by_rule: ByRule) -> None:
        """Have what is asked while turns run answered by the rules that there are."""
        if self._parts.surface is not None:
            self._parts.surface.by_rule = by_rule

    async def close(self) -> None:
        """End what is being fetched for them, and the servers that they use tools of."""
        await self._parts.servers.close()
        await self._elsewhere.close()

    def _target(self, name: str, agent: AgentSettings) -> Target:
        settings, kind = self._parts.settings, self._kinds[agent.kind]
        built = kind.build(self._parts, name, agent)
        return Target(
            name=name,
            speaker=local_name(name),
            agent=harden(built.agent, self._policy(built, agent)),
            credit=f"peer:{name}" if kind.is_remote else f"agent:{name}",
            is_remote=kind.is_remote,
            chain=kind.chain,
            price=agent.full_price,
            most_cost=built.most_cost,
            takes_budget=built.takes_budget,
            auth_source=agent.auth_source,
            seconds=agent.timeout,
            last_depth=None if agent.max_depth is None else agent.max_depth - 1,
            chain_depth=agent.chain_depth,
            asks=agent.on_budget == "ask",
            takes_credential=agent.may_forward_authorization,
            needs_credential=agent.authorization == "payer",
            on_disconnect=agent.on_disconnect,
            default=name == settings.default_agent,
            kind=agent.kind,
            needs=f"call:{name}",
            skills=built.skills,
            trust=agent.trust,
            require_auth=agent.require_auth,
            delegation_freshness=agent.delegation_freshness,
            reentry=agent.reentry,
            allow=agent.allow,
            converts=built.converts,
            injection_scan=agent.injection_scan,
            version=agent.version,
            description=agent.description or "",
            at_once=agent.concurrency,
            tokens_per_day=agent.tokens_per_sender_per_day or settings.limits.sender_tokens_per_day,
            removes=built.removes,
            abandon=built.abandon,
            origin=built.origin,
        )

    def _policy(self, built: Built, agent: AgentSettings) -> Policy:
        limits, places = self._parts.settings.limits, None
        if agent.concurrency is not None:
            places = Places(agent.concurrency, queue=limits.queue, seconds=limits.queue_seconds)
        return Policy(
            clock=self._client.clock,
            ids=self._client.ids,
            seconds=agent.timeout,
            is_detached=built.is_detached,
            breaker=self.breakers.of(built.endpoint),
            retries=0 if built.endpoint is None else agent.retries,
            places=places,
        )

    def _meet(self, address: Address) -> Target:
        """The target for an agent of an organisation that is no peer (R42)."""
        meeting = self._elsewhere.meeting
        policy = Policy(clock=self._client.clock, ids=self._client.ids, seconds=PEER_SECONDS)
        return Target(
            name=str(address),
            speaker=address.local,
            agent=harden(StrangerAgent(address, meeting), policy),
            credit=f"peer:{address.domain}",
            is_remote=True,
            chain=MENTIONS,
            most_cost=meeting.price_limit,
            seconds=PEER_SECONDS,
            kind="stranger",
            needs="call:remote",
            skills=(),
        )

    def _reach(self, peer: Peer, local: str, name: str) -> Target:
        """The target for an agent of another organisation; its default one has no local name."""
        agent = self._elsewhere.of_peer(peer, local, PEER_SECONDS)
        policy = Policy(
            clock=self._client.clock,
            ids=self._client.ids,
            seconds=PEER_SECONDS,
            breaker=self.breakers.of(peer.url.rstrip("/")),
            retries=min(PEER_RETRIES, self._parts.settings.limits.retries),
        )
        return Target(
            name=name,
            speaker=local or peer.domain.partition(".")[0],
            agent=harden(agent, policy),
            credit=f"peer:{peer.domain}",
            is_remote=True,
            chain=_CHAINS.get(type(agent), "tangle"),
            most_cost=peer.most_cost,
            takes_budget=isinstance(agent, Remote) and agent.is_signed,
            offer=self._elsewhere.offer_of(peer, local) if peer.most_cost else None,
            takes_credential=peer.may_forward,
            seconds=PEER_SECONDS,
            kind="peer",
            needs="call:remote",
            skills=(),  # its own side is the judge
            abandon=agent.abandon if isinstance(agent, A2aPeer) else None,
        )
