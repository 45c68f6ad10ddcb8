"""The ASGI application: one table of routes, one boundary for errors.

Law 1. Paths are matched as they were sent; an encoded slash is not a slash.
Law 2. Whatever an endpoint raises becomes one answer of the closed enum. What is not ours becomes
       `internal` with an incident id, and its details go to the log.
Law 3. A wrong token is counted wherever it was refused; from an address that sends too many, the
       next one is refused before its request is read.
"""

import logging
import re
from collections.abc import Awaitable, Callable
from typing import TypeVar
from urllib.parse import unquote_to_bytes

from carnet.errors import (
    CarnetError,
    Internal,
    InvalidRequest,
    MethodNotAllowed,
    RouteNotFound,
    TokenInvalid,
    TooManyFailures,
)
from carnet.gateway.answering import raw
from carnet.gateway.chat import Chat
from carnet.gateway.operations import Operations
from carnet.gateway.runs import Access, Runs
from carnet.gateway.samvad import Samvad
from carnet.gateway.tasks import TaskDoor, TaskPages
from carnet.gateway.well_known import WellKnown
from carnet.guards.failures import Failures
from carnet.http.exchange import Disconnected, Exchange, Receive, Scope, Send
from carnet.http.refusing import write_refusal
from carnet.ports.clock import Clock, Ids
from carnet.telemetry import Metrics

logger = logging.getLogger("carnet.gateway")

F = TypeVar("F")

Plain = Callable[[Exchange], Awaitable[None]]
Named = Callable[..., Awaitable[None]]  # an exchange, then each segment that the path names

NamedRoute = tuple[re.Pattern[bytes], dict[str, Named]]

OPEN = frozenset({b"/healthz", b"/readyz", b"/openapi.json"})  # nobody needs a token for these
_SEGMENT = rb"([A-Za-z0-9%._~!$&'()*+,;=:@-]{1,384})"


class App:
    """Routes requests to endpoints."""

    def __init__(
        self,
        *,
        chat: Chat,
        samvad: Samvad,
        task_door: TaskDoor,
        task_pages: TaskPages,
        well_known: WellKnown,
        runs: Runs,
        operations: Operations,
        access: Access,
        failures: Failures,
        clock: Clock,
        ids: Ids,
        metrics: Metrics,
    ) -> None:
        """The endpoints; `ids` names incidents."""
        self._access = access
        self._failures = failures
        self._clock = clock
        self._ids = ids
        self._metrics = metrics
        self._plain: dict[bytes, dict[str, Plain]] = {
            b"/v1/chat/completions": {"POST": chat},
            b"/agent/message": {"POST": samvad.message},
            b"/agent/stream": {"POST": samvad.stream},
            b"/agent/task": {"POST": samvad.task},
            b"/agent/intro": {"GET": samvad.intro},
            b"/agent/health": {"GET": samvad.health},
            b"/.well-known/agent.json": {"GET": samvad.card},
            b"/.well-known/carnet.json": {"GET": well_known},
            b"/v1/models": {"GET": operations.models},
            b"/runs": {"GET": runs.list},
            b"/tasks": {"GET": task_pages.list, "POST": task_pages.create},
            **_operation_routes(operations),
        }
        self._named: list[NamedRoute] = [
            (_pattern(rb"/agents/", rb"/v1/chat/completions"), {"POST": chat}),
            (_pattern(rb"/agents/", rb"/agent/message"), {"POST": samvad.message}),
            (_pattern(rb"/agents/", rb"/agent/stream"), {"POST": samvad.stream}),
            (_pattern(rb"/runs/", rb""), {"GET": runs.show}),
            (_pattern(rb"/runs/", rb"/events"), {"GET": runs.events}),
            (_pattern(rb"/runs/", rb"/cancel"), {"POST": runs.cancel}),
            (_pattern(rb"/-/errors/", rb""), {"GET": operations.error}),
            (_pattern(rb"/agents/", rb"/.well-known/agent.json"), {"GET": samvad.card}),
            (_pattern(rb"/agents/", rb"/agent/intro"), {"GET": samvad.intro}),
            (_pattern(rb"/agents/", rb"/agent/health"), {"GET": samvad.health}),
            (_pattern(rb"/agents/", rb"/agent/task"), {"POST": samvad.task}),
            *_task_routes(task_door, task_pages),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            raise RuntimeError("this application speaks HTTP only")
        exchange = Exchange(scope, receive, send)
        try:
            if self._failures.any and exchange.path not in OPEN:
                await self._check_failures(exchange)
            await self._dispatch(exchange)
        except Disconnected:
            return
        except TokenInvalid as error:
            await self._refuse(exchange, self._counted(exchange, error))
        except CarnetError as error:
            await self._refuse(exchange, error)
        except Exception as error:  # noqa: BLE001  the edge: RecursionError, MemoryError, all
            await self._refuse(exchange, self._incident(error))

    async def _dispatch(self, exchange: Exchange) -> None:
        methods = self._plain.get(exchange.path)
        if methods is not None:
            await _choose(methods, exchange.method)(exchange)
            return
        for pattern, named in self._named:
            match = pattern.fullmatch(exchange.path)
            if match is not None:
                names = [_decode(segment) for segment in match.groups()]
                await _choose(named, exchange.method)(exchange, *names)
                return
        raise RouteNotFound

    async def _check_failures(self, exchange: Exchange) -> None:
        """Refuse the next wrong token of an address at its limit, and read no more of it."""
        try:
            self._failures.check(_address(exchange), self._clock.monotonic())
        except TooManyFailures:
            await self._access.check_at_once(exchange)

    def _counted(self, exchange: Exchange, error: CarnetError) -> CarnetError:
        try:
            self._failures.note(_address(exchange), self._clock.monotonic())
        except TooManyFailures as too_many:
            return too_many
        return error

    def _incident(self, error: BaseException) -> Internal:
        internal = Internal(type(error).__name__, incident=self._ids.uuid())
        logger.error(
            "unforeseen %s",
            type(error).__name__,
            exc_info=error,
            extra={"incident": internal.facts["incident"], "code": internal.code},
        )
        return internal

    async def _refuse(self, exchange: Exchange, error: CarnetError) -> None:
        self._metrics.refusals.labels(error.code).inc()
        if exchange.started:
            raise error  # the server closes the connection: a half answer is no answer
        logger.info(
            "refused",
            extra={
                "run": error.run,
                "code": error.code,
                "detail": str(error),
                "client": _address(exchange),
            },
        )
        status, headers, body = write_refusal(error, exchange.path)
        await exchange.reply(status, raw(headers), body)


def _operation_routes(operations: Operations) -> dict[bytes, dict[str, Plain]]:
    return {
        b"/healthz": {"GET": operations.health},
        b"/readyz": {"GET": operations.ready},
        b"/metrics": {"GET": operations.metrics},
        b"/openapi.json": {"GET": operations.openapi},
    }


def _task_routes(door: TaskDoor, pages: TaskPages) -> list[NamedRoute]:
    return [
        (_pattern(rb"/agent/task/", rb""), {"GET": door.show}),
        (_pattern(rb"/agent/task/", rb"/cancel"), {"POST": door.cancel}),
        (_pattern(rb"/agents/", rb"/agent/task/", rb""), {"GET": door.show_of}),
        (_pattern(rb"/agents/", rb"/agent/task/", rb"/cancel"), {"POST": door.cancel_of}),
        (_pattern(rb"/tasks/", rb""), {"GET": pages.show}),
        (_pattern(rb"/tasks/", rb"/cancel"), {"POST": pages.cancel}),
    ]


def _address(exchange: Exchange) -> str:
    return exchange.client[0] if exchange.client is not None else "unknown"


def _pattern(*parts: bytes) -> re.Pattern[bytes]:
    """A path with a segment of any name between each two of its parts."""
    return re.compile(_SEGMENT.join(map(re.escape, parts)))


def _choose(methods: dict[str, F], method: str) -> F:
    found = methods.get("GET" if method == "HEAD" else method)
    if found is None:
        allowed = [*methods, "HEAD"] if "GET" in methods else [*methods]
        raise MethodNotAllowed(allow=", ".join(allowed))
    return found


def _decode(segment: bytes) -> str:
    try:
        text = unquote_to_bytes(segment).decode("ascii")
    except UnicodeDecodeError:
        raise InvalidRequest("path", "is not ASCII") from None
    if not text.isprintable():
        raise InvalidRequest("path", "holds control characters")
    return text
