"""From settings and an open store to an engine that can answer."""

from msgspec import Struct

from carnet.assembly.agents.loop import ENGINE, build_loops
from carnet.assembly.agents.tools import ToolServers
from carnet.assembly.engine.policies import ToolPolicies
from carnet.auth.middleware import (
    Auth,
    BearerVerifier,
    LiveVerifier,
    SessionVerifier,
    TokenVerifier,
)
from carnet.config import Settings
from carnet.config.settings import local_url
from carnet.engine.endpoint import EngineEndpoint, OfTurns, refuse
from carnet.guards.caller.failures import Failures
from carnet.guards.caller.session import SignedIn, session_cookie
from carnet.guards.caller.turn_bearer import TurnBearers
from carnet.http.cors import Application
from carnet.ports.engine.loop import Engine
from carnet.ports.world.clock import Clock, Ids
from carnet.ports.world.http_client import HttpClient
from carnet.runtime.tools.bearer.calls import BearerCalls
from carnet.runtime.tools.bearer.memory import BearerMemory, BearerPast
from carnet.runtime.tools.bearer.tokens import BearerTokens
from carnet.runtime.tools.bearer.triggers import bearer_triggers
from carnet.runtime.tools.memory import MemoryOfActors
from carnet.stores.open import Store


class RunningEngine(Struct, frozen=True, kw_only=True, eq=False):
    """What answers requests, behind Auth, and what is stopped with it."""

    app: Application
    endpoint: EngineEndpoint
    servers: ToolServers
    policy: ToolPolicies


def build_engine(
    settings: Settings,
    store: Store,
    http: HttpClient,
    clock: Clock,
    ids: Ids,
    *,
    engine: Engine | None = None,
) -> RunningEngine:
    """The loop of the configuration, or the one that is given in its place, behind Auth."""
    servers = ToolServers()
    if engine is None:
        engine = build_loops(settings, http, ids, servers, seal=store.word_seal)
    at = local_url(settings.gateway.host, settings.gateway.port)
    policy = ToolPolicies(settings, store.people, http, at)
    endpoint = EngineEndpoint(
        engine,
        max_bytes=settings.limits.chat_body_bytes,
        of_turns=OfTurns(
            calls=lambda bearer: BearerCalls(http, at, bearer),
            memory=lambda bearer: BearerMemory(http, at, bearer),
            past=lambda bearer: BearerPast(http, at, bearer),
            triggers=lambda bearer: bearer_triggers(http, at, bearer),
            tokens=lambda bearer: BearerTokens(http, at, bearer),
        ),
        own_memory=_own_memory(settings, store, clock),
        policy=policy.find,
    )
    verify = BearerVerifier(
        TurnBearers(store.keys, clock, store.look_again, domain=settings.gateway.domain),
        others=TokenVerifier(store.tokens, store.people, clock, store.look_again),
    )
    live = LiveVerifier(verify, store.people, store.look_again)
    signed_in = SignedIn(store.sessions, session_cookie(settings.gateway.public_url), clock)
    auth = Auth(
        endpoint,
        live,
        sessions=SessionVerifier(signed_in, store.tokens, live),
        refusing=refuse,
        failures=Failures(settings.limits.auth_failures),
        clock=clock,
    )
    return RunningEngine(app=auth, endpoint=endpoint, servers=servers, policy=policy)


def _own_memory(settings: Settings, store: Store, clock: Clock) -> MemoryOfActors | None:
    """The memory of who asks directly: at the default agent, or the only one of a loop."""
    names = [name for name, agent in settings.agents.items() if agent.kind == ENGINE]
    named = [name for name in names if name == settings.default_agent] or names
    if len(named) != 1:
        return None
    return MemoryOfActors(store.memory, store.people, named[0], clock)
