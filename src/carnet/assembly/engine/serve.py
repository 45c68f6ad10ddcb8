"""Running an engine process: open the store beside its gateway, listen, drain, close.

Law. It listens where `[engine] listen` says, on loopback unless that names another address, and
never where the gateway does.
"""

import logging
from collections.abc import Callable

from carnet.assembly.engine.address import engine_bound, engine_listen
from carnet.assembly.engine.application import RunningEngine, build_engine
from carnet.assembly.engine.beside import note
from carnet.assembly.serve import edge_limits, logged
from carnet.assembly.sockets import Sockets
from carnet.assembly.store import bound, opened, starter_of
from carnet.config import Settings
from carnet.engine.endpoint import refuse
from carnet.http.arrival import RequestIds
from carnet.http.process import Process
from carnet.http.proxies import Proxies
from carnet.http.server import make_server
from carnet.ports.engine.loop import Engine
from carnet.runtime.egress.client import EgressClient
from carnet.runtime.system import SystemClock, SystemIds, new_seed
from carnet.stores.open import start_store

logger = logging.getLogger("carnet.engine")


def serve_engine(
    settings: Settings,
    *,
    fd: int | None = None,
    engine: Engine | None = None,
    on_listening: Callable[[str], None],
) -> int:
    """Run until a signal, at its address or on an inherited socket; the exit code.

    `engine` stands in the place of our own loop. `on_listening` is told where it listens.
    """
    at = settings.gateway
    with engine_bound(settings, fd=fd) as (where, sockets):
        process = Process(drain_seconds=at.drain_seconds, grace_seconds=at.grace_seconds)
        process.own(lambda: [each.fileno() for each in sockets])
        with logged(settings.log):
            code = process.run(
                lambda: _serve(settings, sockets, process, engine, lambda: on_listening(where))
            )
    return process.leave(code)


async def _serve(
    settings: Settings,
    sockets: Sockets,
    process: Process,
    engine: Engine | None,
    on_listening: Callable[[], None],
) -> int:
    clock, ids = SystemClock(), SystemIds()
    http = EgressClient(allow=settings.egress.allow)
    try:
        async with opened(settings) as store:
            bound(store, settings, starter_of(settings))
            await start_store(store, settings.store.url)
            running = build_engine(settings, store, http, clock, ids, engine=engine)
            try:
                engine_listen(sockets)
                await _listen(settings, sockets, process, running, on_listening)
            finally:
                running.policy.close()
                await running.servers.close()
    finally:
        await http.close()
    logger.info("stopped")
    return 0


async def _listen(
    settings: Settings,
    sockets: Sockets,
    process: Process,
    running: RunningEngine,
    on_listening: Callable[[], None],
) -> None:
    async def drain() -> None:
        try:
            await running.endpoint.drain(settings.gateway.drain_seconds)
        finally:
            process.drained()

    server = make_server(
        running.app,
        sockets=sockets,
        limits=edge_limits(settings.limits, ()),
        note=note,
        proxies=Proxies(()),
        refusing=refuse,
        request_ids=RequestIds(new_seed(), SystemClock().wall_us),
        drain=drain,
        on_listening=on_listening,
        on_stop=process.stop,
    )
    process.own(server.connected)
    await server.serve()
