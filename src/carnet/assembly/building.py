"""From settings and an open store to a gateway that can answer."""

import asyncio
from collections.abc import Mapping

from msgspec import Struct

from carnet.assembly.agents import Agents
from carnet.assembly.elsewhere import build_elsewhere
from carnet.assembly.functions import load_classifier
from carnet.assembly.kinds import KINDS, Kind, Parts
from carnet.assembly.posting import build_dispatcher
from carnet.assembly.tasking import TaskFronts, build_accepting, build_task_fronts, build_worker
from carnet.config import Limits, Settings
from carnet.core.address import Identities
from carnet.core.carnet import DepthLimits
from carnet.errors import CarnetError
from carnet.faults import point
from carnet.gateway.answering import Answering, Dialect
from carnet.gateway.app import App
from carnet.gateway.chat import Chat, ChatDialect
from carnet.gateway.operations import Operations
from carnet.gateway.runs import Access, Runs
from carnet.gateway.samvad import Published, Samvad, SamvadDialect
from carnet.gateway.well_known import WellKnown
from carnet.guards.admission import Gate, Signed
from carnet.guards.crowd import Crowd
from carnet.guards.failures import Failures
from carnet.guards.injection import Injection
from carnet.guards.owner import Owners
from carnet.ports.agent import Journal
from carnet.ports.clock import Clock, Ids
from carnet.runtime.callbacks import Callbacks
from carnet.runtime.dispatching import Dispatching
from carnet.runtime.egress import EgressDoor
from carnet.runtime.journaled import Journaled
from carnet.runtime.keyring import Ring
from carnet.runtime.outbox import Dispatcher
from carnet.runtime.receipts import Issuing, Receipted, Told
from carnet.runtime.routing import Routing
from carnet.runtime.schemas import Schemas
from carnet.runtime.tasks import TaskWorker
from carnet.runtime.telling import Telling
from carnet.stores.opening import Store
from carnet.telemetry import Metrics
from carnet.wire import openai, samvad


class Gateway(Struct, frozen=True, kw_only=True, eq=False):
    """The running parts of one gateway."""

    app: App
    chat: Chat
    answerings: tuple[Answering, ...]  # one a dialect
    published: Published
    operations: Operations
    behind: "Behind"
    dispatcher: Dispatcher  # of letters
    store: Store
    metrics: Metrics
    drain_seconds: float

    @property
    def journal(self) -> Journaled:
        """What runs the turns."""
        return self.behind.journal

    def start(self) -> None:
        """Begin with what waits in the store: tasks to run and letters to deliver."""
        self.behind.worker.start()
        self.dispatcher.start()

    async def drain(self) -> None:
        """Take no new work, then finish what is running; end the rest, and let tasks wait again."""
        point("drain.begin")
        self.operations.draining = True
        for answering in self.answerings:
            answering.draining = True
        loop = asyncio.get_running_loop()
        until = loop.time() + self.drain_seconds
        await self.behind.worker.stop()
        await self.journal.drain(max(0.0, until - loop.time()))
        point("drain.mid")
        await self.dispatcher.drain(max(0.0, until - loop.time()))

    def note(self, error: CarnetError) -> None:
        """Count a request that was refused before the application saw it."""
        self.metrics.refusals.labels(error.code).inc()

    async def close(self) -> None:
        """Release what is open, the store last."""
        await self.behind.worker.close()
        await self.dispatcher.close()
        await self.behind.ring.close()
        await self.behind.agents.close()
        await self.behind.door.close()
        await self.store.close()


def depth_limits(settings: Settings) -> DepthLimits:
    """The last depth each dialect answers, from the limits as they are configured."""
    gateway = settings.gateway
    depths = DepthLimits(
        tangle=gateway.max_depth - 1,
        caller_context=gateway.max_chain_depth,
    )
    hard = gateway.hard_max_depth
    return depths if hard is None else depths.clamped(hard - 1)


class Behind(Struct, frozen=True, kw_only=True, eq=False):
    """What stands behind the endpoints: the gate and the agents."""

    gate: Gate
    crowd: Crowd
    router: Routing
    identities: Identities
    journal: Journaled
    worker: TaskWorker
    door: EgressDoor
    ring: Ring
    agents: Agents


def build_behind(
    settings: Settings, store: Store, clock: Clock, ids: Ids, kinds: Mapping[str, Kind] = KINDS
) -> Behind:
    """The gate, and the agents behind it."""
    depths = depth_limits(settings)
    limits, domain = settings.limits, settings.gateway.domain
    door = EgressDoor(allow=settings.egress.allow)
    ring = _ring(domain, store, door, clock)
    dispatching, schemas, telling = Dispatching(), Schemas(), Telling(store.tasks)
    parts = Parts(
        settings=settings,
        elsewhere=build_elsewhere(settings, store, door, ring, clock, ids),
        dispatch=dispatching,
        last_depth=depths.tangle,
        schemas=schemas,
        steps=store.steps,
        progress=telling,
    )
    agents = Agents(parts, kinds)
    router = agents.router(store.peers)
    identities = Identities(settings.agents, domain=domain, default=settings.default_agent)
    journal = _journal(settings, store, clock, ids)
    crowd = _crowd(limits)
    gate = Gate(
        router=router,
        tokens=store.tokens,
        peers=store.peers,
        turns=store.turns,
        clock=clock,
        ids=ids,
        domain=domain,
        depths=depths,
        crowd=crowd,
        most_run_calls=limits.run_calls,
        look_again=store.look_again,
        by_proof=_signed(settings, store, ring, identities, schemas, door),
    )
    dispatching.connect(gate, journal)
    return Behind(
        gate=gate,
        crowd=crowd,
        router=router,
        identities=identities,
        journal=journal,
        worker=build_worker(settings, store, journal, router, clock, telling, crowd),
        door=door,
        ring=ring,
        agents=agents,
    )


def _ring(domain: str, store: Store, door: EgressDoor, clock: Clock) -> Ring:
    own = (domain, store.keys)
    return Ring(pinned=store.pinned, peers=store.peers, door=door, clock=clock, own=own)


def _crowd(limits: Limits) -> Crowd:
    return Crowd(
        per_caller=limits.calls_per_caller,
        in_all=limits.calls,
        streams=limits.streams_per_caller,
    )


def _journal(settings: Settings, store: Store, clock: Clock, ids: Ids) -> Journaled:
    journal = Journaled(
        turns=store.turns,
        clock=clock,
        ids=ids,
        currency=settings.ledger.currency,
        worker=store.worker,
        neighbours=store.neighbours,
        tasks=store.tasks,
    )
    if store.neighbours is not None:
        store.neighbours.listen(journal.stop)
    return journal


def _signed(
    settings: Settings,
    store: Store,
    ring: Ring,
    identities: Identities,
    schemas: Schemas,
    door: EgressDoor,
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
        callbacks=Callbacks(door, store.outbox),
        tasks=store.tasks,
        tasks_per_sender=settings.limits.tasks_per_sender,
    )


class Fronts(Struct, frozen=True, kw_only=True, eq=False):
    """The endpoints through which agents are called, one set a dialect."""

    chat: Chat
    samvad: Samvad
    tasks: TaskFronts
    published: Published
    answerings: tuple[Answering, ...]


def build_fronts(
    settings: Settings,
    store: Store,
    behind: Behind,
    access: Access,
    clock: Clock,
    metrics: Metrics,
) -> Fronts:
    """The endpoints before the gate."""
    depths, limits = depth_limits(settings), settings.limits
    issuing = _issuing(settings, store)

    def answering(dialect: Dialect, told: Told, max_bytes: int) -> Answering:
        journal: Journal = Receipted(behind.journal, issuing, told)
        return Answering(
            dialect,
            admission=behind.gate,
            journal=journal,
            crowd=behind.crowd,
            clock=clock,
            metrics=metrics,
            max_bytes=max_bytes,
        )

    chats = answering(
        ChatDialect(currency=settings.ledger.currency), openai.told, limits.chat_body_bytes
    )
    signed = answering(SamvadDialect(), samvad.result_of, limits.body_bytes)
    published = _published(settings, store, behind, clock)
    return Fronts(
        chat=Chat(chats, depths=depths),
        samvad=_samvad(signed, store, behind, published, depths, clock),
        tasks=build_task_fronts(
            settings,
            store,
            answering=chats,
            published=published,
            access=access,
            owners=Owners(behind.ring),
            depths=depths,
            accept=build_accepting(store, chats, behind.worker.wake),
            issuing=issuing,
            clock=clock,
        ),
        published=published,
        answerings=(chats, signed),
    )


def _samvad(
    answering: Answering,
    store: Store,
    behind: Behind,
    published: Published,
    depths: DepthLimits,
    clock: Clock,
) -> Samvad:
    return Samvad(
        answering,
        published=published,
        depths=depths,
        open_calls=lambda: behind.crowd.total,
        waiting_tasks=lambda: behind.worker.waiting,
        accept=build_accepting(store, answering, behind.worker.wake),
        clock=clock,
    )


def _issuing(settings: Settings, store: Store) -> Issuing:
    return Issuing(
        kept=store.receipts,
        keys=store.keys,
        domain=settings.gateway.domain,
        currency=settings.ledger.currency,
    )


def _published(settings: Settings, store: Store, behind: Behind, clock: Clock) -> Published:
    return Published(
        router=behind.router,
        identities=behind.identities,
        keys=store.keys,
        clock=clock,
        domain=settings.gateway.domain,
        public_url=settings.gateway.public_url,
        agent_calls=settings.limits.agent_calls_per_minute,
        sender_calls=settings.limits.sender_calls_per_minute,
    )


def build(
    settings: Settings, store: Store, clock: Clock, ids: Ids, kinds: Mapping[str, Kind] = KINDS
) -> Gateway:
    """Put the parts together; `kinds` are the kinds of agents that there are."""
    behind = build_behind(settings, store, clock, ids, kinds)
    metrics = Metrics(
        open_calls=lambda: behind.crowd.total,
        circuits=lambda: len(behind.agents.circuits()),
        waiting_tasks=lambda: behind.worker.waiting,
        running_tasks=lambda: behind.worker.running,
    )
    access = Access(store.tokens, clock, store.look_again)
    fronts = build_fronts(settings, store, behind, access, clock, metrics)
    runs = Runs(
        access=access,
        records=store.records,
        journal=behind.journal,
        crowd=behind.crowd,
        watch=store.watch,
        currency=settings.ledger.currency,
        limit=depth_limits(settings).tangle + 1,
    )
    operations = _operations(settings, store, behind, access, metrics, clock)
    dispatcher = build_dispatcher(settings, store, behind.door, clock, ids, metrics)
    behind.worker.connect(metrics=metrics, on_end=dispatcher.wake)
    return Gateway(
        app=App(
            chat=fronts.chat,
            samvad=fronts.samvad,
            task_door=fronts.tasks.door,
            task_pages=fronts.tasks.pages,
            well_known=WellKnown(store.keys, domain=settings.gateway.domain, clock=clock),
            runs=runs,
            operations=operations,
            access=access,
            failures=Failures(settings.limits.auth_failures),
            clock=clock,
            ids=ids,
            metrics=metrics,
        ),
        chat=fronts.chat,
        answerings=fronts.answerings,
        published=fronts.published,
        operations=operations,
        behind=behind,
        dispatcher=dispatcher,
        store=store,
        metrics=metrics,
        drain_seconds=settings.gateway.drain_seconds,
    )


def _operations(
    settings: Settings,
    store: Store,
    behind: Behind,
    access: Access,
    metrics: Metrics,
    clock: Clock,
) -> Operations:
    return Operations(
        access=access,
        router=behind.router,
        metrics=metrics,
        checks={"store": store.is_writable},
        circuits=behind.agents.circuits,
        domain=settings.gateway.domain,
        started=clock.wall_us() // 1_000_000,
    )
