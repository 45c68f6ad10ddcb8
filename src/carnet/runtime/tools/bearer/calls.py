"""Other agents, called by a loop in a process of its own: through the gateway that asked it.

Law 1. A call is a chat completion at the gateway, with the bearer of the turn. The gateway makes it
       out of that turn; the bearer is good for nothing else, and for nothing once the turn ended.
Law 2. What the gateway says of a callee that failed is for the model. A gateway that does not know
       the turn any more, or is another process than that which asked, or is not there, is no
       callee that failed: nothing can be called.
"""

from collections.abc import Collection, Sequence
from typing import Any, Final

from carnet.core.people.identity import Secret
from carnet.errors import ApprovalRequired, ProviderError
from carnet.ports.engine.calls import AgentAsk, CalleeWaits
from carnet.ports.engine.tools import ToolFailed
from carnet.ports.world.http_client import HttpClient
from carnet.runtime.tools.bearer.gateway import OK, TurnGateway
from carnet.wire.dialects.openai import COMPLETIONS
from carnet.wire.dialects.openai.request import write_message

SECONDS: Final = 660.0  # more than a call to a peer may take: that ends by itself
MOST_BYTES: Final = 1024 * 1024  # of an answer


class BearerCalls:
    """Calls with the bearer of one turn."""

    waits: Collection[str] = ()  # which wait is for the gateway to know
    made: Sequence[AgentAsk] = ()

    def __init__(self, http: HttpClient, gateway: str, bearer: Secret) -> None:
        """`gateway` is where it listens."""
        self._gateway = TurnGateway(http, gateway, bearer)

    async def ask_agent(self, ask: AgentAsk, /) -> str:
        """The text of its answer."""
        body = {
            "model": ask.to,
            "messages": [write_message(each) for each in ask.messages],
            "metadata": {"tool_call_id": ask.call},
        }
        path = f"/v1{COMPLETIONS}"
        status, page = await self._gateway.ask(
            "POST", path, body, seconds=SECONDS, max_bytes=MOST_BYTES
        )
        if status == OK:
            return _text(page)
        if page.get("code") == ApprovalRequired.code:
            raise CalleeWaits
        raise ToolFailed(str(page.get("message") or "The agent could not be asked."))


def _text(page: dict[str, Any]) -> str:
    try:
        text = page["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError):
        raise ProviderError("the gateway gave no answer") from None
    return str(text or "")
