"""From settings and an open store to a gateway that can answer."""

from msgspec import Struct

from carnet.assembly.agents import Agents
from carnet.config import Settings
from carnet.core.carnet import DepthLimits
from carnet.errors import CarnetError
from carnet.faults import point
from carnet.gateway.app import App
from carnet.gateway.chat import Chat
from carnet.gateway.operations import Operations
from carnet.gateway.runs import Access, Runs
from carnet.guards.admission import Gate
from carnet.guards.crowd import Crowd
from carnet.guards.failures import Failures
from carnet.ports.clock import Clock, Ids
from carnet.runtime.dispatching import Dispatching
from carnet.runtime.egress import EgressDoor
from carnet.runtime.journaled import Journaled
from carnet.runtime.routing import Routing
from carnet.stores.opening import Store
from carnet.telemetry import Metrics


class Gateway(Struct, frozen=True, kw_only=True, eq=False):
    """The running parts of one gateway."""

    app: App
    chat: Chat
    operations: Operations
    journal: Journaled
    door: EgressDoor
    store: Store
    metrics: Metrics
    drain_seconds: float

    async def drain(self) -> None:
        """Take no new work, then finish or end what is running."""
        point("drain.begin")
        self.chat.draining = self.operations.draining = True
        await self.journal.drain(self.drain_seconds)
        point("drain.mid")

    def note(self, error: CarnetError) -> None:
        """Count a request that was refused before the application saw it."""
        self.metrics.refusals.labels(error.code).inc()

    async def close(self) -> None:
        """Release what is open, the store last."""
        await self.door.close()
        await self.store.close()


def depth_limits(settings: Settings) -> DepthLimits:
    """The last depth each dialect answers, from the limits as they are configured."""
    gateway = settings.gateway
    depths = DepthLimits(
        tangle=gateway.max_depth - 1,
        caller_context=gateway.max_chain_depth,
        mentionable=gateway.max_hops,
    )
    hard = gateway.hard_max_depth
    return depths if hard is None else depths.clamped(hard - 1)


class Behind(Struct, frozen=True, kw_only=True, eq=False):
    """What stands behind the endpoints: the gate and the agents."""

    gate: Gate
    crowd: Crowd
    router: Routing
    journal: Journaled
    door: EgressDoor
    agents: Agents


def build_behind(settings: Settings, store: Store, clock: Clock, ids: Ids) -> Behind:
    """The gate, and the agents behind it."""
    depths = depth_limits(settings)
    limits = settings.limits
    door = EgressDoor(allow=settings.egress.allow)
    dispatching = Dispatching()
    agents = Agents(settings, door=door, clock=clock, ids=ids, dispatch=dispatching, depths=depths)
    router = agents.router(store.peers)
    journal = Journaled(
        router=router,
        turns=store.turns,
        clock=clock,
        ids=ids,
        currency=settings.ledger.currency,
        worker=store.worker,
        neighbours=store.neighbours,
    )
    if store.neighbours is not None:
        store.neighbours.listen(journal.stop)
    crowd = Crowd(
        per_caller=limits.calls_per_caller,
        in_all=limits.calls,
        streams=limits.streams_per_caller,
    )
    gate = Gate(
        router=router,
        tokens=store.tokens,
        peers=store.peers,
        turns=store.turns,
        clock=clock,
        ids=ids,
        domain=settings.gateway.domain,
        depths=depths,
        crowd=crowd,
        most_run_calls=limits.run_calls,
        look_again=store.look_again,
    )
    dispatching.connect(gate, journal)
    return Behind(gate=gate, crowd=crowd, router=router, journal=journal, door=door, agents=agents)


def build(settings: Settings, store: Store, clock: Clock, ids: Ids) -> Gateway:
    """Put the parts together."""
    behind = build_behind(settings, store, clock, ids)
    depths = depth_limits(settings)
    currency = settings.ledger.currency
    metrics = Metrics(
        open_calls=lambda: behind.crowd.total, circuits=lambda: len(behind.agents.circuits())
    )
    access = Access(store.tokens, clock, store.look_again)
    chat = Chat(
        admission=behind.gate,
        journal=behind.journal,
        crowd=behind.crowd,
        clock=clock,
        metrics=metrics,
        depths=depths,
        currency=currency,
        max_bytes=settings.limits.chat_body_bytes,
    )
    runs = Runs(
        access=access,
        records=store.records,
        journal=behind.journal,
        crowd=behind.crowd,
        watch=store.watch,
        currency=currency,
        limit=depths.tangle + 1,
    )
    operations = _operations(settings, store, behind, access, metrics, clock)
    return Gateway(
        app=App(
            chat=chat,
            runs=runs,
            operations=operations,
            access=access,
            failures=Failures(settings.limits.auth_failures),
            clock=clock,
            ids=ids,
            metrics=metrics,
        ),
        chat=chat,
        operations=operations,
        journal=behind.journal,
        door=behind.door,
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
