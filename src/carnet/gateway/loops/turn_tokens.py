"""What is left of the tokens of a turn, for a loop elsewhere: it asks before each ask of its model.

Law 1. What is left is what this gateway knows. Of the loop comes how many it has used since it was
       asked, as its stream may be behind: that only lowers what is left.
Law 2. Where nothing is left it is refused as any call would be, and the turn is told why its loop
       has ended.
"""

from typing import Any, Final

from carnet.errors import InvalidRequest
from carnet.gateway.loops.shown_turns import ShownTurns
from carnet.http.exchange import Exchange, Row, check_json_body, reply_json
from carnet.wire.grammar import json

MOST_BYTES: Final = 4096  # of a question
MOST_TOKENS: Final = 10**12  # of one answer: beyond it a count is a mistake

SCHEMAS: Final[dict[str, Any]] = {
    "TokensUsed": {
        "type": "object",
        "properties": {"used": {"type": "integer", "minimum": 0, "maximum": MOST_TOKENS}},
        "required": ["used"],
    },
}


class TurnTokensPage:
    """Answers loops elsewhere."""

    def __init__(self, turns: ShownTurns) -> None:
        """`turns` finds whose question it is."""
        self._turns = turns

    async def left(self, exchange: Exchange) -> None:
        """POST /turn/tokens."""
        turn = await self._turns.find(exchange, None)
        check_json_body(exchange.headers)
        used = json.read_object(await exchange.read(MOST_BYTES)).get("used")
        if type(used) is not int or not 0 <= used <= MOST_TOKENS:
            raise InvalidRequest("used", "must be how many tokens were used")
        left = None if turn.tokens is None else await turn.tokens.left(used)
        await reply_json(exchange, {"left": left})


ROUTES: Final = (
    Row(
        method="POST",
        path="/turn/tokens",
        summary="For an agent loop, with the bearer of its turn: how many tokens the next answer of"
        " its model may take",
        auth="gate",
        answer="Page",
        body="TokensUsed",
        endpoint=TurnTokensPage.left,
    ),
)
