"""Calls of other agents that a loop elsewhere makes, with the bearer of the turn it answers.

They come as chat completions, so that a loop needs no other interface; whom they are for stands in
`model`.

Law 1. The bearer is good while the gateway reads the stream that it was made for: not afterwards,
       not past its time, not for another turn or agent, and nowhere else.
Law 2. The call is made out of that turn, as an agent in this process would make it. Of the request
       its target and its messages count: no header of it says who calls, how deep, or who pays, and
       none answers what somebody was asked.
Law 3. A callee that waits for somebody is told to the loop as that, without the question: whoever
       may answer it is asked by the turn.
"""

import re
from typing import Any, Final

from carnet.core.call import Ask, Claim
from carnet.errors import (
    ApprovalRequired,
    CarnetError,
    InvalidRequest,
    ShuttingDown,
    TokenInvalid,
)
from carnet.guards.caller.turn_bearer import TurnBearers
from carnet.http.exchange import DisconnectWatch, Exchange, reply_json
from carnet.ports.engine.calls import AgentAsk, AgentCalls, CalleeWaits, OpenTurns
from carnet.ports.world.clock import Clock
from carnet.wire.dialects.engine_chat.bearer import MOST_BYTES, is_bearer
from carnet.wire.dialects.engine_chat.request import MOST_NAME
from carnet.wire.grammar.headers import Headers

# As `authentication` reads it, and as long as a bearer may be.
_BEARER: Final = re.compile(
    rf"[Bb][Ee][Aa][Rr][Ee][Rr] ([A-Za-z0-9_.-]{{1,{MOST_BYTES}}})", re.ASCII
)


class TurnCalls:
    """Takes calls with the bearers of turns."""

    def __init__(self, bearers: TurnBearers, turns: OpenTurns, clock: Clock) -> None:
        """`turns` are those whose loops are being asked."""
        self._bearers = bearers
        self._turns = turns
        self._clock = clock

    async def find(self, headers: Headers) -> AgentCalls | None:
        """What calls for the turn whose bearer is shown; None where no bearer of a turn is.

        Raises TokenInvalid for one that is not good, or not any more, and TurnElsewhere for one
        that another process has made: who calls out of a turn has to reach the one that answers it.
        """
        shown = shown_bearer(headers)
        if shown is None:
            return None
        bearer = await self._bearers.verify(shown)
        calls = self._turns.find(bearer.id, bearer.turn, bearer.agent)
        if calls is None:
            raise TokenInvalid("the turn of this bearer has ended")
        return calls

    async def answer(self, exchange: Exchange, claim: Claim, error: CarnetError) -> bool:
        """Answer a claim that was refused with this error, if it is a call out of a turn."""
        is_open = isinstance(error, TokenInvalid | ShuttingDown) and not claim.is_task
        calls = await self.find(exchange.headers) if is_open else None
        if calls is not None:
            await self._answer(exchange, calls, claim)
        return calls is not None

    async def _answer(self, exchange: Exchange, calls: AgentCalls, claim: Claim) -> None:
        ask = claim.ask
        if ask.stream:
            raise InvalidRequest("stream", "must be false: a call out of a turn is answered whole")
        asked = AgentAsk(to=claim.agent, messages=ask.messages, call=_named(ask))
        with DisconnectWatch(exchange.line):
            try:
                text = await calls.ask_agent(asked)
            except CalleeWaits:
                raise ApprovalRequired(kind="approval") from None
        message = {"role": "assistant", "content": text}
        page = {
            "id": f"chatcmpl-{_named(ask)}",
            "object": "chat.completion",
            "created": self._clock.wall_us() // 1_000_000,
            "model": claim.agent,
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        }
        await reply_json(exchange, page)


def shown_bearer(headers: Headers) -> str | None:
    """The bearer of a turn that a request shows; None where it shows none."""
    shown = _BEARER.fullmatch(headers.get("authorization") or "")
    return None if shown is None or not is_bearer(shown[1]) else shown[1]


def _named(ask: Ask) -> str:
    """The id of the tool call that a call is made for, if the loop says it."""
    metadata: Any = (ask.body or {}).get("metadata")
    id = metadata.get("tool_call_id") if isinstance(metadata, dict) else None
    return id if isinstance(id, str) and len(id) <= MOST_NAME else ""
