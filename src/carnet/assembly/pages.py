"""From settings to the pages that belong to no dialect, and to the description of the API."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from carnet.assembly.endpoints import Backend
from carnet.assembly.triggers.triggers import build_triggers
from carnet.config import Settings
from carnet.gateway.approvals import ROUTES as APPROVALS
from carnet.gateway.approvals import Approvals
from carnet.gateway.cancellation.endpoint import ROUTES as CANCELLATION
from carnet.gateway.cancellation.endpoint import CancelEndpoint
from carnet.gateway.conversations.forms import SCHEMAS as CONVERSATION_SCHEMAS
from carnet.gateway.conversations.messages import SCHEMAS as MESSAGE_SCHEMAS
from carnet.gateway.operations import Operations
from carnet.gateway.people.forms import SCHEMAS
from carnet.gateway.people.ledger import ROUTES as LEDGER
from carnet.gateway.people.ledger import Holdings, LedgerPages
from carnet.gateway.people.people import ROUTES as PEOPLE
from carnet.gateway.people.people import PeoplePages
from carnet.gateway.published import Published
from carnet.gateway.runs import ROUTES as RUNS
from carnet.gateway.runs import Runs
from carnet.gateway.triggers.forms import SCHEMAS as TRIGGER_SCHEMAS
from carnet.gateway.well_known import ENDED_ROUTES, EndedPage, WellKnownPage
from carnet.gateway.well_known import ROUTES as WELL_KNOWN
from carnet.guards.caller.owner import Owners
from carnet.http.exchange import Access, RouteTable, Row, offered
from carnet.http.openapi import describe
from carnet.ports.world.clock import Clock, Ids
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
    return metrics


def build_operations(
    store: Store, backend: Backend, access: Access, metrics: Metrics
) -> Operations:
    """What the tools of an operator ask."""
    return Operations(
        access=access,
        metrics=metrics,
        checks={"store": store.is_writable},
        circuits=backend.agents.breakers.circuits,
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
    return runs, [*offered(RUNS, runs), *cancelling, *offered(LEDGER, ledger)]


def _cancellation(
    store: Store, backend: Backend, access: Access, stamps: Stamps, clock: Clock
) -> list[Row]:
    """What ends runs, here and elsewhere."""
    line = PeerLine(backend.http, store.peers, backend.agents.signing)
    cancellation = RunCancellation(backend.journal, store.records, line, clock)
    owners = Owners(backend.ring)
    endpoint = CancelEndpoint(
        cancellation, store.records, access, owners, stamps=stamps, clock=clock
    )
    return offered(CANCELLATION, endpoint)


def build_pages(
    settings: Settings,
    store: Store,
    backend: Backend,
    published: Published,
    clock: Clock,
    ids: Ids,
    dialects: Sequence[Dialect],
) -> list[Row]:
    """What tells other gateways what this one is, and people what they are asked."""
    domain = settings.gateway.domain
    well_known = WellKnownPage(
        store.keys,
        domain=domain,
        clock=clock,
        dialects=[dialect.name for dialect in dialects],
        terms=published.terms_of,
    )
    ended = EndedPage(store.keys, store.delegations.ended, domain=domain, clock=clock)
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
    approvals = Approvals(
        store.inbox, decisions, store.rules, store.people, clock=clock, domain=domain
    )
    people = PeoplePages(
        store.people,
        tokens=store.tokens.known,
        agents=lambda: settings.agents,
        domain=domain,
        clock=clock,
        reread=store.reread,
    )
    return [
        *offered(WELL_KNOWN, well_known),
        *offered(ENDED_ROUTES, ended),
        *offered(APPROVALS, approvals),
        *offered(PEOPLE, people),
        *build_triggers(settings, store, backend, clock, ids),
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
        | TRIGGER_SCHEMAS
        | MESSAGE_SCHEMAS
        | CONVERSATION_SCHEMAS
        | {name: shape for dialect in dialects for name, shape in dialect.schemas.items()}
    )
