"""From settings and an open store to what works beside the calls: webhooks out, tasks run."""

from collections.abc import Sequence

from msgspec import Struct

from carnet.assembly.endpoints import Backend
from carnet.config import Settings, resolve_secret
from carnet.gateway.conversations.answers import Answers
from carnet.guards.limits import Concurrency
from carnet.ports.calls.agent import Router
from carnet.ports.world.clock import Clock, Ids
from carnet.ports.world.http_client import HttpClient
from carnet.runtime.agents.http_engine import OpenStreams
from carnet.runtime.egress.client import EgressClient
from carnet.runtime.peers.ended import EndedLists
from carnet.runtime.peers.keyring import Ring
from carnet.runtime.peers.signing import Signing
from carnet.runtime.tasks.progress import ProgressWriter
from carnet.runtime.tasks.worker import TaskWorker
from carnet.runtime.traces.ends import Ends
from carnet.runtime.traces.exporter import SpanExporter
from carnet.runtime.triggers.ends import TokensAtEnd
from carnet.runtime.triggers.notices import TriggerNotices
from carnet.runtime.triggers.scheduler import Scheduler
from carnet.runtime.triggers.zones import find_zone
from carnet.runtime.turns.runner import TurnRunner
from carnet.runtime.webhooks.callbacks import CallbackDeliveries
from carnet.runtime.webhooks.dispatcher import Dispatcher
from carnet.runtime.webhooks.payload import Webhooks
from carnet.runtime.webhooks.schedule import DeliverySchedule
from carnet.stores.open import Store
from carnet.telemetry import Metrics
from carnet.wire.dialects.dialect import Dialect, GatewayFacts


def build_dispatcher(
    settings: Settings, store: Store, http: HttpClient, clock: Clock, ids: Ids, metrics: Metrics
) -> Dispatcher:
    """What delivers the webhooks of a store; it has not started."""
    signing = Signing(keys=store.keys, domain=settings.gateway.domain, clock=clock, ids=ids)
    dispatcher = Dispatcher(
        outbox=store.outbox,
        http=http,
        webhooks=Webhooks(
            signing=signing,
            keys=store.keys,
            clock=clock,
            secret_of=store.webhook_secret,
            timeout=settings.outbox.timeout,
        ),
        schedule=DeliverySchedule(settings.outbox.schedule, ids),
        clock=clock,
        ids=ids,
        metrics=metrics,
        notify=settings.inbox.notify,
    )
    dispatcher.callbacks = store.tasks.callbacks
    return dispatcher


def build_ends(settings: Settings, journal: TurnRunner, http: HttpClient) -> Ends:
    """What counts turns that have ended, and tells a collector of them; it has not started."""
    telemetry, domain = settings.telemetry, settings.gateway.domain
    given, exporter = telemetry.authorization, None
    if telemetry.otlp is not None:
        key = "telemetry.authorization"
        secret = None if given is None else resolve_secret(given, settings.base, key=key)
        exporter = SpanExporter(
            http, telemetry.otlp, domain=domain, most=telemetry.queue, authorization=secret
        )
    ends = Ends(domain=domain, exporter=exporter)
    journal.ended = ends.ended
    return ends


def build_scheduler(
    settings: Settings, store: Store, clock: Clock, notices: TriggerNotices
) -> Scheduler:
    """What has schedules and hooks begin; it has not started."""
    return Scheduler(
        schedules=store.triggers.schedules,
        firings=store.triggers.firings,
        find_zone=find_zone,
        clock=clock,
        worker=store.worker,
        most=settings.limits.firings_per_person,
        notices=notices,
        ends=TokensAtEnd(store.tokens, store.look_again, clock),
    )


def build_worker(
    settings: Settings,
    store: Store,
    journal: TurnRunner,
    router: Router,
    clock: Clock,
    progress_writer: ProgressWriter,
    concurrency: Concurrency,
) -> TaskWorker:
    """What runs tasks; it has not started."""
    worker = TaskWorker(
        tasks=store.tasks,
        journal=journal,
        router=router,
        clock=clock,
        most=settings.limits.tasks,
        per_agent=settings.limits.tasks_per_agent,
        on_start=progress_writer.begin,
        is_busy=lambda: concurrency.total > 0,
    )
    store.expiry.teller = worker.expired
    journal.ends_waiting = store.expiry
    return worker


class Lasting(Struct, frozen=True, kw_only=True, eq=False):
    """What of a backend outlasts a configuration."""

    http: EgressClient
    ring: Ring
    journal: TurnRunner
    progress_writer: ProgressWriter
    ended: EndedLists
    streams: OpenStreams
    answers: Answers
    scheduler: Scheduler
    ends: Ends


def build_lasting(
    settings: Settings,
    store: Store,
    clock: Clock,
    ids: Ids,
    dialects: Sequence[Dialect],
    former: Backend | None,
) -> Lasting:
    """The former ones, or new ones."""
    if former is not None:
        return Lasting(**{name: getattr(former, name) for name in Lasting.__struct_fields__})
    http = EgressClient(allow=settings.egress.allow, sockets=settings.engine_sockets)
    own = (settings.gateway.domain, store.keys)
    ring = Ring(pinned=store.pinned, peers=store.peers, http=http, clock=clock, own=own)
    journal = build_journal(settings, store, clock, ids, dialects)
    notices = TriggerNotices(store.people, lambda: journal.notify)
    store.on_budget = notices.budget
    return Lasting(
        http=http,
        ring=ring,
        journal=journal,
        progress_writer=ProgressWriter(store.tasks),
        ended=EndedLists(ring, http, clock),
        streams=OpenStreams(ids.token()[:12]),
        answers=Answers(store.conversations, store.turns, store.watch, clock, notices.answered),
        scheduler=build_scheduler(settings, store, clock, notices),
        ends=build_ends(settings, journal, http),
    )


def build_journal(
    settings: Settings, store: Store, clock: Clock, ids: Ids, dialects: Sequence[Dialect]
) -> TurnRunner:
    """What runs the turns of a gateway."""
    gateway = GatewayFacts(domain=settings.gateway.domain, currency=settings.ledger.currency)
    journal = TurnRunner(
        turns=store.turns,
        clock=clock,
        ids=ids,
        currency=settings.ledger.currency,
        worker=store.worker,
        cluster=store.cluster,
        tasks=store.tasks,
        deliveries=CallbackDeliveries(dialects, gateway, ids.uuid, store.people.owner),
    )
    journal.notify = settings.inbox.notify
    journal.has_ended = store.revocations.has_ended
    store.revocations.listen(journal.stop_ended)
    if store.cluster is not None:
        store.cluster.listen(journal.stop)
    return journal
