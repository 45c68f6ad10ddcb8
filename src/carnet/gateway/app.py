"""The ASGI application: one table of routes, one boundary for errors.

Law 1. Whatever an endpoint raises becomes one answer of the closed enum. What is not ours becomes
       `internal` with an incident id, and its details go to the log.
Law 2. A wrong token is counted wherever it was refused; from an address that sends too many, the
       next one is refused before its request is read.
"""

import logging

from carnet.errors import CarnetError, Internal, TokenInvalid, TooManyFailures
from carnet.guards.caller.failures import Failures
from carnet.http.exchange import Access, Disconnected, Exchange, Receive, RouteTable, Scope, Send
from carnet.http.refusal import Refusing
from carnet.ports.world.clock import Clock, Ids
from carnet.telemetry import Metrics

logger = logging.getLogger("carnet.gateway")

OPEN = frozenset({b"/healthz", b"/readyz", b"/openapi.json"})  # nobody needs a token for these


class App:
    """Routes requests to endpoints."""

    def __init__(
        self,
        *,
        router: RouteTable,
        refusing: Refusing,
        access: Access,
        failures: Failures,
        clock: Clock,
        ids: Ids,
        metrics: Metrics,
    ) -> None:
        """`router` has the endpoints, `refusing` the words of refusals; `ids` names incidents."""
        self._dispatch = router
        self._write_refusal = refusing
        self._access = access
        self._failures = failures
        self._clock = clock
        self._ids = ids
        self._metrics = metrics

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
        await exchange.reply(*self._write_refusal(error, exchange.path))


def _address(exchange: Exchange) -> str:
    return exchange.client[0] if exchange.client is not None else "unknown"
