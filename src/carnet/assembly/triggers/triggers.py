"""From settings and an open store to what begins conversations while their owners are away."""

from carnet.assembly.endpoints import Backend, build_relay, front_policy
from carnet.config import Limits, Settings
from carnet.gateway.conversations.claims import ThreadClaims
from carnet.gateway.triggers.hooks import HookNoun
from carnet.gateway.triggers.own_triggers import OwnTriggers, TriggerBounds, TriggerParts
from carnet.gateway.triggers.pages import HOOKS, SCHEDULES, SECRETS, SecretPages, TriggerPages
from carnet.gateway.triggers.receiver import ROUTES as RECEIVER
from carnet.gateway.triggers.receiver import HookReceiver
from carnet.gateway.triggers.schedules import ScheduleNoun
from carnet.gateway.triggers.starter import ConversationStarter
from carnet.http.exchange import Row, offered
from carnet.ports.calls.triggers import Starter
from carnet.ports.world.clock import Clock, Ids
from carnet.runtime.triggers.zones import find_zone
from carnet.stores.open import Store
from carnet.wire.stamps.stamp import Stamps


def build_triggers(
    settings: Settings, store: Store, backend: Backend, clock: Clock, ids: Ids
) -> list[Row]:
    """What people make of their hooks and schedules, and what is sent to hooks."""
    limits, kept = settings.limits, store.triggers
    parts = TriggerParts(
        schedules=kept.schedules,
        hooks=kept.hooks,
        firings=kept.firings,
        people=store.people,
        router=backend.router,
        find_zone=find_zone,
        clock=clock,
        ids=ids,
        bounds=_bounds(limits),
        public_url=settings.gateway.public_url.rstrip("/"),
        wake=backend.scheduler.wake,
        ends=backend.scheduler.ends,
        rest=backend.scheduler.rest,
    )
    receiver = HookReceiver(parts, max_bytes=limits.hook_body_bytes)
    noun = HookNoun(parts)
    schedules, hooks = OwnTriggers(parts, ScheduleNoun(parts)), OwnTriggers(parts, noun)
    backend.triggers.take(schedules, hooks)
    # Those with a word come first: what is no word there is a secret.
    return [
        *offered(SCHEDULES, TriggerPages(schedules)),
        *offered(HOOKS, TriggerPages(hooks)),
        *offered(SECRETS, SecretPages(hooks, noun)),
        *offered(RECEIVER, receiver),
    ]


def build_starter(
    settings: Settings, store: Store, backend: Backend, stamps: Stamps, clock: Clock, ids: Ids
) -> Starter:
    """What has agents answer what schedules and hooks say."""
    kept, policy = store.conversations, front_policy(settings)
    return ConversationStarter(
        kept,
        ThreadClaims(kept, backend.router, policy, clock=clock, ids=ids),
        backend.answers,
        store.tokens,
        admission=backend.gate,
        journal=backend.journal,
        concurrency=backend.concurrency,
        relay=build_relay(backend, stamps, store.steps) if policy.relays else None,
    )


def _bounds(limits: Limits) -> TriggerBounds:
    return TriggerBounds(
        schedules=limits.schedules_per_person,
        hooks=limits.hooks_per_person,
        firings=limits.firings_per_person,
    )
