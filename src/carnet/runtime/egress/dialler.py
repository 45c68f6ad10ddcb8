"""Making connections: a name is looked up, its addresses are judged, the judged ones are dialled.

Law 1. Every address that a name leads to must be one that may be dialled; if one of them is not,
       none is: a name that points inward as well as outward is not an honest one.
Law 2. What is dialled is an address, never a name: nobody looks it up a second time.
       But where the operator put the file of a socket in the place of a name.
Law 3. Addresses are tried in order, each with a head start, and the first to answer is taken.
"""

import asyncio
import contextlib
import errno
import ssl
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import ip_address
from itertools import chain, zip_longest
from typing import Final

from carnet.errors import ProviderUnavailable
from carnet.ports.world.http_client import NameUnknown, NotSent
from carnet.runtime.egress.addresses import EgressRoute, IPAddress
from carnet.runtime.egress.connection import Connection

Lookup = Callable[[str, int], Awaitable[Sequence[str]]]

HEAD_START_SECONDS: Final = 0.25


class Dialler:
    """Makes connections."""

    def __init__(self, lookup: Lookup, tls: ssl.SSLContext | None) -> None:
        """`tls` says how certificates are checked, if not by the system's authorities."""
        self._lookup = lookup
        self._tls = tls

    async def dial(self, route: EgressRoute, seconds: float) -> Connection:
        """Connect within so many seconds; whatever goes wrong, nothing has been sent."""
        try:
            async with asyncio.timeout(seconds):
                if route.socket is not None:
                    return await _open_file(route.socket)
                return await self._first_of(await self._addresses(route), route)
        except TimeoutError:
            reason = "no connection in time"
        except OSError as error:  # the words of TLS and of the system, never a peer's
            reason = f"{type(error).__name__}{f': {error.strerror}' if error.strerror else ''}"
        raise ProviderUnavailable(reason) from NotSent(reason)

    async def judge(self, route: EgressRoute, seconds: float) -> None:
        """Refuse a route whose name leads to where it may not; one that leads nowhere may later."""
        with contextlib.suppress(TimeoutError, OSError, ProviderUnavailable):
            async with asyncio.timeout(seconds):
                await self._addresses(route)

    async def _addresses(self, route: EgressRoute) -> list[IPAddress]:
        at = route.destination
        if at.ip is not None:
            return [at.ip]  # judged when the route was found
        try:
            found = [ip_address(text) for text in await self._lookup(at.host, at.port)]
        except UnicodeError:
            raise OSError(errno.ENOENT, "the name cannot be looked up") from None
        except OSError as error:
            reason = f"the name is not known: {error.strerror}"
            raise ProviderUnavailable(reason) from NameUnknown(reason)
        for ip in found:
            route.check(ip)
        if not found:
            raise OSError(errno.ENOENT, "the name has no address")
        return in_turn(found)

    async def _first_of(self, addresses: Sequence[IPAddress], route: EgressRoute) -> Connection:
        if len(addresses) == 1:
            return await self._connect(addresses[0], route)
        tasks: list[asyncio.Task[Connection]] = []
        taken: asyncio.Task[Connection] | None = None
        try:
            for ip in addresses:
                tasks.append(asyncio.create_task(self._connect(ip, route)))
                is_last = len(tasks) == len(addresses)
                taken = await _first_done(tasks, None if is_last else HEAD_START_SECONDS)
                if taken is not None:
                    return taken.result()
        finally:
            for task in tasks:
                if task is not taken:
                    task.cancel()
                    task.add_done_callback(_close_late)
        return tasks[-1].result()  # all have failed, and this one says how

    async def _connect(self, ip: IPAddress, route: EgressRoute) -> Connection:
        route.check(ip)
        loop = asyncio.get_running_loop()
        at = route.destination
        encrypted = at.scheme == "https"
        # The loop makes the socket: one of ours would, if this is cancelled, be closed twice.
        _, connection = await loop.create_connection(
            lambda: Connection(loop),
            str(ip),
            at.port,
            ssl=self._context() if encrypted else None,
            server_hostname=at.host.rstrip(".") if encrypted else None,
        )
        return connection

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls


async def _open_file(path: str) -> Connection:
    """A connection to the socket of a file."""
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_unix_connection(lambda: Connection(loop), path)
    return connection


def in_turn(addresses: Sequence[IPAddress]) -> list[IPAddress]:
    """The same addresses, the two families in turn: if one does not work here, the other may."""
    first = [ip for ip in addresses if ip.version == addresses[0].version]
    other = [ip for ip in addresses if ip.version != addresses[0].version]
    pairs = chain.from_iterable(zip_longest(first, other))
    return [ip for ip in pairs if ip is not None]


async def _first_done(
    tasks: "Sequence[asyncio.Task[Connection]]", head_start: float | None
) -> "asyncio.Task[Connection] | None":
    """The first that has connected; None if it is the next one's turn, or none is left.

    One that failed by no fault of the network's is also taken: no address covers up a refusal.
    """
    running = {task for task in tasks if not task.done()}
    while running:
        done, running = await asyncio.wait(
            running, timeout=head_start, return_when=asyncio.FIRST_COMPLETED
        )
        for task in done:
            if not isinstance(task.exception(), OSError):
                return task
        if head_start is not None:
            break
    return None


def _close_late(task: "asyncio.Task[Connection]") -> None:
    """One that was not taken: it may have connected all the same."""
    if not task.cancelled() and task.exception() is None:
        task.result().abort()
