"""The endpoint that ends a run: for whoever holds a token, and for gateways that called us in it.

Law 1. A token ends the turns that it may see. A gateway ends what it has called itself, and what
       was called for that here.
Law 2. Whoever may not see a run is told what is told of one that there is not.
Law 3. The answer says hop by hop what has come of it, also at other organisations.
"""

from typing import Final

import msgspec

from carnet.errors import RunNotFound
from carnet.gateway.partners.askers import RunAskers, Walks
from carnet.http.exchange import Exchange, Row, reply_json
from carnet.ports.calls.cancellation import CancelAsk, Cancels

PERMISSION: Final = "run:cancel"


class CancelEndpoint:
    """Ends runs."""

    def __init__(self, cancels: Cancels, askers: RunAskers) -> None:
        """`askers` tell who asks."""
        self._cancels = cancels
        self._askers = askers
        self._walks = Walks()

    async def cancel(self, exchange: Exchange, run: str) -> None:
        """POST /runs/{id}/cancel."""
        asker = await self._askers.who(exchange, run, PERMISSION)
        # Those it may see and no others: a run's id is known to all who took part in it.
        asked = CancelAsk(run=run, reader=asker.reader, turns=asker.turns, seconds=asker.seconds)
        with self._walks.one(asker.name):
            report = await self._cancels(asked)
        if report is None:
            raise RunNotFound
        hops = msgspec.to_builtins(report.hops)
        await reply_json(exchange, {"run": run, "cancelled": report.stopped, "hops": hops})


ROUTES = (
    Row(
        method="POST",
        path="/runs/{run}/cancel",
        endpoint=CancelEndpoint.cancel,
        auth="gate",
        permission=PERMISSION,
        summary="Cancel what runs; tells hop by hop what has come of it",
        answer="Page",
    ),
)
