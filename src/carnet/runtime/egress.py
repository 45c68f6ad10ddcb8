"""The one way out: requests to other machines, over aiohttp, through a gate.

It knows HTTP and addresses; it knows nothing of calls, chains or money.

Law 1. Every address is judged before it is dialled, and the judged one is dialled: by our resolver
       for names, and once more where the socket is made, which also sees address literals.
Law 2. A named destination may be anywhere, but over plain http only on loopback and private
       networks. A learned one is public, and its connections are never used again.
Law 3. No redirect is followed, no proxy of the environment is used, nothing is decompressed.
Law 4. Leaving the context, for whatever reason, aborts the socket unless the answer is complete.
Law 5. One timer an exchange bounds its first byte, its silences and its total.
Law 6. A request that is not idempotent by its method is sent again in one case alone: a reused
       connection was dead before any byte of an answer came, and the request carries a turn id.
"""

import asyncio
import errno
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextvars import ContextVar
from functools import lru_cache
from ipaddress import ip_address
from types import TracebackType
from typing import Final

from aiohttp import (
    ClientError,
    ClientRequest,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    ServerDisconnectedError,
    TCPConnector,
)
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.connector import AddrInfoType, Connection
from yarl import URL

from carnet.errors import (
    CarnetError,
    EgressRefused,
    ProviderError,
    ProviderTimeout,
    ProviderUnavailable,
)
from carnet.faults import point
from carnet.ports.door import NotSent, Outbound
from carnet.runtime.addresses import Allowed, Route, find_route
from carnet.runtime.patience import Patience
from carnet.runtime.system import system_lookup

Lookup = Callable[[str, int], Awaitable[Sequence[str]]]

KEEPALIVE_SECONDS: Final = 15.0
TURN_HEADER: Final = "x-tangle-turnid"  # what makes a request safe to send twice

_MOST_ROUTES: Final = 1024
_MOST_BODY_OF_KEPT: Final = 256 * 1024  # connections that carried more are not kept
_OWN_HEADERS: Final = {"user-agent": "carnet", "accept": "*/*", "accept-encoding": "identity"}


class EgressDoor:
    """Sends requests. Used and closed within one event loop."""

    def __init__(
        self,
        *,
        allow: Sequence[str] = (),
        tls: ssl.SSLContext | None = None,
        keepalive_seconds: float = KEEPALIVE_SECONDS,
        lookup: Lookup = system_lookup,
    ) -> None:
        """Open the way out.

        Args:
            allow: `host:port` and networks that learned destinations may also be.
            tls: How certificates are checked, if not by the system's authorities.
            keepalive_seconds: How long an idle connection is kept.
            lookup: Gives the addresses of a name.
        """
        self._allowed = Allowed(allow)
        self._tls = tls
        self._keepalive_seconds = keepalive_seconds
        self._resolver = _Resolver(lookup)
        self._sessions: dict[bool, ClientSession] = {}
        self._routes: dict[str, tuple[Route, URL]] = {}
        self._closed = False

    def send(self, request: Outbound) -> "_Exchange":
        """Send, and give the answer's head; see `ports.door`."""
        return _Exchange(self, request)

    async def close(self) -> None:
        """Close every connection; nothing leaves any more."""
        self._closed = True
        sessions, self._sessions = self._sessions, {}
        for session in sessions.values():
            await session.close()

    def route(self, request: Outbound) -> tuple[Route, URL]:
        """Where a request goes, or EgressRefused."""
        if request.kind == "learned":  # judged anew each time
            return self._find(request)
        found = self._routes.get(request.url)
        if found is None:
            if len(self._routes) >= _MOST_ROUTES:
                self._routes.clear()
            found = self._routes[request.url] = self._find(request)
        return found

    def _find(self, request: Outbound) -> tuple[Route, URL]:
        route = find_route(request.url, request.kind, self._allowed)
        url = URL(request.url, encoded=True)
        if (url.raw_host, url.port) != (route.destination.host, route.destination.port):
            raise EgressRefused("two parsers disagree about the host of the URL")
        return route, url

    def session(self, *, reuse: bool) -> ClientSession:
        """The session whose connections are kept, or the one that dials anew each time."""
        found = self._sessions.get(reuse)
        if found is None:
            if self._closed:
                raise ProviderUnavailable("the way out is closed") from NotSent()
            connector = TCPConnector(
                resolver=self._resolver,
                socket_factory=_gate,
                use_dns_cache=False,
                ssl=True if self._tls is None else self._tls,
                limit=0,  # how many calls may be open is decided before they come here
                keepalive_timeout=self._keepalive_seconds if reuse else None,
                force_close=not reuse,
            )
            found = self._sessions[reuse] = ClientSession(
                connector=connector,
                request_class=_Request,
                headers=_OWN_HEADERS,
                cookie_jar=DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
            )
        return found


class _Exchange:
    """One request and its answer: the context, the answer, and the patience with both."""

    __slots__ = (
        *("_bounds", "_door", "_patience", "_received", "_request", "_response", "_reuse"),
        *("_transport", "_url", "body", "dialled", "refused", "route", "status"),
    )

    def __init__(self, door: EgressDoor, request: Outbound) -> None:
        self._door = door
        self._request = request
        self._bounds = request.bounds
        self.body = request.body
        self._response: ClientResponse | None = None
        self._transport: asyncio.Transport | None = None
        self._received = 0
        self.status = 0
        self.dialled = False
        self.refused = False

    async def __aenter__(self) -> "_Exchange":
        self.route, self._url = self._door.route(self._request)
        # A peer may answer before it has taken the whole of a large body, and leave the rest.
        self._reuse = self.route.reuse and len(self.body) <= _MOST_BODY_OF_KEPT
        bounds = self._bounds
        shortest = min(bounds.first_byte_seconds, bounds.idle_seconds)
        self._patience = patience = Patience(bounds.total_seconds, tick=shortest)
        patience.attend()
        point("upstream.before_connect")
        try:
            self._response = response = await self._send()
            _refuse_encoded(response)
        except BaseException:
            self._leave()
            raise
        patience.rest()
        patience.on_end = self._cut
        self.status = response.status
        point("upstream.first_byte")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        self._patience.stop()
        self._patience.on_end = None
        response, transport = self._response, self._transport
        if response is not None and response.closed and self._reuse:
            return  # complete; its connection may serve somebody else by now
        if transport is not None:
            transport.abort()  # not closed: what the peer has not read must not keep the socket
        if response is not None:
            response.close()

    def _cut(self) -> None:
        response = self._response
        if response is not None and not response.closed:
            response.content.set_exception(TimeoutError())
            if self._transport is not None:
                self._transport.abort()

    # ------------------------------------------------------------------ sending

    async def _send(self) -> ClientResponse:
        request = self._request
        headers = {"host": self.route.destination.authority, **request.headers}
        for name, secret in request.secrets.items():
            headers[name] = secret.reveal()
        if self.body or request.method == "POST":
            headers["content-length"] = str(len(self.body))
        while (response := await self._attempt(headers)) is None:
            pass
        return response

    async def _attempt(self, headers: dict[str, str]) -> ClientResponse | None:
        """Send once; None if a reused connection was dead and the next is to be a new one."""
        request, reuse = self._request, self._reuse
        before = _current.set(self)
        try:
            return await self._door.session(reuse=reuse).request(
                request.method,
                self._url,
                headers=headers,
                allow_redirects=False,
                timeout=_connect_within(self._bounds.connect_seconds),
            )
        except asyncio.CancelledError:
            if not self._patience.took():
                raise
            failure: CarnetError = ProviderTimeout("no answer in time")
        except (ClientError, OSError) as error:
            if reuse and self._is_stale(error) and TURN_HEADER in headers:
                self._reuse = False
                return None
            failure = self._told(error)
        finally:
            _current.reset(before)
        # Out here the failure does not drag aiohttp's along, which holds the headers we sent.
        raise failure

    def leaving(self, transport: asyncio.Transport | None) -> None:
        """The request is about to be written; from now on the peer may have seen it."""
        self._transport = transport
        self._patience.allow(self._bounds.first_byte_seconds)

    def _is_stale(self, error: Exception) -> bool:
        lost = isinstance(error, ServerDisconnectedError | OSError)
        return lost and self._transport is not None and not self.dialled

    def _told(self, error: Exception) -> CarnetError:
        if self.refused:
            return EgressRefused("the address may not be dialled")
        if self._transport is None:
            failure = ProviderUnavailable(_brief(error))
            failure.__cause__ = NotSent(_brief(error))
            return failure
        lost = isinstance(error, ServerDisconnectedError | OSError)
        return (ProviderUnavailable if lost else ProviderError)(_brief(error))

    # ------------------------------------------------------------------ the answer

    def header(self, name: str) -> str | None:
        return self._answered().headers.get(name)

    async def read(self) -> bytes:
        chunk = await self._next()
        chunks = [chunk]
        while chunk and not self._answered().content.at_eof():  # most come in one piece
            chunk = await self._next()
            chunks.append(chunk)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def chunks(self) -> AsyncIterator[bytes]:
        while chunk := await self._next():
            yield chunk

    async def _next(self) -> bytes:
        content = self._answered().content
        self._patience.allow(self._bounds.idle_seconds)
        try:
            chunk = await content.readany()
        except (ClientError, OSError) as error:
            if self._patience.ended:
                raise ProviderTimeout("the answer stopped, or took too long") from None
            raise ProviderError(_brief(error)) from None
        self._patience.rest()  # a reader that takes its time is not the peer's silence
        self._received += len(chunk)
        if self._received > self._bounds.max_bytes:
            raise ProviderError(f"the answer is larger than {self._bounds.max_bytes} bytes")
        point("upstream.mid_event")
        if content.at_eof():
            point("upstream.done")
        return chunk

    def _answered(self) -> ClientResponse:
        if self._response is None:
            raise RuntimeError("the answer is there only within the context")
        return self._response


# ---------------------------------------------------------------------- what aiohttp is given

_current: ContextVar[_Exchange | None] = ContextVar("carnet_exchange", default=None)


class _Request(ClientRequest):
    """A request that tells its exchange when it leaves, and writes the body itself.

    aiohttp is given none: it would start a task to write it.
    """

    async def send(self, conn: Connection) -> ClientResponse:
        exchange = _current.get()
        if exchange is None:
            raise EgressRefused("a request came past the door")
        transport = conn.transport
        exchange.leaving(transport)
        response = await super().send(conn)
        if transport is not None:
            transport.write(exchange.body)
        # In the next round of the loop: uvloop hands its writes to the kernel in between.
        self.loop.call_soon(point, "upstream.request_sent")
        return response


class _Resolver(AbstractResolver):
    """Looks a name up once, and gives its addresses only if every one may be dialled."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_UNSPEC,  # noqa: ARG002  both are asked for
    ) -> list[ResolveResult]:
        exchange = _current.get()
        found = []
        for text in await self._lookup(host, port):
            ip = ip_address(text)
            if exchange is None or not exchange.route.may_dial(ip):
                raise EgressRefused("the name leads to an address that may not be dialled")
            found.append(
                ResolveResult(
                    hostname=host,
                    host=text,
                    port=port,
                    family=socket.AF_INET6 if ":" in text else socket.AF_INET,
                    proto=socket.IPPROTO_TCP,
                    flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
                )
            )
        if not found:
            raise OSError(errno.ENOENT, "the name has no address")
        return found

    async def close(self) -> None:
        """Nothing is kept."""


def _gate(address: AddrInfoType) -> socket.socket:
    """Make the socket for an address, if it may be dialled for the exchange at hand."""
    family, kind, protocol, _, where = address
    exchange = _current.get()
    if exchange is None or not exchange.route.may_dial(ip_address(where[0])):
        if exchange is not None:
            exchange.refused = True
        raise OSError(errno.EACCES, "the address may not be dialled")
    exchange.dialled = True
    return socket.socket(family, kind, protocol)


@lru_cache(maxsize=64)
def _connect_within(seconds: float) -> ClientTimeout:
    """What aiohttp bounds for us: the lookup and the connection. The rest is `Patience`."""
    return ClientTimeout(total=None, connect=seconds)


def _refuse_encoded(response: ClientResponse) -> None:
    encoding = response.headers.get("content-encoding")
    if encoding is not None and encoding.strip().lower() not in {"", "identity"}:
        raise ProviderError("the answer is encoded, which was not asked for")


def _brief(error: Exception) -> str:
    # Never str(error): aiohttp quotes what the peer sent, which may be what we sent it.
    reason = f": {error.strerror}" if isinstance(error, OSError) and error.strerror else ""
    return f"{type(error).__name__}{reason}"
