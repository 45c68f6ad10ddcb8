"""From settings and an open store to a gateway that can answer."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, structs

from carnet.assembly.agents.agents import Agents
from carnet.assembly.agents.functions import build_policy, load_classifier
from carnet.assembly.agents.kinds import KINDS, Kind, Parts
from carnet.assembly.agents.models import LazyModels
from carnet.assembly.agents.peers import Elsewhere, build_elsewhere
from carnet.assembly.agents.turn_triggers import TriggersOfCalls
from carnet.assembly.background import build_dispatcher, build_lasting, build_worker
from carnet.assembly.console.configuration import operation_rows
from carnet.assembly.console.console import build_console
from carnet.assembly.endpoints import (
    Backend,
    build_app,
    build_concurrency,
    build_endpoints,
    build_relay,
)
from carnet.assembly.pages import (
    build_metrics,
    build_operations,
    build_pages,
    build_runs,
    description,
    documents,
)
from carnet.assembly.stamps import known_stamps
from carnet.assembly.store import bound
from carnet.assembly.triggers.triggers import build_starter
from carnet.assembly.trust.identity import build_access, build_identity
from carnet.assembly.trust.payers import build_payers
from carnet.config import Settings
from carnet.core.call import Call
from carnet.core.people.address import Identities
from carnet.core.people.caller_host import CallerHost
from carnet.core.people.identity import Secret
from carnet.errors import CarnetError
from carnet.faults import point
from carnet.gateway.answer import Answering
from carnet.gateway.endpoint import App
from carnet.gateway.operations import Operations
from carnet.gateway.published import Published
from carnet.gateway.runs import Runs
from carnet.guards.admission.gate import Gate
from carnet.guards.admission.model_tokens import ModelTokens
from carnet.guards.admission.order import GateParts, Signed
from carnet.guards.caller.failures import Failures
from carnet.guards.limits import Concurrency
from carnet.guards.payments import Payers
from carnet.guards.target.injection import Injection
from carnet.http.exchange import RouteTable
from carnet.http.refusal import Refusing
from carnet.ports.calls.triggers import Starter
from carnet.ports.trust.keys import PinnedKey
from carnet.ports.trust.policy import OperatorPolicy
from carnet.ports.trust.trust import Peer
from carnet.ports.world.clock import Clock, Ids
from carnet.runtime.agents.http_engine import OpenStreams
from carnet.runtime.egress.client import EgressClient
from carnet.runtime.peers.ended import EndedLists
from carnet.runtime.peers.keyring import Ring
from carnet.runtime.skills.answers import check_answer
from carnet.runtime.skills.schemas import CompiledSchemas
from carnet.runtime.tasks.progress import ProgressWriter
from carnet.runtime.tools.memory import PastOfCalls
from carnet.runtime.turns.runner import TurnRunner
from carnet.runtime.visit.dispatch import Dispatching
from carnet.runtime.visit.fan_out.questions import SurfacedQuestions
from carnet.runtime.visit.routing import Routing
from carnet.runtime.webhooks.callbacks import CallbackAddresses
from carnet.runtime.webhooks.dispatcher import Dispatcher
from carnet.stores.conversations.words import words_of
from carnet.stores.open import Store
from carnet.telemetry import Metrics
from carnet.wire.dialects import DIALECTS
from carnet.wire.dialects.dialect import Dialect
from carnet.wire.stamps import ROWS
from carnet.wire.stamps.stamp import Stamp, Stamps

LOOK_SECONDS: Final = 0.2  # between two looks whether the last request has ended


class RunningGateway(Struct, frozen=True, kw_only=True, eq=False):
    """The running parts of one gateway, as one configuration wants them.

    Of a configuration that is read again another is built, from what lasts of its `former` one:
    the store, what is running and counted, and what was learned of others.
    """

    settings: Settings
    app: App
    answerings: dict[str, Answering]  # by the name of the dialect
    published: Published
    operations: Operations
    backend: Backend
    dispatcher: Dispatcher  # of webhooks
    runs: Runs
    stamps: Stamps
    refusing: Refusing
    store: Store
    metrics: Metrics
    starter: Starter  # of conversations
    relay: Callable[[Call], Call] | None  # what has mentions in answers relayed

    @property
    def journal(self) -> TurnRunner:
        """What runs the turns."""
        return self.backend.journal

    def start(self) -> None:
        """Begin with what waits in the store: tasks to run and webhooks to deliver."""
        self.backend.worker.relay = self.relay
        self.backend.worker.start()
        self.backend.scheduler.take(self.starter, most=self.settings.limits.firings_per_person)
        self.backend.scheduler.start()
        self.dispatcher.start()
        self.backend.answers.start()
        self.backend.ends.start()

    def take_over(
        self,
        peers: Iterable[Peer],
        keys: Iterable[PinnedKey],
        callers: Iterable[tuple[CallerHost, Secret | None]] = (),
    ) -> None:
        """Stand in the place of the former one, for all that does not come by requests.

        `peers` and their `keys` are those of the file, and so are the `callers`.
        """
        settings, limits = self.settings, self.settings.limits
        self.store.take(peers, keys, callers, wait_hours=settings.inbox.expires)
        bound(self.store, settings, self.store.memory.bounds.starter)
        self.store.revocations.listen(self.runs.stop_ended)
        most, each = limits.tasks, limits.tasks_per_agent
        self.backend.worker.take(self.backend.router, most=most, per_agent=each)
        self.backend.worker.relay = self.relay
        self.dispatcher.notify = self.journal.notify = settings.inbox.notify
        self.app.failures.limit = limits.auth_failures
        self.backend.scheduler.take(self.starter, most=limits.firings_per_person)

    async def retire(self) -> None:
        """Wait for the last request and call, after another one has taken over; then let go."""
        while self.app.open:  # noqa: ASYNC110  an event would cost every request
            await asyncio.sleep(LOOK_SECONDS)
        await self.journal.outlast()
        self.store.revocations.leave(self.runs.stop_ended)
        await self.backend.agents.close()

    def stop_admitting(self) -> None:
        """Take no new work."""
        self.operations.draining = True
        for answering in self.answerings.values():
            answering.draining = True
        self.backend.answers.is_stopping = True

    async def drain(self) -> None:
        """Take no new work, then finish what is running; end the rest, and let tasks wait again."""
        point("drain.begin")
        self.stop_admitting()
        loop = asyncio.get_running_loop()
        until = loop.time() + self.settings.gateway.drain_seconds
        await self.backend.worker.stop()
        await self.backend.scheduler.drain()
        await self.journal.drain(max(0.0, until - loop.time()))
        point("drain.mid")
        await self.dispatcher.drain(max(0.0, until - loop.time()))

    def note(self, error: CarnetError) -> None:
        """Count a request that was refused before the application saw it."""
        self.metrics.refusals.labels(error.code).inc()

    async def close(self) -> None:
        """Release what is open, the store last."""
        await self.backend.worker.close()
        await self.backend.scheduler.close()
        await self.backend.answers.close()
        await self.dispatcher.close()
        await self.backend.ended.close()
        await self.backend.ring.close()
        await self.backend.agents.close()
        await self.backend.ends.close()
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
    former: Backend | None = None,
) -> Backend:
    """The gate, and the agents behind it."""
    domain, dispatching, schemas = settings.gateway.domain, Dispatching(), CompiledSchemas()
    lasting = build_lasting(settings, store, clock, ids, dialects, former)
    http, ring, journal, streams = lasting.http, lasting.ring, lasting.journal, lasting.streams
    progress_writer, triggers = lasting.progress_writer, TriggersOfCalls()
    elsewhere = build_elsewhere(
        settings, store, http, ring, clock, ids, stamps=stamps, dialects=dialects
    )
    parts = _parts(settings, store, elsewhere, dispatching, schemas, progress_writer, streams)
    policy = build_policy(settings)
    parts = structs.replace(parts, triggers=triggers, policy=policy)
    agents = Agents(parts, kinds, None if former is None else former.agents.breakers)
    router = agents.router(store.peers)
    identities = Identities(settings.agents, domain=domain, default=settings.default_agent)
    concurrency = build_concurrency(settings.limits, former)
    by_proof = _signed(settings, store, ring, identities, schemas, http, lasting.ended)
    by_proof = build_identity(settings, store, http, ring, clock, identities).added(by_proof)
    payers = build_payers(settings, store, ring, lasting.ended)
    gate = _gate(settings, store, clock, ids, router, concurrency, stamps, by_proof, policy, payers)
    gate.on_return = journal.came_back
    dispatching.connect(gate, journal, router.find)
    return Backend(
        gate=gate,
        concurrency=concurrency,
        router=router,
        identities=identities,
        worker=former.worker
        if former is not None
        else build_worker(settings, store, journal, router, clock, progress_writer, concurrency),
        triggers=triggers,
        agents=agents,
        **structs.asdict(lasting),
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
    policy: OperatorPolicy | None,
    payers: Payers | None,
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
            budgets=store.budgets,
            has_ended=store.revocations.has_ended,
            callers=store.callers,
            policy=policy,
            payers=payers,
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
    streams: OpenStreams,
) -> Parts:
    return Parts(
        settings=settings,
        elsewhere=elsewhere,
        dispatch=dispatching,
        last_depth=elsewhere.stamps.limits.default,
        schemas=schemas,
        steps=store.steps,
        progress=progress_writer,
        people=store.people,
        memory=store.memory,
        past=PastOfCalls(store.conversations, words_of),
        models=LazyModels(settings, elsewhere.client.http, elsewhere.client.ids),
        streams=streams,
        surface=SurfacedQuestions(store.questions, elsewhere.client.clock),
        tokens=ModelTokens(store.budgets, elsewhere.client.clock),
    )


def _signed(
    settings: Settings,
    store: Store,
    ring: Ring,
    identities: Identities,
    schemas: CompiledSchemas,
    http: EgressClient,
    ended: EndedLists,
) -> Signed:
    target, key = settings.gateway.injection_classifier, "gateway.injection_classifier"
    classifier = None if target is None else load_classifier(target, settings.base, key=key)
    return Signed(
        keys=ring,
        identities=identities,
        url=settings.gateway.public_url,
        schemas=schemas,
        check_answer=check_answer,
        scan=Injection(classifier),
        currency=settings.ledger.currency,
        sender_calls=settings.limits.sender_calls_per_minute,
        agent_calls=settings.limits.agent_calls_per_minute,
        callbacks=CallbackAddresses(http, store.outbox),
        tasks=store.tasks,
        tasks_per_sender=settings.limits.tasks_per_sender,
        ended=store.delegations.ended_link,
        fresh=ended.check,
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
    former: RunningGateway | None = None,
) -> RunningGateway:
    """Put the parts together, of those `stamps`, `dialects` and `kinds` of agents that are known.

    Of a `former` one nothing is changed before it takes over: it is built beside the event loop.
    """
    known, last = known_stamps(settings, stamps), None if former is None else former.backend
    backend = build_backend(
        settings, store, clock, ids, stamps=known, dialects=dialects, kinds=kinds, former=last
    )
    metrics = build_metrics(store, backend) if former is None else former.metrics
    endpoints = build_endpoints(
        settings, store, backend, clock, ids, metrics, dialects=dialects, stamps=known
    )
    access = build_access(settings, store, clock)
    operations = build_operations(settings, store, backend, access, metrics)
    runs, run_rows = build_runs(settings, store, backend, known, clock, access)
    rows = [*endpoints.rows, *run_rows, *operation_rows(settings, operations)]
    rows += build_pages(settings, store, backend, endpoints.published, access, ids, dialects, known)
    console = build_console(settings, store, backend, clock)
    router = console.connect(RouteTable([*rows, *console.rows], access))
    operations.describe(description(settings, router, dialects), documents())
    refusing = Refusing(dialects, console.refusals)
    gateway = RunningGateway(
        settings=settings,
        app=build_app(settings, store, router, refusing, access, ids, metrics, _failures(former)),
        answerings=endpoints.answerings,
        published=endpoints.published,
        operations=operations,
        backend=backend,
        dispatcher=_dispatcher(former, settings, store, backend.http, clock, ids, metrics),
        runs=runs,
        stamps=known,
        refusing=refusing,
        store=store,
        metrics=metrics,
        starter=build_starter(settings, store, backend, known, clock, ids),
        relay=build_relay(backend, known, store.steps) if settings.owner.relay else None,
    )
    return _connected(gateway, former)


def _dispatcher(former: RunningGateway | None, *given: Any) -> Dispatcher:
    """That of webhooks, which goes on."""
    return build_dispatcher(*given) if former is None else former.dispatcher


def _failures(former: RunningGateway | None) -> Failures | None:
    """Those that are counted already."""
    return None if former is None else former.app.failures


def _connected(gateway: RunningGateway, former: RunningGateway | None) -> RunningGateway:
    """Have the parts know one another; a former one goes on until another takes over."""
    if former is None:
        gateway.store.revocations.listen(gateway.runs.stop_ended)
        gateway.backend.worker.connect(metrics=gateway.metrics, on_end=gateway.dispatcher.wake)
        gateway.backend.scheduler.on_notice = gateway.dispatcher.wake
        gateway.backend.answers.on_notice = gateway.dispatcher.wake
        gateway.backend.scheduler.on_drop = gateway.metrics.ticks_dropped.inc
    else:
        gateway.published.started = former.published.started
    return gateway
