"""What uvicorn does when a request arrives, in as few calls as it takes.

It is uvicorn's own protocol without what our server never has: WebSockets, a root path, the state
of a lifespan, a bound on concurrency (ours is at the edge). `Signal` and `Few` stand for the
`asyncio.Event` and the `deque` of each connection and request, which take 760 bytes each while they
are empty: thousands of open streams are mostly such things.

Law 1. The application is given what uvicorn would have given it.
Law 2. Every request has a name, and every answer tells it, a refusal of the head too: the caller's
       own `x-correlation-id`, else one that is drawn here (R49).
"""

import asyncio
from collections.abc import Callable
from functools import partial
from hashlib import shake_256
from types import SimpleNamespace
from typing import Any, ClassVar, Final, TypeVar
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from carnet.errors import CarnetError, MalformedRequest
from carnet.http.link import LINE, Fields, Line
from carnet.http.shares import STEPS, shares_of
from carnet.wire.grammar.headers import Headers
from carnet.wire.stamps.stamp import CORRELATION, read_correlation

MOST_NAMES: Final = 1024
LONGEST_NAME: Final = 64
ASGI: Final = {"version": "3.0", "spec_version": "2.3"}  # which nobody changes

FRAMING: Final = frozenset({b"content-length", b"transfer-encoding"})
# It says that nothing follows: the parser reads no request behind the body.
_HEAD_OF_BODY: Final = b"POST / HTTP/1.1\r\nconnection: close\r\n"

ID_DIGITS: Final = 32
_DRAWN: Final = 256  # ids that are drawn together
_DRAWN_DIGITS: Final = _DRAWN * ID_DIGITS
_SECOND_DIGITS: Final = 8  # of an id, that say in which second it was drawn
_DICE_DIGITS: Final = ID_DIGITS - _SECOND_DIGITS
_CORRELATION: Final = CORRELATION.encode()
_REQUEST_ID: Final = b"x-request-id"

T = TypeVar("T")


class LowerCase(dict[bytes, bytes]):
    """Names of fields in lower case; the first that come are remembered, so far as they are short.

    Looking up one that is remembered is no call.
    """

    __slots__ = ()

    def __missing__(self, name: bytes) -> bytes:
        """Find it, and remember it while there is room."""
        lowered = name.lower()
        if len(self) < MOST_NAMES and len(name) <= LONGEST_NAME:
            self[name] = lowered
        return lowered


_lower_case: Final = LowerCase()


class RequestIds:
    """Names for requests whose callers gave them none; nobody can tell the next, or their number.

    They are drawn many at a time: taking one is a slice, and no call. Each begins with the second
    it was drawn in, so that a store keeps those of one time on few pages.
    """

    __slots__ = ("_second", "_seed", "_times", "_wall_us", "at", "raw", "text")

    def __init__(self, seed: bytes, wall_us: Callable[[], int]) -> None:
        """`seed` is what nobody can guess, and no other gateway has; `wall_us` tells the time."""
        self._seed = seed
        self._wall_us = wall_us
        self._times = 0
        self._second = ""
        self.turn()
        self.draw()

    def turn(self) -> None:
        """Look at the time: names of another second are drawn anew, by the next who takes one."""
        second = f"{self._wall_us() // 1_000_000 % (1 << 32):08x}"
        if second != self._second:
            self._second, self.at = second, _DRAWN_DIGITS

    def draw(self) -> None:
        """Draw more of them."""
        self._times += 1
        digest = shake_256(b"%b %d" % (self._seed, self._times))
        dice = digest.hexdigest(_DRAWN * _DICE_DIGITS // 2)
        places = range(0, len(dice), _DICE_DIGITS)
        self.text = "".join([self._second + dice[at : at + _DICE_DIGITS] for at in places])
        self.raw = self.text.encode()
        self.at = 0  # where the next one begins


class Arrivals(HttpToolsProtocol):
    """The requests of one connection."""

    request_ids: ClassVar[RequestIds]

    def named(self) -> tuple[str, Fields]:
        """The name of the request whose head is there, and what all answers begin with."""
        name = None
        for field in self.headers or ():  # none yet, of who sends no head
            if field[0] == _CORRELATION:
                name = read_correlation(Headers(self.headers))
                break
        if name is None:
            ids = self.request_ids
            if ids.at >= _DRAWN_DIGITS:
                ids.draw()
            at, end = ids.at, ids.at + ID_DIGITS
            ids.at, name, raw = end, ids.text[at:end], ids.raw[at:end]
        else:
            raw = name.encode()
        usual = self.server_state.default_headers
        return name, [*usual, (_CORRELATION, raw), (_REQUEST_ID, raw)]

    def head_of(self, cycle: RequestResponseCycle | None) -> Fields:
        """The fields of a request, or of the head that arrives, as far as it is there."""
        return list(self.headers or () if cycle is None else cycle.scope["headers"])

    def on_message_begin(self) -> None:
        self.url = b""
        self.headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers += ((_lower_case[name], value),)

    def make_request(
        self, client: tuple[str, int] | None, scheme: str | None, *, expects: bool
    ) -> RequestResponseCycle:
        """Make a request of the head; whether it `expects` to be asked for its body."""
        url = httptools.parse_url(self.url)
        name, fields = self.named()
        path = str(url.path, "ascii")
        scope: Any = {
            "type": "http",
            "asgi": ASGI,
            "http_version": "1.1",
            "method": str(self.parser.get_method(), "ascii"),
            "scheme": scheme,
            "path": unquote(path) if "%" in path else path,
            "raw_path": url.path,
            "root_path": "",
            "query_string": url.query or b"",
            "headers": self.headers,
            "client": client,
            "server": self.server,
        }
        cycle = RequestResponseCycle(
            scope=scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=fields,
            message_event=Signal(),  # type: ignore[arg-type]  # all that is asked of an Event
            expect_100_continue=expects,
            keep_alive=self.parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )
        scope[LINE] = Line(cycle, name)
        return cycle

    def on_body_complete(self) -> None:
        """The body has come that `parser_of_body` reads."""
        self.on_message_complete()

    def parser_of_body(self) -> httptools.HttpRequestParser:
        """What reads the body of a request that asks for another protocol.

        The parser of its head ends there, and says that the rest is not HTTP.
        """
        return httptools.HttpRequestParser(
            SimpleNamespace(
                on_header=self.on_header,
                on_body=self.on_body,
                on_message_complete=self.on_body_complete,
            )
        )

    def reopen(self, cycle: RequestResponseCycle) -> None:
        """Wait for the body of a request after all, which its parser took to be complete."""
        cycle.more_body = True
        cycle.message_event.clear()
        framing = [b"%b: %b\r\n" % field for field in cycle.scope["headers"] if field[0] in FRAMING]
        self.parser.feed_data(b"".join([_HEAD_OF_BODY, *framing, b"\r\n"]))
        self.headers = []  # what is found here later is a trailer

    def start(self, cycle: RequestResponseCycle, app: Callable[..., Any]) -> None:
        """Have a request answered; where there are many, in its caller's share of the loop."""
        if len(self.tasks) < STEPS:
            self._begin(cycle, app)
            return
        caller: str | bytes = cycle.scope["client"][0] if cycle.scope["client"] else ""
        for name, value in cycle.scope["headers"]:
            if name == b"authorization":
                caller = value
        shares = shares_of(self.loop)
        if shares.take(caller):
            self._begin(cycle, app)
        else:
            shares.later(caller, partial(self._begin, cycle, app))

    def _begin(self, cycle: RequestResponseCycle, app: Callable[..., Any]) -> None:
        if cycle.disconnected:  # while it waited
            return
        task = self.loop.create_task(cycle.run_asgi(app))
        cycle.scope[LINE].task = task  # type: ignore[literal-required]  # uvicorn's scope has no place for ours
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)


def cause_of(error: httptools.HttpParserError) -> CarnetError:
    """What a request is refused with that the parser did not take, or one of its callbacks."""
    cause = error.__context__
    if isinstance(cause, CarnetError):
        return cause
    return MalformedRequest("it breaks the grammar of HTTP", repr(cause or error))


class Signal:
    """The part of `asyncio.Event` that a connection needs."""

    __slots__ = ("_is_set", "_waiters")

    def __init__(self, *, is_set: bool = False) -> None:
        """`is_set` as it begins."""
        self._is_set = is_set
        self._waiters: list[asyncio.Future[None]] | None = None

    def set(self) -> None:
        self._is_set = True
        waiters, self._waiters = self._waiters, None
        for waiter in waiters or ():
            if not waiter.done():
                waiter.set_result(None)

    def clear(self) -> None:
        self._is_set = False

    async def wait(self) -> None:
        while not self._is_set:
            waiter = asyncio.get_running_loop().create_future()
            if self._waiters is None:
                self._waiters = []
            self._waiters.append(waiter)
            await waiter


class Few(list[T]):
    """The part of `deque` that the requests waiting on a connection need; there are seldom any."""

    __slots__ = ()

    def appendleft(self, item: T) -> None:
        self.insert(0, item)

    def popleft(self) -> T:
        return self.pop(0)
