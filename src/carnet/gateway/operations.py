"""What an operator's tools ask: health, readiness, metrics, the shape of the API, error pages."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from carnet.core.people.identity import Caller
from carnet.errors import CarnetError, PermissionMissing, RouteNotFound, kinds_of
from carnet.http.exchange import Access, Endpoint, Exchange, Row, reply_json
from carnet.telemetry import Metrics

Check = Callable[[], bool]
Reload = Callable[[], Awaitable[dict[str, Any]]]  # reads the configuration again: what came of it
Values = Callable[[], list[dict[str, Any]]]
Circuits = Callable[[], list[dict[str, Any]]]
Findings = Callable[[], Awaitable[list[dict[str, str]]]]


class Operations:
    """The operational endpoints."""

    def __init__(
        self,
        *,
        access: Access,
        metrics: Metrics,
        checks: dict[str, Check],
        circuits: Circuits,
        findings: Findings,
        values: Values,
    ) -> None:
        """`checks` are asked for readiness; each tells whether its part works.

        `circuits` tells which upstreams are left alone at the moment, `findings` what a gateway
        finds of its own parts, `values` the settings.
        """
        self._access = access
        self._metrics = metrics
        self._checks = checks
        self._circuits = circuits
        self._findings = findings
        self._values = values
        self.api: dict[str, Any] = {}
        self._schemas: Mapping[str, dict[str, Any]] = {}
        self.draining = False
        self.reloading: Reload | None = None  # of a gateway that has a file
        self.last_reload: dict[str, Any] | None = None  # what came of the last time

    async def health(self, exchange: Exchange) -> None:
        """GET /healthz: the process answers."""
        await reply_json(exchange, {"status": "ok"})

    async def ready(self, exchange: Exchange) -> None:
        """GET /readyz: it can take work. A stranger is told one word, an operator the rest."""
        checks = {name: check() for name, check in self._checks.items()}
        checks["serving"] = not self.draining
        circuits = self._circuits()
        ready = all(checks.values())
        degraded = any("callers" not in circuit for circuit in circuits)
        page: dict[str, Any] = {"status": _word(ready=ready, degraded=degraded)}
        if await self._is_operator(exchange):
            page |= {"checks": checks, "circuits": circuits}
            page |= {} if self.last_reload is None else {"reload": self.last_reload}
        await reply_json(exchange, page, 200 if ready else 503)

    async def _is_operator(self, exchange: Exchange) -> bool:
        if exchange.headers.get("authorization") is None:
            return False
        try:
            await self._access.check(exchange, "metrics")
        except PermissionMissing:
            return False
        return True

    async def metrics(self, exchange: Exchange, caller: Caller) -> None:
        """GET /metrics, with the permission of that name."""
        del caller
        content_type = self._metrics.content_type.encode()
        await exchange.reply(200, [(b"content-type", content_type)], self._metrics.text())

    async def doctor(self, exchange: Exchange, caller: Caller) -> None:
        """GET /-/doctor: what the gateway finds of its own parts, and how to mend it."""
        del caller
        await reply_json(exchange, {"findings": await self._findings()})

    async def reload(self, exchange: Exchange, caller: Caller) -> None:
        """POST /-/reload: read the configuration again, and say what came of it."""
        del caller
        if self.reloading is None:
            raise RouteNotFound
        page = await self.reloading()
        await reply_json(exchange, page, 200 if page["applied"] else 409)

    async def config(self, exchange: Exchange, caller: Caller) -> None:
        """GET /-/config: every value in force, and where it came from; no secret."""
        del caller
        await reply_json(exchange, {"values": self._values()})

    def describe(self, api: dict[str, Any], schemas: Mapping[str, dict[str, Any]]) -> None:
        """Tell of the shape of the API, once it is known what is served.

        `schemas` are those of the documents that gateways exchange, for who checks their own.
        """
        self.api = api
        self._schemas = schemas

    async def openapi(self, exchange: Exchange) -> None:
        """GET /openapi.json."""
        await reply_json(exchange, self.api)

    async def schemas(self, exchange: Exchange) -> None:
        """GET /-/schemas/: which documents are described, and where."""
        pages = {name: f"/-/schemas/{name}" for name in self._schemas}
        await reply_json(exchange, {"schemas": pages})

    async def schema(self, exchange: Exchange, name: str) -> None:
        """GET /-/schemas/{schema}: the JSON Schema of one."""
        found = self._schemas.get(name.removesuffix(".json"))
        if found is None:
            raise RouteNotFound
        await reply_json(exchange, found)

    async def error(self, exchange: Exchange, code: str) -> None:
        """GET /-/errors/{code}: what a code means and what to do."""
        kinds = kinds_of(code)
        if not kinds:
            raise RouteNotFound
        first, *others = map(explain, kinds)
        await reply_json(exchange, first | ({"also": others} if others else {}))


def _word(*, ready: bool, degraded: bool) -> str:
    if not ready:
        return "not_ready"
    return "degraded" if degraded else "ready"


def explain(kind: type[CarnetError]) -> dict[str, Any]:
    """What a code means, in words."""
    return {
        "code": kind.code,
        "status": kind.status,
        "retryable": kind.retryable,
        "meaning": inspect.cleandoc(kind.__doc__ or ""),
        "message": kind.template,
        "next_step": kind.hint,
    }


def _open(path: str, endpoint: Endpoint, summary: str, **more: Any) -> Row:
    return Row(
        method="GET",
        path=path,
        endpoint=endpoint,
        auth="open",
        summary=summary,
        answer="Page",
        **more,
    )


ROUTES = (
    _open("/healthz", Operations.health, "The process answers"),
    _open("/readyz", Operations.ready, "It can take work", also=((503, "Page"),)),
    Row(
        method="GET",
        path="/metrics",
        endpoint=Operations.metrics,
        permission="metrics",
        summary="Prometheus metrics",
        media="text/plain",
    ),
    Row(
        method="GET",
        path="/-/doctor",
        endpoint=Operations.doctor,
        permission="metrics",
        summary="What the gateway finds of its own parts, each with how to mend it",
        answer="Page",
    ),
    Row(
        method="POST",
        path="/-/reload",
        endpoint=Operations.reload,
        permission="admin:reload",
        summary="Read the configuration again",
        answer="Page",
        also=((409, "Page"),),
    ),
    Row(
        method="GET",
        path="/-/config",
        endpoint=Operations.config,
        permission="admin:config",
        summary="The settings in force, and where each came from",
        answer="Page",
    ),
    _open("/openapi.json", Operations.openapi, "This description"),
    _open("/-/errors/{code}", Operations.error, "What an error code means"),
    _open("/-/schemas/", Operations.schemas, "The documents that have a JSON Schema"),
    _open("/-/schemas/{schema}", Operations.schema, "The JSON Schema of one of them"),
)
