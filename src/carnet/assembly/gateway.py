"""From settings and an open store to a gateway that can answer."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from carnet.assembly.agents.agents import Agents
from carnet.assembly.agents.functions import load_classifier
from carnet.assembly.agents.kinds import KINDS, Kind, Parts
from carnet.assembly.agents.peers import Elsewhere, build_elsewhere
from carnet.assembly.background import build_dispatcher, build_worker
from carnet.assembly.endpoints import Backend, build_endpoints
from carnet.assembly.stamps import known_stamps
from carnet.config import Limits, Settings
from carnet.core.people.address import Identities
from carnet.errors import CarnetError
from carnet.faults import point
from carnet.gateway.answer import Answering
from carnet.gateway.endpoint import App
from carnet.gateway.operations import ROUTES as OPERATIONS
from carnet.gateway.operations import Operations
from carnet.gateway.published import Published
from carnet.gateway.runs import ROUTES as RUNS
from carnet.gateway.runs import Runs
from carnet.gateway.well_known import ROUTES as WELL_KNOWN
from carnet.gateway.well_known import WellKnownPage
from carnet.guards.admission.gate import Gate
from carnet.guards.admission.order import GateParts, Signed
from carnet.guards.caller.failures import Failures
from carnet.guards.limits import Concurrency
from carnet.guards.target.injection import Injection
from carnet.http.exchange import Access, RouteTable, Row, offered
from carnet.http.openapi import describe
from carnet.http.refusal import Refusing
from carnet.ports.world.clock import Clock, Ids
from carnet.runtime.egress.client import EgressClient
from carnet.runtime.peers.keyring import Ring
from carnet.runtime.skills.schemas import CompiledSchemas
from carnet.runtime.tasks.progress import ProgressWriter
from carnet.runtime.turns.runner import TurnRunner
from carnet.runtime.visit.dispatch import Dispatching
from carnet.runtime.visit.routing import Routing
from carnet.runtime.webhooks.callbacks import CallbackAddresses, CallbackDeliveries
from carnet.runtime.webhooks.dispatcher import Dispatcher
from carnet.stores.open import Store
from carnet.telemetry import Metrics
from carnet.wire.dialects import DIALECTS, samvad
from carnet.wire.dialects.dialect import Dialect, GatewayFacts
from carnet.wire.grammar import json
from carnet.wire.stamps import ROWS
from carnet.wire.stamps.stamp import IDEMPOTENCY_KEY, Stamp, Stamps
from carnet.wire.stamps.tangle import HEADERS


class RunningGateway(Struct, frozen=True, kw_only=True, eq=False):
    """The running parts of one gateway."""

    app: App
    answerings: dict[str, Answering]  # by the name of the dialect
    published: Published
    operations: Operations
    backend: Backend
    dispatcher: Dispatcher  # of webhooks
    stamps: Stamps
    refusing: Refusing
    store: Store
    metrics: Metrics
    drain_seconds: float

    @property
    def journal(self) -> TurnRunner:
        """What runs the turns."""
        return self.backend.journal

    def start(self) -> None:
        """Begin with what waits in the store: tasks to run and webhooks to deliver."""
        self.backend.worker.start()
        self.dispatcher.start()

    async def drain(self) -> None:
        """Take no new work, then finish what is running; end the rest, and let tasks wait again."""
        point("drain.begin")
        self.operations.draining = True
        for answering in self.answerings.values():
            answering.draining = True
        loop = asyncio.get_running_loop()
        until = loop.time() + self.drain_seconds
        await self.backend.worker.stop()
        await self.journal.drain(max(0.0, until - loop.time()))
        point("drain.mid")
        await self.dispatcher.drain(max(0.0, until - loop.time()))

    def note(self, error: CarnetError) -> None:
        """Count a request that was refused before the application saw it."""
        self.metrics.refusals.labels(error.code).inc()

    async def close(self) -> None:
        """Release what is open, the store last."""
        await self.backend.worker.close()
        await self.dispatcher.close()
        await self.backend.ring.close()
        await self.backend.agents.close()
        await self.backend.http.close()
        await self.store.close()


def build_backend(
    settings: Settings,
    store: Store,
    clock: Clock,
    ids: Ids,
    *,
    stamps: Stamps,
    dialects: Sequence[Dialect],
    kinds: Mapping[str, Kind],
) -> Backend:
    """The gate, and the agents behind it."""
    domain = settings.gateway.domain
    http = EgressClient(allow=settings.egress.allow)
    ring = _ring(domain, store, http, clock)
    dispatching, schemas, progress_writer = (
        Dispatching(),
        CompiledSchemas(),
        ProgressWriter(store.tasks),
    )
    elsewhere = build_elsewhere(
        settings, store, http, ring, clock, ids, stamps=stamps, dialects=dialects
    )
    parts = _parts(settings, store, elsewhere, dispatching, schemas, progress_writer)
    agents = Agents(parts, kinds)
    router = agents.router(store.peers)
    identities = Identities(settings.agents, domain=domain, default=settings.default_agent)
    concurrency, journal = (
        _concurrency(settings.limits),
        _journal(settings, store, clock, ids, dialects),
    )
    by_proof = _signed(settings, store, ring, identities, schemas, http)
    gate = _gate(settings, store, clock, ids, router, concurrency, stamps, by_proof)
    gate.on_return = journal.came_back
    dispatching.connect(gate, journal)
    return Backend(
        gate=gate,
        concurrency=concurrency,
        router=router,
        identities=identities,
        journal=journal,
        worker=build_worker(settings, store, journal, router, clock, progress_writer, concurrency),
        http=http,
        ring=ring,
        agents=agents,
    )


def _gate(
    settings: Settings,
    store: Store,
    clock: Clock,
    ids: Ids,
    router: Routing,
    concurrency: Concurrency,
    stamps: Stamps,
    by_proof: Signed,
) -> Gate:
    return Gate(
        GateParts(
            router=router,
            tokens=store.tokens,
            peers=store.peers,
            clock=clock,
            ids=ids,
            domain=settings.gateway.domain,
            depths=stamps.limits,
            has_ended=store.revocations.has_ended,
        ),
        turns=store.turns,
        concurrency=concurrency,
        most_run_calls=settings.limits.run_calls,
        look_again=store.look_again,
        by_proof=by_proof,
    )


def _parts(
    settings: Settings,
    store: Store,
    elsewhere: Elsewhere,
    dispatching: Dispatching,
    schemas: CompiledSchemas,
    progress_writer: ProgressWriter,
) -> Parts:
    return Parts(
        settings=settings,
        elsewhere=elsewhere,
        dispatch=dispatching,
        last_depth=elsewhere.stamps.limits.default,
        schemas=schemas,
        steps=store.steps,
        progress=progress_writer,
    )


def _ring(domain: str, store: Store, http: EgressClient, clock: Clock) -> Ring:
    own = (domain, store.keys)
    return Ring(pinned=store.pinned, peers=store.peers, http=http, clock=clock, own=own)


def _concurrency(limits: Limits) -> Concurrency:
    return Concurrency(
        per_caller=limits.calls_per_caller,
        in_all=limits.calls,
        streams=limits.streams_per_caller,
    )


def _journal(
    settings: Settings, store: Store, clock: Clock, ids: Ids, dialects: Sequence[Dialect]
) -> TurnRunner:
    gateway = GatewayFacts(domain=settings.gateway.domain, currency=settings.ledger.currency)
    journal = TurnRunner(
        turns=store.turns,
        clock=clock,
        ids=ids,
        currency=settings.ledger.currency,
        worker=store.worker,
        cluster=store.cluster,
        tasks=store.tasks,
        deliveries=CallbackDeliveries(dialects, gateway, ids.uuid),
    )
    journal.has_ended = store.revocations.has_ended
    store.revocations.listen(journal.stop_ended)
    if store.cluster is not None:
        store.cluster.listen(journal.stop)
    return journal


def _signed(
    settings: Settings,
    store: Store,
    ring: Ring,
    identities: Identities,
    schemas: CompiledSchemas,
    http: EgressClient,
) -> Signed:
    target = settings.gateway.injection_classifier
    key = "gateway.injection_classifier"
    classifier = None if target is None else load_classifier(target, settings.base, key=key)
    return Signed(
        keys=ring,
        identities=identities,
        schemas=schemas,
        scan=Injection(classifier),
        currency=settings.ledger.currency,
        sender_calls=settings.limits.sender_calls_per_minute,
        agent_calls=settings.limits.agent_calls_per_minute,
        callbacks=CallbackAddresses(http, store.outbox),
        tasks=store.tasks,
        tasks_per_sender=settings.limits.tasks_per_sender,
    )


def build(
    settings: Settings,
    store: Store,
    clock: Clock,
    ids: Ids,
    *,
    stamps: Sequence[Stamp] = ROWS,
    dialects: Sequence[Dialect] = DIALECTS,
    kinds: Mapping[str, Kind] = KINDS,
) -> RunningGateway:
    """Put the parts together; `stamps`, `dialects` and `kinds` of agents are those known."""
    known = known_stamps(settings, stamps)
    backend = build_backend(
        settings, store, clock, ids, stamps=known, dialects=dialects, kinds=kinds
    )
    metrics = _metrics(store, backend)
    access = Access(store.tokens, clock, store.look_again)
    endpoints = build_endpoints(
        settings, store, backend, clock, metrics, dialects=dialects, stamps=known
    )
    operations = _operations(store, backend, access, metrics)
    pages = _pages(settings, store, backend, endpoints.published, clock, known, dialects)
    rows = (*endpoints.rows, *pages)
    router = RouteTable([*rows, *offered(OPERATIONS, operations)], access)
    operations.describe(_description(settings, router, dialects), _documents())
    refusing = Refusing(dialects)
    dispatcher = build_dispatcher(settings, store, backend.http, clock, ids, metrics)
    backend.worker.connect(metrics=metrics, on_end=dispatcher.wake)
    app = App(
        router=router,
        refusing=refusing,
        access=access,
        failures=Failures(settings.limits.auth_failures),
        clock=clock,
        ids=ids,
        metrics=metrics,
    )
    return RunningGateway(
        app=app,
        answerings=endpoints.answerings,
        published=endpoints.published,
        operations=operations,
        backend=backend,
        dispatcher=dispatcher,
        stamps=known,
        refusing=refusing,
        store=store,
        metrics=metrics,
        drain_seconds=settings.gateway.drain_seconds,
    )


def _metrics(store: Store, backend: Backend) -> Metrics:
    metrics = Metrics(
        open_calls=lambda: backend.concurrency.total,
        circuits=backend.agents.breakers.open_to_nobody,
        waiting_tasks=lambda: backend.worker.waiting,
        running_tasks=lambda: backend.worker.running,
    )
    store.pruner.teller = metrics.count_pruned
    return metrics


def _operations(store: Store, backend: Backend, access: Access, metrics: Metrics) -> Operations:
    return Operations(
        access=access,
        metrics=metrics,
        checks={"store": store.is_writable},
        circuits=backend.agents.breakers.circuits,
    )


def _pages(
    settings: Settings,
    store: Store,
    backend: Backend,
    published: Published,
    clock: Clock,
    stamps: Stamps,
    dialects: Sequence[Dialect],
) -> list[Row]:
    """The rows of the pages that belong to no dialect."""
    runs = Runs(
        records=store.records,
        journal=backend.journal,
        concurrency=backend.concurrency,
        watch=store.watch,
        currency=settings.ledger.currency,
        limit=stamps.limits.default + 1,
        has_left=store.revocations.has_left,
    )
    store.revocations.listen(runs.stop_ended)
    well_known = WellKnownPage(
        store.keys,
        domain=settings.gateway.domain,
        clock=clock,
        dialects=[dialect.name for dialect in dialects],
        terms=published.terms_of,
    )
    return [*offered(RUNS, runs), *offered(WELL_KNOWN, well_known)]


def _description(
    settings: Settings, router: RouteTable, dialects: Sequence[Dialect]
) -> dict[str, Any]:
    """The shape of the API, as this gateway serves it."""
    polling = settings.gateway.task_polling
    key = {IDEMPOTENCY_KEY: "Names this call as x-tangle-turnid does, where that is absent."}
    return describe(router.routes, _schemas(dialects), HEADERS | key, polling=polling)


def _documents() -> dict[str, dict[str, Any]]:
    """The schemas of envelope, answer, card and task, as the package holds them."""
    folder = Path(samvad.__file__).with_name("schemas")
    return {
        path.stem: json.read_object(path.read_bytes()) for path in sorted(folder.glob("*.json"))
    }


def _schemas(dialects: Sequence[Dialect]) -> dict[str, Any]:
    return {name: shape for dialect in dialects for name, shape in dialect.schemas.items()}
