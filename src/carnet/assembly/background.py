"""From settings and an open store to what delivers its letters."""

from carnet.config import Settings
from carnet.ports.world.clock import Clock, Ids
from carnet.ports.world.http_client import Door
from carnet.runtime.peers.signing import Signing
from carnet.runtime.webhooks.dispatcher import Dispatcher
from carnet.runtime.webhooks.payload import Webhooks
from carnet.runtime.webhooks.schedule import Deliveries
from carnet.stores.open import Store
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
