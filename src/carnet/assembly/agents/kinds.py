"""The kinds of agents that a configuration may name, one row each.

Law 1. What a kind needs, whether it is another organisation, and how it is built stand in its row
       and nowhere else. Whoever assembles a gateway may give other rows.
Law 2. A row builds the bare agent: what stands around it is `runtime.wrappers.hardened`'s to say.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from carnet.assembly.agents.dialogues import build_conversation
from carnet.assembly.agents.functions import load_agent
from carnet.assembly.agents.loop import build_loop
from carnet.assembly.agents.peers import Elsewhere, audience_of, bounds_of, oauth_client
from carnet.assembly.agents.tools import ToolServers
from carnet.config import AgentSettings, SecretRef, Settings, resolve_secret
from carnet.config.dialogue.orchestrator import LIST
from carnet.config.engine import read_system
from carnet.config.file import NEEDS
from carnet.core.call import Agent, Ask, Call
from carnet.core.messages.interrupt import Interrupt
from carnet.core.money.amount import MICROS
from carnet.core.people.address import identity_at, local_name
from carnet.core.people.identity import CHAT, Caller, Secret, Skill
from carnet.errors import ConfigInvalid
from carnet.ports.calls.admission import Dispatch
from carnet.ports.calls.steps import Progress, Steps
from carnet.ports.engine.loop import Engine, FindTokens
from carnet.ports.engine.model import LanguageModel
from carnet.ports.engine.tools import TurnTriggers
from carnet.ports.memory.memory import Memories
from carnet.ports.memory.past import TurnPast
from carnet.ports.trust.people import People
from carnet.ports.trust.policy import OperatorPolicy
from carnet.ports.trust.schemas import Schemas
from carnet.runtime.agents.agents_api_peer import AgentsApiEndpoint
from carnet.runtime.agents.engine import Belongings, EngineAgent
from carnet.runtime.agents.http_engine import EngineAddress, HttpEngine, OpenStreams
from carnet.runtime.agents.orchestrator import Orchestration
from carnet.runtime.agents.python import Native
from carnet.runtime.agents.remote import Provider, RemoteEndpoint
from carnet.runtime.dialogue.hosted.conversations import (
    ConversationAgent,
    HostedConversations,
    HostParts,
)
from carnet.runtime.peers.a2a.cards import card_site
from carnet.runtime.peers.a2a.client import A2aEndpoint
from carnet.runtime.peers.cards import Site
from carnet.runtime.peers.samvad_request import Recipient
from carnet.runtime.peers.signing import Stamping
from carnet.runtime.tools.memory import MemoryOfCalls
from carnet.runtime.visit.fan_out.questions import SurfacedQuestions
from carnet.runtime.visit.loop_visit import CallsOut
from carnet.runtime.visit.means import VisitMeans
from carnet.wire.dialects.agents_api.client import path_of
from carnet.wire.dialects.openai import COMPLETIONS, MODEL
from carnet.wire.dialects.openai.members import Passing
from carnet.wire.stamps import caller_context, mentionable

MENTIONS: Final = mentionable.STAMP.name  # whose limit chains over A2A have
CONTEXTS: Final = caller_context.STAMP.name  # and those over agents-api (R2)


class Parts(Struct, frozen=True, kw_only=True, eq=False):
    """What agents are built from."""

    settings: Settings
    elsewhere: Elsewhere  # the ways to agents of others
    dispatch: Dispatch  # what our own call one another through
    last_depth: int
    schemas: Schemas
    steps: Steps
    progress: Progress
    people: People | None = None  # whose names an agent loop is given
    triggers: Callable[[Caller], TurnTriggers | None] = lambda _: None  # theirs, for its tools
    memory: Memories | None = None  # what it keeps for them
    past: Callable[[Call], TurnPast | None] = lambda _: None  # what they have said before
    streams: OpenStreams  # of loops elsewhere, that are being asked
    models: Mapping[str, LanguageModel] = {}  # that our own may ask
    surface: SurfacedQuestions | None = None  # for what is asked while turns run
    policy: OperatorPolicy | None = None  # that is asked before a tool is used
    tokens: FindTokens | None = None  # what calls have left of theirs
    servers: ToolServers = field(default_factory=ToolServers)  # that agent loops use tools of

    def secret(self, ref: SecretRef | None, key: str) -> Secret | None:
        """A secret that the section of an agent points at."""
        if ref is None:
            return None
        return resolve_secret(ref, self.settings.base, key=f"agents.{key}")

    def system(self, name: str, agent: AgentSettings) -> str | None:
        """The system message of an agent."""
        key = f"agents.{name}.system_file"
        return read_system(agent.system, agent.system_file, self.settings.base, key=key)


class Built(Struct, frozen=True, kw_only=True, eq=False):
    """A bare agent, and what must be known of it to harden and to list it."""

    agent: Agent
    endpoint: str | None = None  # calls to the same one share a breaker
    is_detached: bool = False  # others wrote it
    skills: tuple[Skill, ...] = (CHAT,)  # empty: its own side is the judge
    converts: Callable[[str, dict[str, Any]], None] | None = None
    most_cost: int = 0  # that another organisation may charge for one call
    takes_budget: bool = False  # and is told, with the call
    removes: Callable[[Ask], tuple[str, ...]] | None = None  # names what of a request is left out
    abandon: Callable[[Sequence[Interrupt]], Awaitable[None]] | None = None  # see `Target`
    origin: Callable[[], tuple[str, bytes] | None] | None = None  # the same


class Kind(Struct, frozen=True, kw_only=True, eq=False):
    """One kind of agent."""

    build: Callable[[Parts, str, AgentSettings], Built]
    needs: tuple[str, ...] = ()  # the keys that its section must have
    is_remote: bool = False  # another organisation answers
    chain: str = "tangle"  # see `Target`


def _python(parts: Parts, name: str, agent: AgentSettings) -> Built:
    definition = load_agent(agent.target or "", parts.settings.base, key=f"agents.{name}.target")
    parts.schemas.compile(name, definition.skills)
    host = _host(parts, agent)
    native = Native(
        definition,
        parts.dispatch,
        last_depth=parts.last_depth,
        auth_source=agent.auth_source,
        schemas=parts.schemas,
        means=replace(host.means, converses=HostedConversations(host)),
    )
    return Built(
        agent=native, is_detached=True, skills=definition.skills, converts=definition.check
    )


def _conversation(parts: Parts, name: str, agent: AgentSettings) -> Built:
    conversation = build_conversation(parts.settings, name, agent)
    return Built(agent=ConversationAgent(conversation, _host(parts, agent)), is_detached=True)


def _orchestrator(parts: Parts, name: str, agent: AgentSettings) -> Built:
    """Several agents at once, which is a function like any other that calls them."""
    del name
    orchestration = Orchestration(
        agents=agent.agents,
        join=None if agent.join == LIST else agent.join,
        first=agent.first,
        timeout=agent.branch_timeout,
        on_failure="collect" if agent.on_failure == "collect" else "fail_fast",
    )
    native = Native(
        orchestration.__call__,
        parts.dispatch,
        last_depth=parts.last_depth,
        auth_source=agent.auth_source,
        schemas=parts.schemas,
        means=_host(parts, agent).means,
    )
    return Built(agent=native, is_detached=True)


def _host(parts: Parts, agent: AgentSettings) -> HostParts:
    """What the conversations of an agent are driven with."""
    client = parts.elsewhere.client
    return HostParts(
        calls=CallsOut(
            dispatch=parts.dispatch, last_depth=parts.last_depth, auth_source=agent.auth_source
        ),
        steps=parts.steps,
        clock=client.clock,
        ids=client.ids,
        http=client.http,
        currency=parts.settings.ledger.currency,
        means=VisitMeans(
            steps=parts.steps,
            progress=parts.progress,
            models=parts.models,
            surface=parts.surface,
            domain=parts.settings.gateway.domain,
            people=parts.people,
        ),
    )


def _openai(parts: Parts, name: str, agent: AgentSettings) -> Built:
    """A model. It may answer, and charge, twice for a call that is sent twice."""
    _refuse_own_address(parts.settings, name, agent)
    token = parts.secret(agent.api_key, f"{name}.api_key")
    endpoint = replace(_endpoint(parts, agent, token, local_name(name)), codec=MODEL)
    passing = Passing.of(agent.pass_members, system=not agent.has_system or agent.caller_system)
    prompt = parts.system(name, agent)
    provider = Provider(
        parts.elsewhere.client.http,
        endpoint,
        system_prompt=prompt,
        passing=passing,
        log_names=agent.log_names,
        cue_depth=parts.last_depth if agent.cues else None,
        by_payer=agent.authorization == "payer",
    )
    return Built(agent=provider, endpoint=agent.url, removes=passing.removed)


def _tangle(parts: Parts, name: str, agent: AgentSettings) -> Built:
    token = parts.secret(agent.token or agent.api_key, f"{name}.token")
    most_cost = MICROS if agent.max_cost is None else agent.max_cost
    remote = parts.elsewhere.tangle(
        _endpoint(parts, agent, token, name),
        most_cost=most_cost,
        stamping=_stamping(agent),
        peer=_peer_at(parts.settings, agent.url or ""),
        skilled=parts.elsewhere.skilled(
            agent.url or "", None, f'write kind = "samvad" in [agents.{name}]'
        ),
    )
    return Built(
        agent=remote,
        endpoint=agent.url,
        skills=(),
        most_cost=most_cost,
        takes_budget=remote.is_signed,
    )


def _samvad(parts: Parts, name: str, agent: AgentSettings) -> Built:
    url = (agent.url or "").rstrip("/")
    recipient = Recipient(
        site=Site(url),
        identities=frozenset({agent.identity} if agent.identity else ()),
        peer=_peer_at(parts.settings, url),
        form=agent.signature_form,
        bounds=bounds_of(agent.timeout),
    )
    most_cost = agent.max_cost or 0  # the dialect has no word for a price
    samvad = parts.elsewhere.samvad(
        recipient,
        skill=agent.skill,
        token=parts.secret(agent.token, f"{name}.token"),
        most_cost=most_cost,
        stamping=_stamping(agent),
    )
    return Built(agent=samvad, endpoint=url, skills=(), most_cost=most_cost)


def _a2a(parts: Parts, name: str, agent: AgentSettings) -> Built:
    url = agent.url or ""
    endpoint = A2aEndpoint(
        site=card_site(url),
        token=parts.secret(agent.token, f"{name}.token"),
        api_key=parts.secret(agent.api_key, f"{name}.api_key"),
        bounds=bounds_of(agent.timeout),
        peer=_peer_at(parts.settings, url),
        auth=agent.auth,
        audience=agent.audience or _audience_at(parts.settings, url),
    )
    cards = parts.elsewhere.cards
    cards.keep(endpoint.site)
    most_cost = agent.max_cost or 0  # the dialect has no word for a price
    a2a = parts.elsewhere.a2a(
        endpoint,
        skill=agent.skill,
        most_cost=most_cost,
        stamping=_stamping(agent),
        oauth=oauth_client(agent.oauth, lambda ref: parts.secret(ref, f"{name}.oauth")),
    )
    return Built(
        agent=a2a,
        endpoint=url.rstrip("/"),
        skills=(),
        most_cost=most_cost,
        abandon=a2a.abandon,
        origin=lambda: cards.body(endpoint.site),
    )


def _agents_api(parts: Parts, name: str, agent: AgentSettings) -> Built:
    url = (agent.url or "").rstrip("/")
    endpoint = AgentsApiEndpoint(
        url=url + path_of(agent.model or name),
        token=parts.secret(agent.token or agent.api_key, f"{name}.token"),
        bounds=bounds_of(agent.timeout),
        peer=_peer_at(parts.settings, url),
    )
    most_cost = agent.max_cost or 0  # the dialect has no word for a price
    peer = parts.elsewhere.agents_api(endpoint, most_cost=most_cost, stamping=_stamping(agent))
    return Built(agent=peer, endpoint=url, skills=(), most_cost=most_cost)


def _audience_at(settings: Settings, url: str) -> str | None:
    """By which an agent at a URL knows what is meant for it: its peer's name, or its host."""
    peer, (_, _, local) = _peer_at(settings, url), urlsplit(url).path.partition("/agents/")
    if peer is not None:
        return audience_of(peer, local.partition("/")[0])
    return identity_at(url)


def _engine(parts: Parts, name: str, agent: AgentSettings) -> Built:
    """The loop of the `[engine]` section: in this process, or where `carnet engine` listens."""
    settings, client = parts.settings, parts.elsewhere.client
    passing = Passing.of((), system=not agent.has_system or agent.caller_system)
    engine: Engine
    if settings.engine.is_in_process:
        engine = build_loop(settings, name, client.http, client.ids, parts.servers)
    else:
        address = EngineAddress(
            url=settings.engine.asked_at, domain=settings.gateway.domain, seconds=agent.timeout
        )
        engine = HttpEngine(
            client.http,
            address,
            client.signing,
            client.clock,
            ids=client.ids,
            streams=parts.streams,
        )
    answering = EngineAgent(
        engine,
        CallsOut(
            dispatch=parts.dispatch,
            last_depth=parts.last_depth,
            auth_source=agent.auth_source,
            policy=parts.policy,
            tokens=parts.tokens,
        ),
        name=name,
        system=parts.system(name, agent),
        passing=passing,
        steps=parts.steps,
        belongings=_belongings(parts, name),
        cues=agent.cues,
    )
    return Built(agent=answering, is_detached=True, removes=passing.removed)


def _belongings(parts: Parts, name: str) -> Belongings:
    """What people have here that an agent loop reaches."""
    found = Belongings(people=parts.people, triggers=parts.triggers, past=parts.past)
    if parts.memory is None:
        return found
    memory = MemoryOfCalls(parts.memory, name, parts.elsewhere.client.clock)
    return replace(found, memory=memory)


KINDS: Final[Mapping[str, Kind]] = {
    "python": Kind(build=_python, needs=NEEDS["python"]),
    "openai": Kind(build=_openai, needs=NEEDS["openai"]),
    "tangle": Kind(build=_tangle, needs=NEEDS["tangle"], is_remote=True),
    "samvad": Kind(build=_samvad, needs=NEEDS["samvad"], is_remote=True),
    "a2a": Kind(build=_a2a, needs=NEEDS["a2a"], is_remote=True, chain=MENTIONS),
    "agents_api": Kind(
        build=_agents_api, needs=NEEDS["agents_api"], is_remote=True, chain=CONTEXTS
    ),
    "engine": Kind(build=_engine, needs=NEEDS["engine"]),
    "conversation": Kind(build=_conversation, needs=NEEDS["conversation"]),
    "orchestrator": Kind(build=_orchestrator, needs=NEEDS["orchestrator"]),
}


def _stamping(agent: AgentSettings) -> Stamping:
    return Stamping(
        takes_credential=agent.may_forward_authorization,
        forwards=agent.auth_source,
        log_names=agent.log_names,
    )


def _endpoint(
    parts: Parts, agent: AgentSettings, token: Secret | None, model: str
) -> RemoteEndpoint:
    return RemoteEndpoint(
        url=(agent.url or "").rstrip("/") + COMPLETIONS,
        model=agent.model or model,
        token=token,
        currency=parts.settings.ledger.currency,
        bounds=bounds_of(agent.timeout),
    )


def _refuse_own_address(settings: Settings, name: str, agent: AgentSettings) -> None:
    """A model is not a hop: a gateway that is its own provider would call itself for ever."""
    gateway, parts = settings.gateway, urlsplit(agent.url or "")
    own = {gateway.host, "127.0.0.1", "localhost", urlsplit(gateway.public_url).hostname}
    if parts.port == gateway.port and parts.hostname in own:
        reason = "is this gateway itself; name the agent directly, or another provider"
        raise ConfigInvalid(key=f"agents.{name}.url", reason=reason)


def _peer_at(settings: Settings, url: str) -> str | None:
    """The domain of the peer whose gateway this is, by what the configuration says of peers."""
    origin = urlsplit(url)[:2]
    peers = settings.peers.items()
    return next((name for name, peer in peers if urlsplit(peer.url)[:2] == origin), None)
