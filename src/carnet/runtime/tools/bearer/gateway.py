"""The gateway that has asked a loop elsewhere, asked back with the bearer of the turn.

Law. A gateway that is not there, or does not know the turn any more, is no answer to what was
     asked: nothing can be done for the turn, and `ToolUnusable` says so.
"""

from typing import Any, Final

from carnet.core.people.identity import Secret
from carnet.errors import CarnetError, ToolUnusable, TurnElsewhere
from carnet.ports.engine.tools import ToolFailed
from carnet.ports.world.http_client import Bounds, HttpClient, Outbound
from carnet.wire.grammar import json

OK: Final = 200
MISSING: Final = 404

_OURS: Final = 500  # statuses from here on are no mistake of the model
_NOBODY: Final = 401


class TurnGateway:
    """Asks with the bearer of one turn."""

    def __init__(self, http: HttpClient, gateway: str, bearer: Secret) -> None:
        """`gateway` is where it listens."""
        self._http = http
        self._gateway = gateway
        self._authorization = Secret(f"Bearer {bearer.reveal()}")

    async def ask(
        self, method: str, path: str, body: object | None, *, seconds: float, max_bytes: int
    ) -> tuple[int, dict[str, Any]]:
        """The status and the page of an answer."""
        outbound = Outbound(
            method=method,
            url=f"{self._gateway}{path}",
            body=b"" if body is None else json.write(body),
            headers={} if body is None else {"content-type": "application/json"},
            secrets={"authorization": self._authorization},
            bounds=Bounds(
                first_byte_seconds=seconds,
                idle_seconds=seconds,
                total_seconds=seconds,
                max_bytes=max_bytes,
            ),
        )
        try:
            async with self._http.send(outbound) as answer:
                status, page = answer.status, json.read_object(await answer.read())
        except CarnetError as error:
            raise ToolUnusable(f"the gateway could not be asked: {error}") from error
        if status == _NOBODY:
            raise ToolUnusable("the gateway does not take the bearer of this turn any more")
        if status == TurnElsewhere.status:
            raise ToolUnusable(f"{page.get('message')} {TurnElsewhere.hint}")
        return status, page

    async def done(
        self, method: str, path: str, body: object | None, *, seconds: float, max_bytes: int
    ) -> tuple[int, dict[str, Any]]:
        """The same for what a tool asks: what is refused is for the model.

        What is read may not be there.
        """
        status, page = await self.ask(method, path, body, seconds=seconds, max_bytes=max_bytes)
        if status == OK or (status == MISSING and method == "GET"):
            return status, page
        if status >= _OURS:
            raise ToolUnusable(f"the gateway answered {status}")
        error = page.get("error")
        page = error if isinstance(error, dict) else page
        words = [page.get("message"), page.get("hint")]
        text = " ".join([word for word in words if isinstance(word, str)])
        raise ToolFailed(text or "The gateway has refused it.")
