"""From settings and an open store to an engine that can answer."""

from msgspec import Struct

from carnet.assembly.agents.loop import build_loop
from carnet.auth.middleware import Auth, BearerVerifier, LiveVerifier, TokenVerifier
from carnet.config import Settings
from carnet.engine.endpoint import EngineEndpoint, refuse
from carnet.guards.caller.failures import Failures
from carnet.http.cors import Application
from carnet.ports.engine.loop import Engine
from carnet.ports.world.clock import Clock, Ids
from carnet.ports.world.http_client import HttpClient
from carnet.stores.open import Store


class RunningEngine(Struct, frozen=True, kw_only=True, eq=False):
    """What answers requests, behind Auth, and what is stopped with it."""

    app: Application
    endpoint: EngineEndpoint


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
    if engine is None:
        engine = build_loop(settings, http, ids)
    endpoint = EngineEndpoint(engine, max_bytes=settings.limits.chat_body_bytes)
    verify = BearerVerifier(
        store.keys,
        clock,
        store.look_again,
        domain=settings.gateway.domain,
        others=TokenVerifier(store.tokens, store.people, clock, store.look_again),
    )
    auth = Auth(
        endpoint,
        LiveVerifier(verify, store.people, store.look_again),
        refusing=refuse,
        failures=Failures(settings.limits.auth_failures),
        clock=clock,
    )
    return RunningEngine(app=auth, endpoint=endpoint)
