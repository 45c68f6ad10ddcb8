"""The operator's policy for a loop elsewhere: asked before each tool, by the bearer of its turn.

Law 1. What the policy is told is what this gateway knows of the turn: principal, caller context and
       agent. Of the loop comes the name of the tool and nothing else.
Law 2. It can only deny. To ask about a tool gives nobody the right to use it.
"""

import re
from typing import Any, Final

from carnet.errors import InvalidRequest
from carnet.gateway.loops.shown_turns import ShownTurns
from carnet.http.exchange import Exchange, Row, check_json_body, reply_json
from carnet.wire.grammar import json

MOST_BYTES: Final = 4096  # of a question

SCHEMAS: Final[dict[str, Any]] = {
    "ToolQuestion": {
        "type": "object",
        "properties": {"tool": {"type": "string", "maxLength": 256}},
        "required": ["tool"],
    },
}

_TOOL: Final = re.compile(r"[!-~]{1,256}", re.ASCII)


class TurnPolicyPage:
    """Answers loops elsewhere."""

    def __init__(self, turns: ShownTurns) -> None:
        """`turns` finds whose question it is."""
        self._turns = turns

    async def ask(self, exchange: Exchange) -> None:
        """POST /turn/policy."""
        turn = await self._turns.find(exchange, None)
        check_json_body(exchange.headers)
        tool = json.read_object(await exchange.read(MOST_BYTES)).get("tool")
        if not isinstance(tool, str) or not _TOOL.fullmatch(tool):
            raise InvalidRequest("tool", "must be the name of the tool that is to be used")
        if turn.ask_policy is not None:
            await turn.ask_policy(tool)
        await reply_json(exchange, {"tool": tool, "denied": False})


ROUTES: Final = (
    Row(
        method="POST",
        path="/turn/policy",
        summary="For an agent loop, with the bearer of its turn: ask whether the policy of this"
        " gateway denies a tool",
        auth="gate",
        answer="Page",
        body="ToolQuestion",
        endpoint=TurnPolicyPage.ask,
    ),
)
