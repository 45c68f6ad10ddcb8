"""What is left of the tokens of a turn, asked by a loop in a process of its own.

Law. It fails closed: of a gateway that is not there, does not know the turn any more, or says
     anything but a number or that there is no bound, no model is asked.
"""

from typing import Any, Final

from carnet.core.people.identity import Secret
from carnet.errors import BudgetExceeded, ToolUnusable
from carnet.ports.world.http_client import HttpClient
from carnet.runtime.tools.bearer.gateway import OK, TurnGateway

PLACE: Final = "/turn/tokens"
SECONDS: Final = 30.0
MOST_BYTES: Final = 65_536
_SHORT: Final = BudgetExceeded.status
_WORDS: Final = ("budget", "part")
_COUNTS: Final = ("observed", "limit")


class BearerTokens:
    """The tokens of one turn."""

    def __init__(self, http: HttpClient, gateway: str, bearer: Secret) -> None:
        """`gateway` is where it listens."""
        self._gateway = TurnGateway(http, gateway, bearer)
        self.short: BudgetExceeded | None = None

    @property
    def known(self) -> int:
        """The gateway counts."""
        return 0

    def count(self, tokens: int) -> None:
        """The gateway does."""

    async def left(self, used: int, /) -> int | None:
        """How many are left, by the gateway; BudgetExceeded where it has refused."""
        status, page = await self._gateway.ask(
            "POST", PLACE, {"used": used}, seconds=SECONDS, max_bytes=MOST_BYTES
        )
        if status == _SHORT:
            error = page.get("error")
            facts = error if isinstance(error, dict) else page
            self.short = BudgetExceeded("the gateway has refused", **_facts_of(facts))
            raise self.short
        left = page.get("left")
        if status != OK or not (left is None or (type(left) is int and left > 0)):
            raise ToolUnusable(f"the gateway answered {status}")
        return left


def _facts_of(page: dict[str, Any]) -> dict[str, str | int]:
    """What a refusal says of the budget."""
    words = [(name, page.get(name)) for name in _WORDS]
    counts = [(name, page.get(name)) for name in _COUNTS]
    found: dict[str, str | int] = {name: each for name, each in words if isinstance(each, str)}
    return found | {name: each for name, each in counts if type(each) is int}
