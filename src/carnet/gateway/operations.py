"""What an operator's tools ask: health, readiness, metrics, the shape of the API, error pages."""

import inspect
from collections.abc import Callable
from typing import Any

from carnet.errors import BY_CODE, CarnetError, PermissionMissing, RouteNotFound
from carnet.gateway.openapi import describe
from carnet.gateway.runs import Access, reply_json
from carnet.http.exchange import Exchange
from carnet.ports.agent import Router
from carnet.telemetry import Metrics
from carnet.wire import openai

Check = Callable[[], bool]
Circuits = Callable[[], list[dict[str, Any]]]


class Operations:
    """The operational endpoints."""

    def __init__(
        self,
        *,
        access: Access,
        router: Router,
        metrics: Metrics,
        checks: dict[str, Check],
        circuits: Circuits,
        domain: str,
        started: int,
    ) -> None:
        """`checks` are asked for readiness; each tells whether its part works.

        `circuits` tells which upstreams are left alone at the moment.
        """
        self._access = access
        self._router = router
        self._metrics = metrics
        self._checks = checks
        self._circuits = circuits
        self._domain = domain
        self._started = started
        self._api = describe()
        self.draining = False

    async def health(self, exchange: Exchange) -> None:
        """GET /healthz: the process answers."""
        await reply_json(exchange, {"status": "ok"})

    async def ready(self, exchange: Exchange) -> None:
        """GET /readyz: it can take work. A stranger is told one word, an operator the rest."""
        checks = {name: check() for name, check in self._checks.items()}
        checks["serving"] = not self.draining
        circuits = self._circuits()
        ready = all(checks.values())
        page: dict[str, Any] = {"status": _word(ready=ready, degraded=bool(circuits))}
        if await self._is_operator(exchange):
            page |= {"checks": checks, "circuits": circuits}
        await reply_json(exchange, page, 200 if ready else 503)

    async def _is_operator(self, exchange: Exchange) -> bool:
        if exchange.headers.get("authorization") is None:
            return False
        try:
            await self._access.check(exchange, "metrics")
        except PermissionMissing:
            return False
        return True

    async def metrics(self, exchange: Exchange) -> None:
        """GET /metrics, with the permission of that name."""
        await self._access.check(exchange, "metrics")
        content_type = self._metrics.content_type.encode()
        await exchange.reply(200, [(b"content-type", content_type)], self._metrics.text())

    async def openapi(self, exchange: Exchange) -> None:
        """GET /openapi.json."""
        await reply_json(exchange, self._api)

    async def models(self, exchange: Exchange) -> None:
        """GET /v1/models: the agents this caller may call."""
        caller = await self._access.check(exchange, None)
        names = [target.name for target in self._router.local() if caller.may(target.needs)]
        body = openai.write_models(names, owner=self._domain, created=self._started)
        await exchange.reply(200, [(b"content-type", b"application/json")], body)

    async def error(self, exchange: Exchange, code: str) -> None:
        """GET /-/errors/{code}: what a code means and what to do."""
        kind = BY_CODE.get(code)
        if kind is None:
            raise RouteNotFound
        await reply_json(exchange, explain(kind))


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
