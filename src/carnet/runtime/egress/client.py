"""The HTTP client: sends requests to other machines, within rules and bounds.

It knows destinations, addresses and time; `runtime.egress.connection` knows HTTP. It knows
nothing of calls, chains or money.

Law 1. Every address is judged before it is dialled, and the judged one is dialled: a name is looked
       up once, and every address it leads to must be one that may be dialled.
Law 2. A named destination may be anywhere, but over plain http only on loopback and private
       networks. A learned one is public, and its connections are never used again. The file of a
       socket is dialled for the one host that stands for it, and only where that is named.
Law 3. No redirect is followed, no proxy of the environment is used, nothing is decompressed.
Law 4. Leaving the context, for whatever reason, aborts the socket unless the answer is complete.
Law 5. The first byte, the silences and the total of an exchange are bounded (`Deadlines`).
Law 6. A request is sent once: who may send it again, and how often, decides whoever asked for it.
       Where a kept connection turns out to be dead, those kept beside it are not used either.
Law 7. An exchange leaves no reference cycle behind: the collector of cycles runs rarely.
"""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import Final

import carnet.faults
from carnet.core.memo import Memo
from carnet.errors import ProviderError, ProviderTimeout, ProviderUnavailable
from carnet.ports.world.http_client import NotSent, Outbound, Unanswered
from carnet.runtime.egress.addresses import Allowed, EgressRoute, find_route
from carnet.runtime.egress.connection import Broken, Connection, Lost
from carnet.runtime.egress.dialler import Dialler, Lookup
from carnet.runtime.system import SystemLookup
from carnet.runtime.wrappers.timed import Deadlines

KEEPALIVE_SECONDS: Final = 15.0
NAMED_LOOKUPS: Final = 64  # names that are looked up at once
LEARNED_LOOKUPS: Final = 16  # and of those that strangers name
JUDGED_LOOKUPS: Final = 8  # and of those that are judged and not dialled yet
JUDGE_SECONDS: Final = 3.0  # for looking up a name that is not dialled yet

_MOST_ROUTES: Final = 1024
_MOST_IDLE: Final = 256  # connections to one destination that wait for work
_MOST_BODY_OF_KEPT: Final = 256 * 1024  # connections that carried more are not kept
_OWN_HEADERS: Final = {"user-agent": "carnet", "accept": "*/*", "accept-encoding": "identity"}
# Names of fields as connections have them: those that every answer is asked for.
_FIELDS: Final = {
    name: name.encode() for name in ("content-type", "retry-after", "date", "carnet-receipt")
}
_OTHER_ENDS: Final = frozenset({"HEAD", "CONNECT"})
_ENCODING: Final = b"content-encoding"
_HEAD: Final = re.compile(r"[^\r\n\0]*(?:\r\n[^\r\n\0]*)*")

Where = tuple[str, str, int]  # scheme, host and port: whom a connection belongs to


class EgressClient:
    """Sends requests. Used and closed within one event loop."""

    def __init__(
        self,
        *,
        allow: Sequence[str] = (),
        tls: ssl.SSLContext | None = None,
        keepalive_seconds: float = KEEPALIVE_SECONDS,
        lookup: Lookup | None = None,
        sockets: Mapping[str, str] | None = None,
    ) -> None:
        """A client without connections yet.

        Args:
            allow: `host:port` and networks that learned destinations may also be.
            tls: How certificates are checked, if not by the system's authorities.
            keepalive_seconds: How long an idle connection is kept.
            lookup: Gives the addresses of a name, if not the system.
            sockets: The files of sockets behind names of hosts, for named destinations alone.
        """
        self._allowed = Allowed(allow)
        self._sockets = sockets or {}
        self._keepalive_seconds = keepalive_seconds
        self._dialler = Dialler(lookup or SystemLookup(NAMED_LOOKUPS), tls)
        self._learned_dialler = Dialler(lookup or SystemLookup(LEARNED_LOOKUPS), tls)
        # Names that are only looked at have threads of their own: slow ones hold up no webhook.
        self._judging_dialler = Dialler(lookup or SystemLookup(JUDGED_LOOKUPS), tls)
        self._routes: Memo[str, EgressRoute] = Memo(_MOST_ROUTES)
        self._idle: dict[Where, list[Connection]] = {}
        self._sweeping: asyncio.TimerHandle | None = None
        self._open: set[Connection] = set()
        self._closed = False

    def send(self, request: Outbound) -> "_Exchange":
        """Send, and give the answer's head; see `ports.world.http_client`."""
        return _Exchange(self, request)

    async def close(self) -> None:
        """Close every connection; nothing leaves any more."""
        self._closed = True
        if self._sweeping is not None:
            self._sweeping.cancel()
        self._idle.clear()
        for connection in self._open:
            connection.fail(Lost, "the HTTP client was closed")
        self._open.clear()
        await asyncio.sleep(0)  # so that the sockets are gone when this returns

    def route(self, request: Outbound) -> EgressRoute:
        """Where a request goes, or EgressRefused."""
        if request.kind == "learned":  # judged anew each time
            return find_route(request.url, request.kind, self._allowed)
        found = self._routes.get(request.url)
        if found is None:
            found = find_route(request.url, request.kind, self._allowed)
            found.socket = self._sockets.get(found.destination.host)
            self._routes.keep(request.url, found)
        return found

    async def judge(self, url: str) -> None:
        """Refuse a URL that a peer may not make us call, without calling it: EgressRefused.

        A name that leads nowhere now is no reason; whoever dials it later judges it anew.
        """
        route = find_route(url, "learned", self._allowed)
        await self._judging_dialler.judge(route, JUDGE_SECONDS)

    # ------------------------------------------------------------------ connections

    def idle(self, route: EgressRoute) -> Connection | None:
        """A connection that is there already, and can have no answer waiting in it."""
        waiting = self._idle.get(route.where)
        if not waiting:
            return None
        while waiting:
            connection = waiting.pop()
            oldest = connection.loop.time() - self._keepalive_seconds
            if connection.is_open and connection.idle_since > oldest and connection.is_quiet:
                return connection
            self.drop(connection)
        return None

    def forget(self, route: EgressRoute) -> None:
        """Use none of the connections that are kept to a destination: one of them was dead."""
        for connection in self._idle.pop(route.where, ()):
            self.drop(connection)

    async def dial(self, route: EgressRoute, seconds: float) -> Connection:
        """A new connection; whatever goes wrong, nothing has been sent."""
        if self._closed:
            raise ProviderUnavailable("the HTTP client is closed") from NotSent()
        dialler = self._dialler if route.reuse else self._learned_dialler
        connection = await dialler.dial(route, seconds)
        if self._closed:
            connection.abort()
            raise ProviderUnavailable("the HTTP client was closed") from NotSent()
        self._open.add(connection)
        return connection

    def keep(self, route: EgressRoute, connection: Connection) -> None:
        """Keep a connection for the next request."""
        waiting = self._idle.get(route.where)
        if waiting is None:
            waiting = self._idle[route.where] = []
        if self._closed or len(waiting) >= _MOST_IDLE:
            self.drop(connection)
            return
        loop = connection.loop
        connection.idle_since = loop.time()
        waiting += (connection,)
        if self._sweeping is None:
            self._sweeping = loop.call_later(self._keepalive_seconds, self._sweep)

    def drop(self, connection: Connection) -> None:
        """End a connection at once."""
        self._open.discard(connection)
        connection.abort()

    def _sweep(self) -> None:
        """Close what nobody has used for a while, and forget what the peers have closed."""
        loop = asyncio.get_running_loop()
        before = loop.time() - self._keepalive_seconds
        for where, waiting in list(self._idle.items()):
            fresh = [one for one in waiting if one.is_open and one.idle_since > before]
            for connection in set(waiting) - set(fresh):
                self.drop(connection)
            if fresh:
                self._idle[where] = fresh
            else:
                del self._idle[where]
        self._sweeping = None
        if self._idle:
            self._sweeping = loop.call_later(self._keepalive_seconds / 2, self._sweep)


class _Exchange:
    """One request and its answer: the context, the answer, and the deadlines of both."""

    __slots__ = (
        *("_bounds", "_connection", "_client", "_deadlines", "_received", "_request", "_reuse"),
        *("_route", "status"),
    )

    def __init__(self, client: EgressClient, request: Outbound) -> None:
        self._client = client
        self._request = request
        self._bounds = request.bounds
        self._connection: Connection | None = None
        self._received = 0
        self.status = 0

    async def __aenter__(self) -> "_Exchange":
        request = self._request
        self._route = route = self._client.route(request)
        # A peer may answer before it has taken the whole of a large body, and leave the rest.
        self._reuse = route.reuse and len(request.body) <= _MOST_BODY_OF_KEPT
        head = _write_head(route, request)
        self._deadlines = Deadlines(self._bounds.total_seconds, self._cut)
        if carnet.faults.is_armed:
            carnet.faults.point("upstream.before_connect")
        try:
            connection = await self._ask(head)
            if _ENCODING in connection.fields and request.is_body_read:
                _refuse_encoded(connection)
        except BaseException:
            self._leave()
            raise
        self._deadlines.rest()
        del self._request  # an answer may last for hours, and needs nothing of it
        self.status = connection.status
        if carnet.faults.is_armed:
            carnet.faults.point("upstream.first_byte")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        self._deadlines.stop()
        self._deadlines.on_end = None  # it held us
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if connection.release() and self._reuse:
            self._client.keep(self._route, connection)
        else:
            self._client.drop(connection)  # not closed: what the peer has not read must not keep it

    def _cut(self) -> None:
        if self._connection is not None:
            self._connection.fail(TimeoutError)

    # ------------------------------------------------------------------ sending

    async def _ask(self, head: bytes) -> Connection:
        """Send, and wait for the head of the answer."""
        old = self._client.idle(self._route) if self._reuse else None
        if old is None:
            return await self._ask_anew(head)
        try:
            return await self._ask_on(old, head)
        except Lost as lost:
            if old.has_received:
                raise ProviderUnavailable(str(lost)) from None
            self._client.forget(self._route)
            raise ProviderUnavailable(str(lost)) from Unanswered()

    async def _ask_anew(self, head: bytes) -> Connection:
        self._deadlines.rest()
        seconds = min(self._bounds.connect_seconds, self._deadlines.left())
        connection = await self._client.dial(self._route, seconds)
        try:
            return await self._ask_on(connection, head)
        except Lost as lost:
            raise ProviderUnavailable(str(lost)) from None

    async def _ask_on(self, connection: Connection, head: bytes) -> Connection:
        self._connection = connection
        if not self._deadlines.allow(self._bounds.first_byte_seconds):
            raise ProviderUnavailable("no time was left to send") from NotSent()
        connection.ask(head, self._request.body)
        if (
            carnet.faults.is_armed
        ):  # in the next round: uvloop hands its writes to the kernel in between
            asyncio.get_running_loop().call_soon(carnet.faults.point, "upstream.request_sent")
        try:
            while not connection.has_head:
                await connection.change()
        except TimeoutError:
            raise ProviderTimeout("no answer in time") from None
        except Broken as broken:
            raise ProviderError(f"the answer cannot be read: {broken}") from None
        return connection

    # ------------------------------------------------------------------ the answer

    def header(self, name: str) -> str | None:
        field = _FIELDS[name] if name in _FIELDS else name.lower().encode("latin-1")
        value = (self._connection or self._answered()).fields.get(field)
        return None if value is None else str(value, "latin-1").strip(" \t")

    async def read(self) -> bytes:
        chunk = await self.next()
        if self._connection is not None and self._connection.complete:  # most come in one piece
            return chunk
        chunks = [chunk]
        while chunk:
            chunk = await self.next()
            chunks.append(chunk)
        return b"".join(chunks)

    async def chunks(self) -> AsyncIterator[bytes]:
        while chunk := await self.next():
            yield chunk

    async def next(self) -> bytes:
        # It waits here and in no function within: a silent stream holds every frame for hours.
        connection = self._connection or self._answered()
        chunk = connection.take()
        if not chunk and not connection.complete:
            self._deadlines.allow(self._bounds.idle_seconds)
            try:
                while not chunk and not connection.complete:
                    await connection.change()
                    chunk = connection.take()
            except TimeoutError:
                raise ProviderTimeout("the answer stopped, or took too long") from None
            except (Broken, Lost) as error:
                raise ProviderError(f"the answer broke off: {error}") from None
            self._deadlines.rest()  # a reader that takes its time is not the peer's silence
        self._received += len(chunk)
        if self._received > self._bounds.max_bytes:
            most = self._bounds.max_bytes
            raise ProviderError(f"the answer is larger than {most} bytes")
        if carnet.faults.is_armed:
            carnet.faults.point("upstream.mid_event")
            if connection.complete:
                carnet.faults.point("upstream.done")
        return chunk

    def _answered(self) -> Connection:
        if self._connection is None:
            raise RuntimeError("the answer is there only within the context")
        return self._connection


def _write_head(route: EgressRoute, request: Outbound) -> bytes:
    """The head of a request; nothing that could end its line leaves."""
    if request.method in _OTHER_ENDS:
        raise ValueError("the answers to this method end elsewhere")
    fields = {"host": route.destination.authority, **_OWN_HEADERS, **request.headers}
    if request.secrets:
        fields |= {name: secret.reveal() for name, secret in request.secrets.items()}
    if request.body or request.method == "POST":
        fields["content-length"] = str(len(request.body))
    lines = [f"{request.method} {route.target} HTTP/1.1", *map(": ".join, fields.items())]
    head = "\r\n".join(lines)
    if _HEAD.fullmatch(head) is None or head.split("\r\n") != lines:
        raise ValueError("a header holds a character that would end its line")
    return f"{head}\r\n\r\n".encode("latin-1")


def _refuse_encoded(connection: Connection) -> None:
    encoding = connection.fields[_ENCODING]
    if encoding.strip(b" \t").lower() not in {b"", b"identity"}:
        raise ProviderError("the answer is encoded, which was not asked for")
