"""The operator's policy, asked by a loop in a process of its own, through its gateway.

Law. It fails closed: a gateway that is not there, does not know the turn any more, or says anything
     but that it has nothing against it, has denied.
"""

from typing import Final

from carnet.core.people.identity import Secret
from carnet.errors import PolicyDenied, ToolUnusable
from carnet.ports.world.http_client import HttpClient
from carnet.runtime.tools.bearer.gateway import OK, TurnGateway

PLACE: Final = "/turn/policy"
MARGIN_SECONDS: Final = 5.0  # beside what the policy itself may take
MOST_BYTES: Final = 65_536


class BearerPolicy:
    """Asks about the tools of one turn."""

    def __init__(self, http: HttpClient, gateway: str, bearer: Secret, *, seconds: float) -> None:
        """`gateway` is where it listens; its policy may take `seconds`."""
        self._gateway = TurnGateway(http, gateway, bearer)
        self._seconds = seconds + MARGIN_SECONDS

    async def __call__(self, tool: str, /) -> None:
        """Raise PolicyDenied where a tool may not be used."""
        try:
            status, page = await self._gateway.ask(
                "POST", PLACE, {"tool": tool}, seconds=self._seconds, max_bytes=MOST_BYTES
            )
        except ToolUnusable as error:
            raise PolicyDenied(f"it could not be asked: {error}", action="tool") from error
        if status != OK or page.get("denied") is not False:
            raise PolicyDenied(f"the gateway answered {status}", action="tool")
