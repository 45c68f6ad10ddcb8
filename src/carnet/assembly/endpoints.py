"""From settings, a store and the backend to the endpoints that agents are called by."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from carnet.assembly.agents.agents import Agents
from carnet.assembly.agents.turn_triggers import TriggersOfCalls
from carnet.assembly.trust.certificates import knowing_certificates
from carnet.assembly.trust.identity import build_bearers, federated_extension, with_bearers
from carnet.config import Limits, Settings
from carnet.core.call import Call, Target
from carnet.core.people.address import Identities
from carnet.gateway.answer import Answering
from carnet.gateway.bodies import LargeBodies
from carnet.gateway.cards.a2a import A2aCardPages
from carnet.gateway.conversations.answers import Answers, SettledJournal
from carnet.gateway.conversations.claims import DIALECT as OWNER
from carnet.gateway.conversations.claims import ENGINE, FrontPolicy, ThreadClaims
from carnet.gateway.conversations.hold import HeldJournal
from carnet.gateway.conversations.messages import ROUTES as MESSAGES
from carnet.gateway.conversations.messages import MessageEndpoint, OwnerForm
from carnet.gateway.conversations.pages import ROUTES as CONVERSATIONS
from carnet.gateway.conversations.pages import ConversationPages
from carnet.gateway.dialects import rows_of
from carnet.gateway.endpoint import App, DialectEndpoint
from carnet.gateway.loops.turn_calls import TurnCalls
from carnet.gateway.own_tasks.asker import Askers
from carnet.gateway.own_tasks.callbacks import Callbacks
from carnet.gateway.own_tasks.continuation import Continuations, is_going_on
from carnet.gateway.own_tasks.endpoint import TaskEndpoint
from carnet.gateway.own_tasks.questions import OwnTaskParts, OwnTasks
from carnet.gateway.own_tasks.subscription import Subscriptions
from carnet.gateway.people.signed_in import CookieRequests
from carnet.gateway.published import Capacity, Published
from carnet.gateway.questions import Questions
from carnet.gateway.tasks import TaskAccess, TaskRecords
from carnet.guards.admission.gate import Gate
from carnet.guards.caller.failures import Failures
from carnet.guards.caller.owner import Owners
from carnet.guards.caller.session import SignedIn, session_cookie
from carnet.guards.caller.turn_bearer import TurnBearers
from carnet.guards.limits import Concurrency
from carnet.http.exchange import Access, RouteTable, Row, offered
from carnet.http.refusal import Refusing
from carnet.ports.calls.agent import Journal
from carnet.ports.calls.steps import Steps
from carnet.ports.world.clock import Clock, Ids
from carnet.runtime.agents.http_engine import OpenStreams
from carnet.runtime.agents.relay import RelayParts, with_relays
from carnet.runtime.egress.client import EgressClient
from carnet.runtime.peers.a2a.abandoned import WaitingTasks
from carnet.runtime.peers.cancellation import PeerLine, RunCancellation
from carnet.runtime.peers.ended import EndedLists
from carnet.runtime.peers.keyring import Ring
from carnet.runtime.receipts.issue import Issuing, Receipted
from carnet.runtime.receipts.task_receipts import TaskReceipts
from carnet.runtime.tasks.progress import ProgressWriter
from carnet.runtime.tasks.worker import TaskWorker
from carnet.runtime.traces.ends import Ends
from carnet.runtime.triggers.scheduler import Scheduler
from carnet.runtime.turns.runner import TurnRunner
from carnet.runtime.visit.dispatch import Dispatching
from carnet.runtime.visit.loop_visit import CallsOut
from carnet.runtime.visit.routing import Routing
from carnet.runtime.webhooks.callbacks import CallbackAddresses
from carnet.runtime.webhooks.payload import write_secret
from carnet.stores.conversations.words import words_of
from carnet.stores.open import Store
from carnet.telemetry import Metrics
from carnet.wire.dialects.a2a.card import DeclaredExtension, OriginCard
from carnet.wire.dialects.a2a.extensions import declared
from carnet.wire.dialects.dialect import Dialect, GatewayFacts
from carnet.wire.stamps.stamp import Stamps

SUBSCRIBED_SECONDS: Final = 24 * 3600.0  # that a task is read on at most which asks for something
LOOPS_SPEAK: Final = "openai"  # the dialect in which loops elsewhere call other agents


class Backend(Struct, frozen=True, kw_only=True, eq=False):
    """What the endpoints ask: the gate and the agents."""

    gate: Gate
    concurrency: Concurrency
    router: Routing
    identities: Identities
    journal: TurnRunner
    worker: TaskWorker
    scheduler: Scheduler
    triggers: TriggersOfCalls  # that agent loops here reach
    http: EgressClient
    ring: Ring
    ended: EndedLists
    agents: Agents
    progress_writer: ProgressWriter
    streams: OpenStreams
    answers: Answers  # in the conversations of people
    ends: Ends  # of turns, which are counted


def build_concurrency(limits: Limits, former: Backend | None) -> Concurrency:
    """How many calls may be open; those that are counted already go on to be."""
    return Concurrency(
        per_caller=limits.calls_per_caller,
        in_all=limits.calls,
        streams=limits.streams_per_caller,
        former=None if former is None else former.concurrency,
    )


class Endpoints(Struct, frozen=True, kw_only=True, eq=False):
    """The endpoints through which agents are called."""

    rows: tuple[Row, ...]
    answerings: dict[str, Answering]  # by the name of the dialect
    published: Published


def build_endpoints(
    settings: Settings,
    store: Store,
    backend: Backend,
    clock: Clock,
    ids: Ids,
    metrics: Metrics,
    *,
    dialects: Sequence[Dialect],
    stamps: Stamps,
) -> Endpoints:
    """The endpoints before the gate: those of each dialect, and of people."""
    building = _Building(settings, store, backend, clock, metrics, stamps)
    answerings = {dialect.name: building.answering(dialect) for dialect in dialects}
    if len(answerings) != len(dialects):
        raise ValueError("two dialects have one name")
    parts = building.own_tasks(dialects, ids)
    rows = [
        row
        for dialect in dialects
        for row in rows_of(
            dialect.ways,
            building.endpoint(dialect, answerings[dialect.name]),
            building.questions(dialect),
            building.own_tasks_of(dialect, parts),
        )
    ]
    answerings[OWNER], of_people = building.front(ids)
    return Endpoints(rows=(*rows, *of_people), answerings=answerings, published=building.published)


class _Building:
    """What the endpoints of all dialects are made of."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        backend: Backend,
        clock: Clock,
        metrics: Metrics,
        stamps: Stamps,
    ) -> None:
        self._settings = settings
        self._store = store
        self._backend = backend
        self._clock = clock
        self._metrics, self._stamps = metrics, stamps
        self._gateway = GatewayFacts(
            domain=settings.gateway.domain,
            currency=settings.ledger.currency,
            started=clock.wall_us() // 1_000_000,
        )
        self._issuing = Issuing(
            kept=store.receipts,
            keys=store.keys,
            domain=settings.gateway.domain,
            currency=settings.ledger.currency,
            url=settings.gateway.public_url,
        )
        self._bodies, self._bearers = LargeBodies(), build_bearers(settings)
        domain = settings.gateway.domain
        bearers = TurnBearers(store.keys, clock, store.look_again, domain=domain)
        self._turns = TurnCalls(bearers, backend.streams, clock)
        self.published = _published(settings, store, backend, clock, stamps)
        hours, readers = settings.retention.task_hours, backend.concurrency.readers
        records = TaskRecords(store.tasks, store.turns, clock, readers, kept_hours=hours)
        self._tasks = TaskAccess(records, Owners(backend.ring), self.published, clock)

    def answering(self, dialect: Dialect, journal: Journal | None = None) -> Answering:
        limits = self._settings.limits
        receipted = Receipted(self._backend.journal, self._issuing, dialect.result)
        return Answering(
            dialect,
            self._gateway,
            admission=self._backend.gate,
            journal=receipted if journal is None else journal,
            concurrency=self._backend.concurrency,
            clock=self._clock,
            metrics=self._metrics,
            max_bytes=limits.chat_body_bytes if dialect.has_long_bodies else limits.body_bytes,
        )

    def front(self, ids: Ids) -> tuple[Answering, list[Row]]:
        settings, store, backend, clock = self._settings, self._store, self._backend, self._clock
        kept, turns, policy = store.conversations, store.turns, front_policy(settings)
        answers = backend.answers
        answering = Answering(
            OwnerForm(),
            self._gateway,
            admission=backend.gate,
            journal=SettledJournal(self._held(policy.hold_seconds), answers, kept, turns),
            concurrency=backend.concurrency,
            clock=clock,
            metrics=self._metrics,
            max_bytes=settings.limits.chat_body_bytes,
        )
        claims = ThreadClaims(kept, backend.router, policy, clock=clock, ids=ids)
        relay = build_relay(backend, self._stamps, store.steps) if policy.relays else None
        messages = MessageEndpoint(
            answering, kept, claims, answers, backend.journal, policy, store.memory, relay
        )
        readers = backend.concurrency.readers
        pages = ConversationPages(kept, policy, clock, readers=readers, words=words_of)
        return answering, [*offered(MESSAGES, messages), *offered(CONVERSATIONS, pages)]

    def _held(self, seconds: float | None) -> Journal:
        """The journal whose streams end at a question, or stay open for so long."""
        store, backend = self._store, self._backend
        if seconds is None:
            return backend.journal
        return HeldJournal(
            backend.journal,
            store.turns,
            store.watch,
            self._clock,
            readers=backend.concurrency.readers,
            seconds=seconds,
            has_ended=store.revocations.has_ended,
            is_stopping=lambda: backend.answers.is_stopping,
        )

    def endpoint(self, dialect: Dialect, answering: Answering) -> DialectEndpoint:
        kind = TaskEndpoint if is_going_on(dialect) else DialectEndpoint
        made = kind(
            *(dialect, answering),
            published=self.published,
            stamps=self._stamps,
            wake=self._backend.worker.wake,
            secret=lambda identity: write_secret(self._store.webhook_secret(identity)).reveal(),
            bodies=self._bodies,
            turns=self._turns if dialect.name == LOOPS_SPEAK else None,
        )
        return with_bearers(made, self._bearers)

    def own_tasks(self, dialects: Sequence[Dialect], ids: Ids) -> OwnTaskParts:
        """What callers ask about their own tasks is answered with."""
        held = self._held(SUBSCRIBED_SECONDS)  # one that waits for an answer is read on
        answerings = {each.name: self.answering(each, held) for each in dialects}
        store, backend, clock = self._store, self._backend, self._clock
        access, records = Access(store.tokens, clock, store.look_again), self._tasks.records
        line = PeerLine(backend.http, store.peers, backend.agents.signing)
        addresses = CallbackAddresses(backend.http, store.outbox)
        return OwnTaskParts(
            askers=Askers(
                *(access, records, Owners(backend.ring), self.published, clock),
                *(self._bearers, backend.gate.askers),
            ),
            records=records,
            published=self.published,
            callbacks=Callbacks(store.tasks, addresses, clock, ids),
            subscriptions=Subscriptions(answerings, self.published, backend.concurrency),
            cancels=RunCancellation(
                *(backend.journal, store.records, line, clock),
                WaitingTasks(store.turns, backend.router),
            ),
            bodies=self._bodies,
            gateway=self._gateway,
            card=build_cards(self._settings, store, self.published, clock).extended,
        )

    def own_tasks_of(self, dialect: Dialect, parts: OwnTaskParts) -> OwnTasks | None:
        """The same for one dialect, if its callers can ask."""
        if not is_going_on(dialect):
            return None
        tasks, turns = self._store.tasks, self._store.turns
        continuations = Continuations(dialect, parts.askers, tasks, turns)
        return OwnTasks(dialect, parts, continuations, self._receipt(dialect))

    def _receipt(self, dialect: Dialect) -> TaskReceipts:
        store = self._store
        return TaskReceipts(self._issuing, store.peers, store.turns, dialect.result)

    def questions(self, dialect: Dialect) -> Questions:
        return Questions(
            dialect,
            self._tasks,
            gateway=self._gateway,
            published=self.published,
            polling=self._settings.gateway.task_polling,
            wake=self._backend.worker.wake,
            receipt=self._receipt(dialect),
            stamps=self._stamps,
        )


def build_cards(
    settings: Settings, store: Store, published: Published, clock: Clock
) -> A2aCardPages:
    """The A2A cards of the agents here."""
    return A2aCardPages(
        published,
        store.keys,
        domain=settings.gateway.domain,
        clock=clock,
        is_legacy=settings.gateway.legacy_cards,
        extensions=tuple([DeclaredExtension(**each) for each in declared()]),
        origins=_origin,
        own_extensions=partial(federated_extension, settings),
    )


def _origin(target: Target) -> OriginCard | None:
    """The card of the agent behind one of ours (R22)."""
    found = None if target.origin is None else target.origin()
    return None if found is None else OriginCard(url=found[0], body=found[1])


def build_relay(backend: Backend, stamps: Stamps, steps: Steps) -> Callable[[Call], Call]:
    """What has the mentions in an answer relayed; `steps` keep what was said while one waits."""
    dispatch = Dispatching()
    dispatch.connect(backend.gate, backend.journal, backend.router.find)
    limits = stamps.limits
    calls = CallsOut(dispatch=dispatch, last_depth=limits.default)
    parts = RelayParts(router=backend.router, calls=calls, limits=limits, steps=steps)
    return partial(with_relays, parts=parts)


def front_policy(settings: Settings) -> FrontPolicy:
    """What the configuration says of conversations."""
    owner = settings.owner
    engines = [name for name, agent in settings.agents.items() if agent.kind == ENGINE]
    only = engines[0] if len(engines) == 1 else settings.default_agent
    return FrontPolicy(
        agent=owner.agent or only,
        orchestrator=owner.orchestrator,
        relays=owner.relay,
        hold_seconds=owner.hold_approvals,
        content_bytes=owner.content_bytes,
        history=owner.history,
        model_context=owner.model_context,
        tool_context=owner.tool_context,
        currency=settings.ledger.currency,
    )


def _published(
    settings: Settings, store: Store, backend: Backend, clock: Clock, stamps: Stamps
) -> Published:
    return Published(
        router=backend.router,
        identities=backend.identities,
        keys=store.keys,
        clock=clock,
        domain=settings.gateway.domain,
        public_url=settings.gateway.public_url,
        capacity=Capacity(
            agent_calls=settings.limits.agent_calls_per_minute,
            sender_calls=settings.limits.sender_calls_per_minute,
            open_calls=lambda: backend.concurrency.total,
            waiting_tasks=lambda: backend.worker.waiting,
            currency=settings.ledger.currency,
            max_depth=stamps.limits.default + 1,
            body_bytes=settings.limits.body_bytes,
        ),
    )


def build_app(
    settings: Settings,
    store: Store,
    router: RouteTable,
    refusing: Refusing,
    access: Access,
    ids: Ids,
    metrics: Metrics,
    failures: Failures | None,
) -> App:
    """The application; failures that are counted already go on to be."""
    signed_in = SignedIn(store.sessions, session_cookie(settings.gateway.public_url), access.clock)
    return App(
        router=knowing_certificates(settings, store, router),
        refusing=refusing,
        access=access,
        failures=failures or Failures(settings.limits.auth_failures),
        clock=access.clock,
        ids=ids,
        metrics=metrics,
        cookies=CookieRequests(signed_in, store.sessions, store.tokens),
    )
