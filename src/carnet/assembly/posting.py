"""From settings and an open store to what delivers its letters."""

from carnet.config import Settings
from carnet.ports.clock import Clock, Ids
from carnet.ports.door import Door
from carnet.runtime.deliveries import Deliveries
from carnet.runtime.outbox import Dispatcher
from carnet.runtime.signing import Signing
from carnet.runtime.webhooks import Webhooks
from carnet.stores.opening import Store
from carnet.telemetry import Metrics


def build_dispatcher(
    settings: Settings, store: Store, door: Door, clock: Clock, ids: Ids, metrics: Metrics
) -> Dispatcher:
    """What delivers the letters of a store; it has not started."""
    signing = Signing(keys=store.keys, domain=settings.gateway.domain, clock=clock, ids=ids)
    return Dispatcher(
        outbox=store.outbox,
        door=door,
        webhooks=Webhooks(
            signing=signing,
            keys=store.keys,
            clock=clock,
            secret_of=store.webhook_secret,
            timeout=settings.outbox.timeout,
        ),
        deliveries=Deliveries(settings.outbox.schedule, ids),
        clock=clock,
        ids=ids,
        metrics=metrics,
        notify=settings.inbox.notify,
    )
