"""An engine's listener in the process of a gateway: the loop of its agents, for others to ask.

Law 1. It is the same endpoint behind the same Auth as `carnet engine` serves, at an address of its
       own: the gateway's port knows nothing of it.
Law 2. It begins and drains with its gateway, and serves what that is configured with.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterator
from typing import Final

from msgspec.structs import replace

from carnet.assembly.engine.address import engine_bound, engine_listen
from carnet.assembly.engine.application import RunningEngine, build_engine
from carnet.assembly.gateway import RunningGateway
from carnet.assembly.sockets import Sockets
from carnet.config import Settings
from carnet.engine.endpoint import refuse
from carnet.errors import CarnetError
from carnet.http.arrival import RequestIds
from carnet.http.link import EdgeLimits
from carnet.http.process import Process
from carnet.http.proxies import Proxies
from carnet.http.server import make_server
from carnet.ports.world.clock import Clock, Ids
from carnet.runtime.system import new_seed

logger = logging.getLogger("carnet.engine")

MOST_CONNECTIONS: Final = 64  # beside those of the gateway, whose files they share


class EngineBeside:
    """What listens for a loop beside a gateway; nothing where that is not configured."""

    def __init__(self, where: str, sockets: Sockets) -> None:
        """`sockets` are bound."""
        self._where = where
        self.sockets = sockets
        self._running: RunningEngine | None = None

    @contextlib.asynccontextmanager
    async def serving(
        self,
        gateway: RunningGateway,
        limits: EdgeLimits,
        process: Process,
        clock: Clock,
        ids: Ids,
    ) -> AsyncIterator[None]:
        """Answer, for the time of a context."""
        if not self.sockets:
            yield
            return
        settings, http = gateway.settings, gateway.backend.http
        self._running = build_engine(settings, gateway.store, http, clock, ids)
        engine_listen(self.sockets)
        server = make_server(
            self._running.app,
            sockets=self.sockets,
            limits=replace(limits, connections=min(limits.connections, MOST_CONNECTIONS)),
            note=note,
            proxies=Proxies(()),
            refusing=refuse,
            request_ids=RequestIds(new_seed(), clock.wall_us),
            drain=_at_once,
            on_listening=lambda: logger.info("listening", extra={"path": self._where}),
            on_stop=None,
        )
        process.own(server.connected)
        answering = asyncio.create_task(server.serve())
        try:
            yield
        finally:
            server.should_exit = True
            await answering
            self._running.policy.close()
            await self._running.servers.close()

    async def drain(self, seconds: float) -> None:
        """Take no new work; what runs has some time to end."""
        if self._running is not None:
            await self._running.endpoint.drain(seconds)


@contextlib.contextmanager
def beside(settings: Settings) -> Iterator[EngineBeside]:
    """The listener of a configuration, bound before anything is opened."""
    if not settings.engine.serve:
        yield EngineBeside("", [])
        return
    with engine_bound(settings) as (where, sockets):
        yield EngineBeside(where, sockets)


def note(error: CarnetError) -> None:
    """A request that was refused before the application saw it."""
    logger.info("refused", extra={"code": error.code, "detail": str(error)})


async def _at_once() -> None:
    """Nothing: its gateway says when."""
