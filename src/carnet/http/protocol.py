"""The edge: uvicorn's HTTP protocol, held to deadlines, sizes and one reading of every request.

It judges bytes and time, never meaning: who calls, which route and what the fields say is for the
application. It leans on the insides of `HttpToolsProtocol`, so uvicorn is pinned to one minor
version, and the raw requests of `tests/edge` say whether the next one still behaves.

Law 1. Every connection is bounded in time and space: a head, a body and an answer each have an
       absolute deadline or a rate, also for whoever sends nothing or reads nothing.
Law 2. A request that two servers could read differently is refused before the application sees it;
       nothing behind it on the same connection is read.
Law 3. A refusal never overtakes an answer: behind requests that are still being answered the
       connection is closed after the last of them, and nothing is written.
Law 4. One sweep of all connections watches the clock, in place of a timer for each request, and
       the usual request costs no callback for each of its header fields.
Law 5. Beyond what the gateway can take at once, work is refused and questions after its health are
       answered: a few connections are kept for those alone.
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Any, ClassVar, Final

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from carnet.errors import (
    BodyTimeout,
    BodyTooLarge,
    CarnetError,
    HeadersTooLarge,
    HeaderTimeout,
    MalformedRequest,
    Overloaded,
    UriTooLong,
)
from carnet.http.arrival import Arrivals, Few, Signal, cause_of
from carnet.http.link import (
    LINE,
    EdgeLimits,
    Held,
    Line,
    body_seconds,
    check_head,
    has_ended,
    last_words,
    origin_form,
)
from carnet.http.proxies import Proxies
from carnet.http.refusal import Refuse

logger = logging.getLogger("carnet.edge")

Note = Callable[[CarnetError], None]

SWEEP_SECONDS: Final = 0.5
LINGER_SECONDS: Final = 1.0  # what is still under way is discarded, so that the refusal arrives
MOST_PIPELINED: Final = 32  # requests that wait behind the one being answered
SEND_BUFFER_BYTES: Final = 128 * 1024  # the kernel would hold 4 MiB for a reader that never reads
MOST_PIECES: Final = 4096  # of a body, unless they have 60 bytes on average
LARGE_BODY_BYTES: Final = 64 * 1024  # a smaller one is not worth counting
SPARE_CONNECTIONS: Final = 64  # beyond `connections`, for whoever asks after our health
SPARE_SECONDS: Final = 2.0  # that one of them has for its head
VITAL: Final = frozenset({b"/healthz", b"/readyz", b"/metrics"})  # answered whatever the load

# What a connection is doing.
_IDLE: Final = 0  # between requests
_HEAD: Final = 1  # a head is arriving; so is the first, from the moment of connecting
_BODY: Final = 2  # a body is arriving
_DEAF: Final = 3  # the last answer is on its way; nothing more is read
_LINGER: Final = 4  # refused; waiting for the other side to close


class HardProtocol(Arrivals):
    """One connection. `server.hardened` makes the class for a set of limits."""

    limits: ClassVar[EdgeLimits]
    note: ClassVar[Note]
    proxies: ClassVar[Proxies]
    held: ClassVar[Held]
    refusing: ClassVar[tuple[Refuse]]  # a function by itself would be taken for a method

    # Beside uvicorn's attributes these would be too many for a dictionary with shared keys.
    __slots__ = (
        *("_backlog", "_bounds", "_field_count", "_fruitless", "_held", "_is_behind_proxy"),
        *("_is_spare", "_moved", "_pieces", "_ready", "_running", "_sender", "_since", "_size"),
        "_state",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.pipeline = Few()  # type: ignore[assignment]  # all that is asked of a deque
        self.url, self._state, self._bounds = b"", _HEAD, self.limits  # since its head was read
        self._since = self.loop.time()  # when this state began, or when it last was not our turn
        self._fruitless = 0  # bytes since the last end of a head or piece of a body
        self._size = self._pieces = 0  # of the body so far
        self._held, self._sender = 0, (b"", b"")  # its part in `held`, and whose that is
        self._is_spare = self._is_behind_proxy = False  # spare: one of those beyond the limit
        self._field_count = 0  # at the end of the head: what comes later is a trailer
        self._running: RequestResponseCycle | None = None
        self._ready: tuple[RequestResponseCycle, Any] | None = None  # not yet sure to start
        self._backlog = 0  # bytes the reader has not taken
        self._moved = self._since  # when it last took some

    # ----------------------------------------------------------------- what the transport says

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # of TCP
        """Bound what the kernel keeps for a slow reader, and how many connections there are."""
        super().connection_made(transport)
        self.flow._is_writable_event = Signal(is_set=True)  # type: ignore[assignment]  # noqa: SLF001  as in `pipeline`
        over = len(self.connections) - self.limits.connections
        self._is_spare = over > 0
        if over > SPARE_CONNECTIONS:
            transport.abort()
            return
        self._is_behind_proxy = self.client is not None and self.proxies.trusts(self.client[0])
        kernel = transport.get_extra_info("socket")
        if kernel is not None:
            kernel.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the request being answered too: uvicorn tells only the one that came last."""
        running = self._running
        if running is not None and not running.response_complete:
            running.disconnected = True
            running.message_event.set()
            running.scope[LINE].go()  # type: ignore[literal-required]  # our own key
        self.pipeline.clear()
        self._let_go()
        super().connection_lost(exc)

    def resume_writing(self) -> None:
        """Note that the reader took something: the sweep may see a buffer that is full again."""
        self._moved = self.loop.time()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        """Read on, within the limits."""
        state = self._state
        if state == _IDLE:  # any byte begins a head, also a stray line break
            self._state = _HEAD
            self._since = self.loop.time()
            self._fruitless = 0
        elif state >= _DEAF:
            return
        self._fruitless += len(data)
        rest = b""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as end:
            rest = self._decline(data[end.args[0] :])
        except httptools.HttpParserError as error:
            self.refuse(cause_of(error))
        if rest:
            self.data_received(rest)
        elif self._ready is not None:
            ready, self._ready = self._ready, None
            self.start(*ready)
        if self._fruitless > self.limits.header_bytes and self._state < _DEAF:
            self.refuse(self._too_much())

    def _decline(self, rest: bytes) -> bytes:
        """Go on as if no other protocol had been asked for; gives what is unread of its body."""
        self._hang_up_after(self.cycle)
        if self.parser.should_upgrade():  # there is no body, or it would be another parser
            return b""
        self.reopen(self.cycle)
        self._state, self._field_count = _BODY, 0
        return rest

    def _too_much(self) -> CarnetError:
        if self._state == _HEAD and len(self.url) > self.limits.url_bytes:
            return UriTooLong(limit=self.limits.url_bytes)
        return HeadersTooLarge(limit=self.limits.header_bytes, fields=self.limits.header_fields)

    # -------------------------------------------------------------------- what the parser says

    def on_headers_complete(self) -> None:
        """Judge the head before a request is made of it."""
        parser, fields, self._bounds = self.parser, self.headers, self.limits
        if parser.get_http_version() != "1.1":
            raise MalformedRequest("it is not HTTP/1.1")
        if self.url[:1] != b"/":
            self.url = origin_form(parser.get_method(), self.url, fields)
        has_body, expects = check_head(self.url, fields, self.limits)
        is_declined = has_body and parser.should_upgrade()
        if is_declined and parser.get_method() == b"CONNECT":
            raise MalformedRequest("it asks for a tunnel and has a body")
        if self.pipeline and len(self.pipeline) >= MOST_PIPELINED:
            raise MalformedRequest("too many requests wait on this connection")
        if self._is_spare or len(self.tasks) >= self.limits.requests:
            self._check_vital()
        client, scheme = self._believed() if self._is_behind_proxy else (self.client, self.scheme)
        before: RequestResponseCycle | None = self.cycle
        cycle = self.cycle = self.make_request(client, scheme, expects=expects)
        cycle.scope[LINE].is_proxied = self._is_behind_proxy  # type: ignore[literal-required]
        if before is None or before.response_complete:
            # What came with the head is read first: if it is malformed, nothing has begun.
            self._running, self._ready = cycle, (cycle, self.config.loaded_app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((cycle, self.config.loaded_app))
        self._state, self._since = _BODY, self.loop.time()
        self._fruitless = self._size = self._pieces = 0
        self._field_count = len(fields)
        if is_declined:
            self.parser = self.parser_of_body()

    def _check_vital(self) -> None:
        if self.url.partition(b"?")[0] not in VITAL:
            raise Overloaded("requests or connections", retry_after=1)

    def _believed(self) -> tuple[tuple[str, int] | None, str | None]:
        """The address and the scheme that a trusted proxy tells of the request."""
        peer = self.client[0] if self.client is not None else ""
        origin = self.proxies.origin(peer, self.headers)
        # Nobody tells the port.
        client = self.client if origin.address == peer else (origin.address, 0)
        return client, origin.scheme or self.scheme

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body, up to the most that any route takes."""
        self._fruitless = 0
        self._size += len(body)
        self._pieces += 1
        if self._pieces > MOST_PIECES and self._size < 60 * self._pieces:
            raise MalformedRequest("it comes in too many small pieces")  # each costs a call (A73)
        if self._size > self._bounds.body_bytes:
            raise BodyTooLarge(limit=self._bounds.body_bytes)
        cycle = self.cycle
        if cycle.response_complete:
            return
        if self._size > LARGE_BODY_BYTES:
            self._hold(len(body))
        cycle.body += body
        if self._size > HIGH_WATER_LIMIT and len(cycle.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        if self._ready is None:  # else nobody can wait for it yet: its end is told
            cycle.message_event.set()

    def _hold(self, size: int) -> None:
        self._sender = self._sender if self._held else self.held.sender(self.cycle.scope)
        self.held.take(self._sender, size, self._bounds)
        self._held += size
        self.cycle.scope[LINE].held += size  # type: ignore[literal-required]  # our own key

    def _let_go(self) -> None:
        self.held.give(self._sender, self._held)
        self._held = 0

    def _let_go_of(self, cycle: RequestResponseCycle | None) -> None:
        """Let go of one request's body; another may wait behind it."""
        line: Line | None = None if cycle is None else cycle.scope[LINE]  # type: ignore[literal-required]  # our own key
        if line is not None:
            size, line.held = min(line.held, self._held), 0
            self.held.give(self._sender, size)
            self._held -= size

    def on_message_complete(self) -> None:
        """End the request; a trailer would be taken for a header that nobody judged."""
        if len(self.headers) != self._field_count:
            raise MalformedRequest("it has trailer fields")
        self.headers = []  # the request has them, for as long as it needs them
        self._state = _IDLE
        if self.cycle.response_complete:
            self._since = self.loop.time()
            return
        self.cycle.more_body = False
        self.cycle.message_event.set()

    def on_body_complete(self) -> None:
        """End the request, and read no other: it asked for another protocol."""
        self.on_message_complete()
        self._state = _DEAF

    def on_response_complete(self) -> None:
        """Go on with the next request that waits; the sweep closes a connection that stays idle."""
        self.server_state.total_requests += 1
        if self._held:
            self._let_go_of(self._running)
        if self.transport.is_closing():
            return
        if self.flow.read_paused:
            self.flow.resume_reading()
        if self.pipeline:
            self._running, app = self.pipeline.pop()
            self.start(self._running, app)
        elif self._state == _IDLE:
            self._since = self.loop.time()

    # ------------------------------------------------------------------------------- refusing

    def refuse(self, error: CarnetError) -> None:
        """Answer with an error and hang up."""
        if self._state >= _DEAF:
            return  # it is about what nobody reads any more
        client = self.client[0] if self.client is not None else None
        name, usual = self.named()
        extra = {"code": error.code, "detail": str(error), "client": client, "correlation_id": name}
        logger.info("refused", extra=extra)
        type(self).note(error)
        self._let_go()  # nobody will read what it has sent
        own = self.cycle if self._state == _BODY else None
        ahead = self._ahead(own)
        if ahead is not None:
            self._hang_up_after(ahead)
        elif own is not None and own.response_started:
            self._cut_off(own)
        else:
            if own is not None:
                self._ready = None
                own.disconnected = True
                own.message_event.set()
                self.cycle = None  # type: ignore[assignment]  # a shutdown need not wait for it
            reply = self.refusing[0](error, self.url.partition(b"?")[0], self.head_of(own))
            self.transport.write(last_words(reply, usual))
            self._linger()

    def _ahead(self, own: RequestResponseCycle | None) -> RequestResponseCycle | None:
        """The last request before this one that is not answered yet."""
        last = self._latest()
        if own is not None:
            if not self.pipeline or self.pipeline[0][0] is not own:
                return None  # it is the one being answered
            self.pipeline.popleft()
            last = self.pipeline[0][0] if self.pipeline else self._running
        return None if last is None or last.response_complete else last

    def _latest(self) -> RequestResponseCycle | None:
        return self.cycle  # None before the first, which uvicorn's annotation does not say

    def _hang_up_after(self, cycle: RequestResponseCycle) -> None:
        cycle.keep_alive = False
        self.cycle = cycle
        self._state = _DEAF

    def _cut_off(self, cycle: RequestResponseCycle) -> None:
        """End a request that was answered before its body had come."""
        if cycle.response_complete:
            self._linger()
        else:
            self.transport.abort()

    def _linger(self) -> None:
        # Closing over unread bytes would reset the connection, and the refusal with it.
        self._state = _LINGER
        self._since = self.loop.time()
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        else:
            self.transport.close()

    # -------------------------------------------------------------------------------- the clock

    def check(self, now: float) -> None:
        """Hold the connection to its deadlines; called by the sweep."""
        if self.flow.read_paused and has_ended(self.transport):
            self.transport.abort()
            return
        backlog = self.transport.get_write_buffer_size()
        if not backlog or backlog < self._backlog:
            self._moved = now
        self._backlog = backlog
        if backlog and now - self._moved > self.limits.write_stall_seconds:
            logger.info("stalled reader cut off", extra={"seconds": round(now - self._moved, 3)})
            self.transport.abort()
        elif not self.transport.is_closing():
            self._check_state(now)

    def _check_state(self, now: float) -> None:
        waited = now - self._since
        if self._state == _IDLE:
            latest = self._latest()
            most = SPARE_SECONDS if self._is_spare else self.timeout_keep_alive
            if waited > most and (latest is None or latest.response_complete):
                self.transport.close()
        elif self._state == _LINGER:
            if waited > LINGER_SECONDS:
                self.transport.abort()
        elif self.flow.read_paused:  # it is we who do not read
            self._since = now
        else:
            self._check_arrival(waited)

    def _check_arrival(self, waited: float) -> None:
        most = SPARE_SECONDS if self._is_spare else self.limits.header_seconds
        if self._state == _HEAD and waited > most:
            if self._fruitless:
                self.refuse(HeaderTimeout())
            else:
                self.transport.close()  # it never said a word
        elif self._state == _BODY and waited > body_seconds(self._size, self._bounds.body_seconds):
            self.refuse(BodyTimeout())
