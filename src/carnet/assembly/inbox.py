"""From an open store to the pages of what people are asked."""

from carnet.config import Settings
from carnet.gateway.approvals import ROUTES, Approvals
from carnet.http.exchange import Row, offered
from carnet.ports.world.clock import Clock, Ids
from carnet.runtime.tasks.worker import TaskWorker
from carnet.runtime.turns.decisions import Decisions
from carnet.stores.open import Store


def build_inbox(
    settings: Settings, store: Store, worker: TaskWorker, clock: Clock, ids: Ids
) -> list[Row]:
    """The rows of the inbox."""
    decisions = Decisions(
        inbox=store.inbox, turns=store.turns, clock=clock, ids=ids, wake=worker.wake
    )
    return offered(ROUTES, Approvals(store.inbox, decisions, domain=settings.gateway.domain))
