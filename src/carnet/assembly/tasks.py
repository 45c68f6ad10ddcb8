"""From settings and an open store to what takes tasks on, tells about them and runs them."""

from carnet.config import Settings
from carnet.guards.limits.concurrency import Crowd
from carnet.ports.work.agent import Router
from carnet.ports.world.clock import Clock
from carnet.runtime.tasks.progress import Telling
from carnet.runtime.tasks.worker import TaskWorker
from carnet.runtime.turns.runner import Journaled
from carnet.stores.open import Store


def build_worker(
    settings: Settings,
    store: Store,
    journal: Journaled,
    router: Router,
    clock: Clock,
    telling: Telling,
    crowd: Crowd,
) -> TaskWorker:
    """What runs tasks; it has not started."""
    worker = TaskWorker(
        tasks=store.tasks,
        journal=journal,
        router=router,
        clock=clock,
        most=settings.limits.tasks,
        per_agent=settings.limits.tasks_per_agent,
        on_start=telling.begin,
        is_busy=lambda: crowd.total > 0,
    )
    store.expiring.teller = worker.expired
    return worker
