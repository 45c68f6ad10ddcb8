"""From settings to the pages that belong to no dialect, and to the description of the API."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from carnet.assembly.doctor.findings import examine_own
from carnet.assembly.endpoints import Backend, build_cards
from carnet.assembly.triggers.triggers import build_triggers
from carnet.assembly.trust.identity import build_token_endpoint
from carnet.config import Settings
from carnet.config.changes import values_of
from carnet.gateway.approvals import ROUTES as APPROVALS
from carnet.gateway.approvals import Approvals
from carnet.gateway.cancellation.endpoint import ROUTES as CANCELLATION
from carnet.gateway.cancellation.endpoint import CancelEndpoint
from carnet.gateway.cards.a2a import ROUTES as A2A_CARDS
from carnet.gateway.cards.keys import ROUTES as KEY_SETS
from carnet.gateway.cards.keys import KeySetPage
from carnet.gateway.cards.mentions import ROUTES as MENTIONS
from carnet.gateway.cards.mentions import MentionPages
from carnet.gateway.configuration.changes import SCHEMAS as CHANGE_SCHEMAS
from carnet.gateway.conversations.forms import SCHEMAS as CONVERSATION_SCHEMAS
from carnet.gateway.conversations.messages import SCHEMAS as MESSAGE_SCHEMAS
from carnet.gateway.loops.shown_turns import ShownTurns
from carnet.gateway.loops.turn_memory import ROUTES as TURN_MEMORY
from carnet.gateway.loops.turn_memory import TurnMemoryPages
from carnet.gateway.loops.turn_policy import ROUTES as TURN_POLICY
from carnet.gateway.loops.turn_policy import SCHEMAS as POLICY_SCHEMAS
from carnet.gateway.loops.turn_policy import TurnPolicyPage
from carnet.gateway.loops.turn_tokens import ROUTES as TURN_TOKENS
from carnet.gateway.loops.turn_tokens import SCHEMAS as TOKENS_SCHEMAS
from carnet.gateway.loops.turn_tokens import TurnTokensPage
from carnet.gateway.loops.turn_triggers import HOOKS as TURN_HOOKS
from carnet.gateway.loops.turn_triggers import SCHEDULES as TURN_SCHEDULES
from carnet.gateway.loops.turn_triggers import TurnTriggerPages
from carnet.gateway.manual.manual import ROUTES as MANUAL
from carnet.gateway.manual.manual import Manual, find_manual
from carnet.gateway.money.budgets import ROUTES as BUDGETS
from carnet.gateway.money.budgets import BudgetPages
from carnet.gateway.money.chain import ROUTES as CHAIN
from carnet.gateway.money.chain import ChainPages
from carnet.gateway.money.comparison import ROUTES as COMPARISON
from carnet.gateway.money.comparison import SCHEMAS as COMPARISON_SCHEMAS
from carnet.gateway.money.comparison import ComparisonEndpoint
from carnet.gateway.operations import Operations
from carnet.gateway.own_tasks.resolutions import ROUTES as RESOLUTIONS
from carnet.gateway.own_tasks.resolutions import PolicyCallbacks
from carnet.gateway.partners.askers import RunAskers
from carnet.gateway.partners.directory import ROUTES as PARTNERS
from carnet.gateway.partners.directory import DirectorySources, PartnerPages
from carnet.gateway.partners.receipts import ROUTES as RECEIPTS
from carnet.gateway.partners.receipts import ProofEndpoint
from carnet.gateway.partners.statements import MATCHES, MatchEndpoint, StatementEndpoint
from carnet.gateway.partners.statements import ROUTES as STATEMENTS
from carnet.gateway.partners.statements import SCHEMAS as STATEMENT_SCHEMAS
from carnet.gateway.partners.token_exchange import ROUTES as TOKENS
from carnet.gateway.partners.trust import ROUTES as TRUST
from carnet.gateway.partners.trust import SCHEMAS as TRUST_SCHEMAS
from carnet.gateway.partners.trust import TrustPages
from carnet.gateway.people.forms import SCHEMAS
from carnet.gateway.people.ledger import ROUTES as LEDGER
from carnet.gateway.people.ledger import Holdings, LedgerPages
from carnet.gateway.people.memory import ROUTES as MEMORY
from carnet.gateway.people.memory import SCHEMAS as MEMORY_SCHEMAS
from carnet.gateway.people.memory import OwnMemoryPages
from carnet.gateway.people.people import ROUTES as PEOPLE
from carnet.gateway.people.people import PeoplePages
from carnet.gateway.people.sessions import ROUTES as SESSIONS
from carnet.gateway.people.sessions import SCHEMAS as SESSION_SCHEMAS
from carnet.gateway.people.sessions import SessionPages
from carnet.gateway.published import Published
from carnet.gateway.runs import ROUTES as RUNS
from carnet.gateway.runs import Runs
from carnet.gateway.triggers.forms import SCHEMAS as TRIGGER_SCHEMAS
from carnet.gateway.well_known import ENDED_ROUTES, EndedPage, WellKnownPage
from carnet.gateway.well_known import ROUTES as WELL_KNOWN
from carnet.guards.caller.failures import Failures
from carnet.guards.caller.owner import Owners
from carnet.guards.caller.session import session_cookie
from carnet.guards.caller.turn_bearer import TurnBearers
from carnet.http.exchange import Access, RouteTable, Row, offered
from carnet.http.openapi import describe
from carnet.ports.world.clock import Clock, Ids
from carnet.runtime.partners.proof import RunProof
from carnet.runtime.partners.statements import PartnerStatements
from carnet.runtime.peers.a2a.abandoned import WaitingTasks
from carnet.runtime.peers.cancellation import PeerLine, RunCancellation
from carnet.runtime.turns.decisions import Decisions
from carnet.stores.open import Store
from carnet.telemetry import Metrics
from carnet.wire.dialects import samvad
from carnet.wire.dialects.dialect import Dialect
from carnet.wire.dialects.policy import RESOLUTION
from carnet.wire.grammar import json
from carnet.wire.stamps.stamp import IDEMPOTENCY_KEY, Stamps
from carnet.wire.stamps.tangle import HEADERS


def build_metrics(store: Store, backend: Backend) -> Metrics:
    """What is counted, and what is looked up when somebody asks."""
    concurrency, worker = backend.concurrency, backend.worker  # which outlast the rest of it
    metrics = Metrics(
        open_calls=lambda: concurrency.total,
        circuits=backend.agents.breakers.open_to_nobody,
        waiting_tasks=lambda: worker.waiting,
        running_tasks=lambda: worker.running,
    )
    store.pruner.teller = metrics.count_pruned
    metrics.tallies.look = backend.ends.tallies
    return metrics


def build_operations(
    settings: Settings, store: Store, backend: Backend, access: Access, metrics: Metrics
) -> Operations:
    """What the tools of an operator ask."""

    async def findings() -> list[dict[str, str]]:
        return [finding.page() for finding in await examine_own(settings, store)]

    return Operations(
        access=access,
        metrics=metrics,
        checks={"store": store.is_writable},
        circuits=backend.agents.breakers.circuits,
        findings=findings,
        values=partial(values_of, settings),
    )


def build_runs(
    settings: Settings,
    store: Store,
    backend: Backend,
    stamps: Stamps,
    clock: Clock,
    access: Access,
) -> tuple[Runs, list[Row]]:
    """The pages of runs and of what was paid for them, what ends them, and their rows."""
    currency = settings.ledger.currency
    holdings = Holdings(store.tokens.known, store.people, domain=settings.gateway.domain)
    ledger = LedgerPages(store.payments, holdings, clock.wall_us, currency=currency)
    runs = Runs(
        records=store.records,
        concurrency=backend.concurrency,
        watch=store.watch,
        currency=currency,
        limit=stamps.limits.default + 1,
        has_left=store.revocations.has_left,
        paid=ledger.runs,
    )
    cancelling = _cancellation(store, backend, access, stamps, clock)
    statements = StatementEndpoint(
        store.statements,
        access,
        Owners(backend.ring),
        peers=store.peers,
        keys=store.keys,
        stamps=stamps,
        domain=settings.gateway.domain,
        currency=currency,
    )
    signing = backend.agents.signing
    partners = PartnerStatements(backend.http, signing, backend.ring, clock, currency=currency)
    matches = MatchEndpoint(
        store.statements, store.turns, partners.verified, peers=store.peers, clock=clock
    )
    rows = [
        *offered(LEDGER, ledger),
        *offered(STATEMENTS, statements),
        *offered(MATCHES, matches),
        *_books(settings, store, partners, clock),
    ]
    return runs, [*offered(RUNS, runs), *cancelling, *rows]


def _books(
    settings: Settings, store: Store, partners: PartnerStatements, clock: Clock
) -> list[Row]:
    """What may be spent, whether the ledger is whole, and whether partners agree with it."""
    domain, currency = settings.gateway.domain, settings.ledger.currency
    budgets = BudgetPages(
        store.budgets,
        store.payments,
        store.tokens.known,
        store.people,
        store.peers,
        clock.wall_us,
        currency=currency,
    )
    chain = ChainPages(
        lambda progress: store.verify_ledger(progress=progress), clock, currency=currency
    )
    comparison = ComparisonEndpoint(
        store.statements,
        partners.ask,
        store.records,
        store.peers,
        clock,
        domain=domain,
        currency=currency,
    )
    return [
        *offered(BUDGETS, budgets),
        *offered(CHAIN, chain),
        *offered(COMPARISON, comparison),
    ]


def _cancellation(
    store: Store, backend: Backend, access: Access, stamps: Stamps, clock: Clock
) -> list[Row]:
    """What ends runs, here and elsewhere, and what proves them."""
    line = PeerLine(backend.http, store.peers, backend.agents.signing)
    cancellation = RunCancellation(
        backend.journal,
        store.records,
        line,
        clock,
        WaitingTasks(store.turns, backend.router),
    )
    askers = RunAskers(store.records, access, Owners(backend.ring), stamps=stamps, clock=clock)
    proof = RunProof(store.records, store.turns, backend.ring, line, clock)
    return [
        *offered(CANCELLATION, CancelEndpoint(cancellation, askers)),
        *offered(RECEIPTS, ProofEndpoint(proof, askers)),
    ]


def build_pages(
    settings: Settings,
    store: Store,
    backend: Backend,
    published: Published,
    access: Access,
    ids: Ids,
    dialects: Sequence[Dialect],
    stamps: Stamps,
) -> list[Row]:
    """What tells other gateways what this one is, and people what they are asked."""
    domain, clock = settings.gateway.domain, access.clock
    well_known = WellKnownPage(
        store.keys,
        domain=domain,
        clock=clock,
        dialects=[dialect.name for dialect in dialects],
        terms=published.terms_of,
    )
    decisions = Decisions(
        inbox=store.inbox,
        turns=store.turns,
        clock=clock,
        ids=ids,
        currency=settings.ledger.currency,
        rules=store.rules,
        wake=backend.worker.wake,
        router=backend.router,
    )
    backend.journal.by_rule = decisions.by_rule
    backend.agents.answer_by(decisions.by_rule)
    approvals = Approvals(
        store.inbox, decisions, store.rules, store.people, clock=clock, domain=domain
    )
    resolutions = PolicyCallbacks(
        store.inbox, decisions, Owners(backend.ring), stamps=stamps, clock=clock
    )
    return [
        *_memory(settings, store, backend, clock),
        *offered(WELL_KNOWN, well_known),
        *_signed_pages(settings, store, published, clock),
        *offered(APPROVALS, approvals),
        *offered(RESOLUTIONS, resolutions),
        *_people(settings, store, access),
        *offered(PARTNERS, _partners(settings, store, backend)),
        *build_triggers(settings, store, backend, clock, ids),
        *offered(TOKENS, build_token_endpoint(settings, store, backend.http, clock, ids)),
        *offered(MANUAL, Manual(find_manual())),
    ]


def _people(settings: Settings, store: Store, access: Access) -> list[Row]:
    """Who is known here, where they sign in and out, and by which keys we know one another."""
    people = PeoplePages(
        store.people,
        tokens=store.tokens.known,
        agents=lambda: settings.agents,
        domain=settings.gateway.domain,
        clock=access.clock,
        reread=store.reread,
    )
    sessions = SessionPages(
        store.sessions,
        store.tokens,
        store.people,
        access=access,
        cookie=session_cookie(settings.gateway.public_url),
        failures=Failures(settings.limits.sign_in_failures),
        clock=access.clock,
    )
    trust = TrustPages(store.keys, store.pinned, store.peers, access.clock)
    return [*offered(PEOPLE, people), *offered(SESSIONS, sessions), *offered(TRUST, trust)]


def _partners(settings: Settings, store: Store, backend: Backend) -> PartnerPages:
    """Those elsewhere, as far as they are known."""
    agents = backend.agents
    sources = DirectorySources(
        peers=store.peers,
        pinned=store.pinned,
        strangers=store.strangers,
        records=store.records,
        circuits=agents.breakers.circuits,
        cards=agents.known_cards,
        sections=agents.sections_elsewhere,
    )
    return PartnerPages(sources, currency=settings.ledger.currency)


def _signed_pages(
    settings: Settings, store: Store, published: Published, clock: Clock
) -> list[Row]:
    """What is signed with our keys for others to read, and those keys in a standard form."""
    domain, cards = settings.gateway.domain, build_cards(settings, store, published, clock)
    ended = EndedPage(
        store.keys,
        lambda: store.delegations.ended() | store.vouchers.ended(),
        domain=domain,
        clock=clock,
    )
    return [
        *offered(ENDED_ROUTES, ended),
        *offered(A2A_CARDS, cards),
        *offered(MENTIONS, MentionPages(published, cards, domain=domain)),
        *offered(KEY_SETS, KeySetPage(store.keys, clock, domain)),
    ]


def _memory(settings: Settings, store: Store, backend: Backend, clock: Clock) -> list[Row]:
    """What agents keep for people, and what loops elsewhere reach of that and more."""
    pages = OwnMemoryPages(
        store.memory, clock, lambda: settings.agents, backend.concurrency.readers
    )
    return [*offered(MEMORY, pages), *_loops(settings, store, backend, clock)]


def _loops(settings: Settings, store: Store, backend: Backend, clock: Clock) -> list[Row]:
    """What loops elsewhere reach with the bearers of turns."""
    domain = settings.gateway.domain
    bearers = TurnBearers(store.keys, clock, store.look_again, domain=domain)
    turns = ShownTurns(bearers, backend.streams)
    return [
        *offered(TURN_MEMORY, TurnMemoryPages(turns)),
        *offered(TURN_POLICY, TurnPolicyPage(turns)),
        *offered(TURN_TOKENS, TurnTokensPage(turns)),
        *offered(TURN_SCHEDULES, TurnTriggerPages(turns, lambda triggers: triggers.schedules)),
        *offered(TURN_HOOKS, TurnTriggerPages(turns, lambda triggers: triggers.hooks)),
    ]


def description(
    settings: Settings, router: RouteTable, dialects: Sequence[Dialect]
) -> dict[str, Any]:
    """The shape of the API, as this gateway serves it."""
    polling = settings.gateway.task_polling
    beside = {
        IDEMPOTENCY_KEY: "Names this call as x-tangle-turnid does, where that is absent.",
        RESOLUTION: "Answers what this call waits for: STATE;outcome=accepted, or rejected.",
    }
    return describe(router.routes, _schemas(dialects), HEADERS | beside, polling=polling)


def documents() -> dict[str, dict[str, Any]]:
    """The schemas of envelope, answer, card and task, as the package holds them."""
    folder = Path(samvad.__file__).with_name("schemas")
    return {
        path.stem: json.read_object(path.read_bytes()) for path in sorted(folder.glob("*.json"))
    }


def _schemas(dialects: Sequence[Dialect]) -> dict[str, Any]:
    return (
        SCHEMAS
        | STATEMENT_SCHEMAS
        | COMPARISON_SCHEMAS
        | CHANGE_SCHEMAS
        | TRUST_SCHEMAS
        | TRIGGER_SCHEMAS
        | POLICY_SCHEMAS
        | TOKENS_SCHEMAS
        | MESSAGE_SCHEMAS
        | CONVERSATION_SCHEMAS
        | MEMORY_SCHEMAS
        | SESSION_SCHEMAS
        | {name: shape for dialect in dialects for name, shape in dialect.schemas.items()}
    )
