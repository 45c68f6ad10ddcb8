"""Schedules and hooks, made by a loop in a process of its own: through the gateway that asked it.

Law. Whose they are the gateway knows, by the bearer of the turn. What it refuses is for the model.
"""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from carnet.core.people.identity import Secret
from carnet.ports.engine.tools import TurnTriggers
from carnet.ports.world.http_client import HttpClient
from carnet.runtime.tools.bearer.gateway import TurnGateway

PLACE: Final = "/turn"
SECONDS: Final = 30.0
MOST_BYTES: Final = 4 * 1024 * 1024  # of a list: as many as one may have, each as long as may be


class BearerTriggers:
    """The schedules, or the hooks, of the person of one turn."""

    def __init__(self, gateway: TurnGateway, path: str) -> None:
        """`path` is where they are asked for."""
        self._gateway = gateway
        self._path = path

    async def add(self, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        """Make one; what it is, without its secret."""
        return await self._ask("POST", self._path, dict(asked))

    async def list(self) -> Mapping[str, Any]:
        """All of hers."""
        return await self._ask("GET", self._path)

    async def delete(self, name: str) -> Mapping[str, Any]:
        """Forget one of hers."""
        return await self._ask("POST", f"{self._path}/{quote(name, safe='')}/delete")

    async def _ask(self, method: str, path: str, body: object | None = None) -> Mapping[str, Any]:
        _, page = await self._gateway.done(
            method, path, body, seconds=SECONDS, max_bytes=MOST_BYTES
        )
        return page


def bearer_triggers(http: HttpClient, gateway: str, bearer: Secret) -> TurnTriggers:
    """Both, of one turn; `gateway` is where it listens."""
    asked = TurnGateway(http, gateway, bearer)
    return TurnTriggers(
        schedules=BearerTriggers(asked, f"{PLACE}/schedules"),
        hooks=BearerTriggers(asked, f"{PLACE}/hooks"),
    )
