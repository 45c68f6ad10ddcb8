"""The server process around the application: listening, and stopping without losing anything.

Law 1. On the first signal the gateway takes no new work, finishes or ends what is running within
       the drain time, and only then stops listening. A second signal stops it at once.
Law 2. Every connection speaks the protocol of `http.protocol`, and is looked at on every sweep.
Law 3. Application and limits are read once for a request, together: `take` changes them at once.
"""

import asyncio
import contextlib
import resource
import signal
import socket
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator
from typing import Any

import uvicorn

from carnet.http.arrival import RequestIds
from carnet.http.link import EdgeLimits, Held
from carnet.http.process import STOPPING
from carnet.http.protocol import SPARE_CONNECTIONS, SWEEP_SECONDS, HardProtocol, Note
from carnet.http.proxies import Proxies
from carnet.http.refusal import Refuse

Drain = Callable[[], Awaitable[None]]

BACKLOG = 2048  # connections that wait to be accepted
KEEP_ALIVE_SECONDS = 30  # of a connection between two requests
OTHER_FILES = 128  # what a gateway opens beside its callers' connections: store, peers, log


class Server(uvicorn.Server):
    """A uvicorn server that drains before it stops."""

    def __init__(
        self,
        config: uvicorn.Config,
        *,
        sockets: list[socket.socket],
        drain: Drain,
        request_ids: RequestIds,
        on_listening: Callable[[], None],
        on_stop: Callable[[], None] | None,
    ) -> None:
        """`drain` returns when nothing is running any more; `sockets` are closed at the end.

        `on_stop` is told of every signal to stop, in the midst of whatever runs then; without it
        signals are another's, and `should_exit` stops it.
        """
        self._exiting = asyncio.Event()
        super().__init__(config)
        self._sockets = sockets
        self._drain = drain
        self._request_ids = request_ids
        self._on_listening = on_listening
        self._on_stop = on_stop
        self._draining: asyncio.Task[None] | None = None

    def take(self, app: Any, limits: EdgeLimits, proxies: Proxies, refusing: Refuse) -> None:
        """Answer with another application, within other limits: every request from now on.

        What has come as far as its body goes on with the former ones.
        """
        protocol: Any = self.config.http_protocol_class
        protocol.limits, protocol.proxies, self.config.loaded_app = limits, proxies, app
        protocol.refusing = (refusing,)

    def connected(self) -> Iterator[int]:
        """The descriptors of who is connected."""
        for each in self.server_state.connections:
            kernel = each.transport.get_extra_info("socket")
            if kernel is not None:
                yield kernel.fileno()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then say so."""
        await super().startup(self._sockets if sockets is None else sockets)
        if not self.should_exit:
            self._on_listening()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, then end what is connected."""
        await super().shutdown(self._sockets if sockets is None else sockets)

    @property
    def should_exit(self) -> bool:
        """Whether it is to stop; who sets this wakes it."""
        return self._exiting.is_set()

    @should_exit.setter
    def should_exit(self, now: bool) -> None:
        if now:
            self._exiting.set()
        else:
            self._exiting.clear()

    async def main_loop(self) -> None:
        """Hold every connection to its deadlines, now and then, until it is to stop.

        uvicorn's own wakes up ten times a second to see whether it is.
        """
        exiting = asyncio.create_task(self._exiting.wait())
        try:
            while not exiting.done():
                sweep(self.server_state.connections, asyncio.get_running_loop().time())
                await self.on_tick(0)  # the date that answers bear
                self._request_ids.turn()
                await asyncio.wait([exiting], timeout=SWEEP_SECONDS)
        finally:
            exiting.cancel()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Take the signals ourselves: uvicorn would close the listener at once.

        Not by the loop: an agent may hold it.
        """
        loop, on_stop = asyncio.get_running_loop(), self._on_stop
        if on_stop is None:
            yield
            return

        def signalled(_: int, __: object) -> None:
            on_stop()
            loop.call_soon_threadsafe(self._stop)

        formerly = {number: signal.signal(number, signalled) for number in STOPPING}
        try:
            yield
        finally:
            for number, former in formerly.items():
                signal.signal(number, former)

    def _stop(self) -> None:
        if self._draining is not None:
            self.should_exit = self.force_exit = True
            return
        self._draining = asyncio.get_running_loop().create_task(self._drain_then_exit())

    async def _drain_then_exit(self) -> None:
        try:
            await self._drain()
        finally:
            self.should_exit = True


def sweep(connections: Iterable[Any], now: float) -> None:
    """Look at every connection once."""
    for connection in tuple(connections):
        connection.check(now)


def hardened(
    limits: EdgeLimits, note: Note, proxies: Proxies, refusing: Refuse, request_ids: RequestIds
) -> type[HardProtocol]:
    """The protocol class for these limits; `note` is told of every refusal."""
    shared = {
        "limits": limits,
        "note": staticmethod(note),
        "proxies": proxies,
        "held": Held(),
        "refusing": (refusing,),
        "request_ids": request_ids,
    }
    return type("HardProtocol", (HardProtocol,), shared)


def room_for(connections: int) -> int:
    """How many connections can be open: fewer than asked for if the system allows fewer files.

    The system's soft limit is raised as far as it lets us, which needs no right.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + SPARE_CONNECTIONS + OTHER_FILES
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(1, min(connections, soft - SPARE_CONNECTIONS - OTHER_FILES))


def make_server(
    app: Any,
    *,
    sockets: list[socket.socket],
    limits: EdgeLimits,
    note: Note,
    proxies: Proxies,
    refusing: Refuse,
    request_ids: RequestIds,
    drain: Drain,
    on_listening: Callable[[], None],
    on_stop: Callable[[], None] | None = lambda: None,
) -> Server:
    """A server for the application; the protocol class is named, never chosen by chance.

    `sockets` are bound, and are those it listens on.
    `note` is told of every request that is refused before the application sees it; `proxies` are
    believed when they tell who called them, and `refusing` has the words of refusals.
    `request_ids` names the requests of who does not. Without `on_stop` the signals are another
    server's.
    """
    config = uvicorn.Config(
        app,
        http=hardened(limits, note, proxies, refusing, request_ids),
        loop="uvloop",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level="warning",  # where it listens and that it stopped is said once, by us
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=2,
    )
    return Server(
        config,
        sockets=sockets,
        drain=drain,
        request_ids=request_ids,
        on_listening=on_listening,
        on_stop=on_stop,
    )
