"""From settings and an open store to what takes tasks on, tells about them and runs them."""

from collections.abc import Callable

from msgspec import Struct

from carnet.config import Settings
from carnet.core.carnet import DepthLimits
from carnet.gateway.answering import Answering
from carnet.gateway.runs import Access
from carnet.gateway.samvad import Published
from carnet.gateway.tasks import Accepting, TaskDoor, TaskPages, TaskRecords
from carnet.guards.crowd import Crowd
from carnet.guards.owner import Owners
from carnet.ports.agent import Router
from carnet.ports.clock import Clock
from carnet.runtime.journaled import Journaled
from carnet.runtime.receipts import Issuing
from carnet.runtime.task_receipts import TaskReceipts
from carnet.runtime.tasks import TaskWorker
from carnet.runtime.telling import Telling
from carnet.runtime.webhooks import write_secret
from carnet.stores.opening import Store


class TaskFronts(Struct, frozen=True, kw_only=True, eq=False):
    """The endpoints of tasks."""

    door: TaskDoor
    pages: TaskPages


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
    return TaskWorker(
        tasks=store.tasks,
        journal=journal,
        router=router,
        clock=clock,
        most=settings.limits.tasks,
        per_agent=settings.limits.tasks_per_agent,
        on_start=telling.begin,
        is_busy=lambda: crowd.total > 0,
    )


def build_accepting(store: Store, answering: Answering, wake: Callable[[], None]) -> Accepting:
    """What says that a task was taken on."""
    return Accepting(
        answering,
        wake=wake,
        secret=lambda identity: write_secret(store.webhook_secret(identity)).reveal(),
    )


def build_task_fronts(
    settings: Settings,
    store: Store,
    *,
    answering: Answering,
    published: Published,
    access: Access,
    owners: Owners,
    depths: DepthLimits,
    accept: Accepting,
    issuing: Issuing,
    clock: Clock,
) -> TaskFronts:
    """The endpoints of tasks; `answering` is that of requests with a token."""
    records = TaskRecords(store.tasks, store.turns, clock, kept_hours=settings.retention.task_hours)
    return TaskFronts(
        door=TaskDoor(
            records,
            agent_of=published.agent_of,
            owners=owners,
            clock=clock,
            polling=settings.gateway.task_polling,
            wake=accept.wake,
            receipt=TaskReceipts(issuing, store.peers, store.turns),
        ),
        pages=TaskPages(
            records,
            answering,
            access=access,
            depths=depths,
            accept=accept,
        ),
    )
