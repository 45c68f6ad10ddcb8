"""Schedules and hooks for a loop elsewhere: with the bearer of the turn that it answers.

Law 1. Whose they are comes from the turn, and so does the token that they run with. There is no
       argument for either, and who may not have any is refused.
Law 2. No secret passes here: none is taken, none is shown.
Law 3. Whether somebody has to approve one is for the loop to ask; ours does.
"""

from collections.abc import Callable
from typing import Any, Final

from carnet.errors import PersonRequired
from carnet.gateway.loops.shown_turns import ShownTurns
from carnet.gateway.triggers.pages import TRIGGERS, read_asked
from carnet.http.exchange import Exchange, Row, reply_json
from carnet.ports.engine.tools import TurnOwned, TurnTriggers

_FOR: Final = "For an agent loop, with the bearer of its turn: "


class TurnTriggerPages:
    """Takes what loops elsewhere make of schedules, or of hooks."""

    def __init__(self, turns: ShownTurns, choose: Callable[[TurnTriggers], TurnOwned]) -> None:
        """`choose` says which."""
        self._turns = turns
        self._choose = choose

    async def list(self, exchange: Exchange) -> None:
        """GET /turn/schedules, GET /turn/hooks."""
        await reply_json(exchange, await (await self._owned(exchange)).list())

    async def add(self, exchange: Exchange) -> None:
        """POST /turn/schedules, POST /turn/hooks."""
        owned = await self._owned(exchange)
        await reply_json(exchange, await owned.add(await read_asked(exchange)))

    async def delete(self, exchange: Exchange, name: str) -> None:
        """POST .../{name}/delete."""
        await reply_json(exchange, await (await self._owned(exchange)).delete(name))

    async def _owned(self, exchange: Exchange) -> TurnOwned:
        turn = await self._turns.find(exchange, TRIGGERS)
        if turn.triggers is None:
            raise PersonRequired
        return self._choose(turn.triggers)


def _row(method: str, path: str, summary: str, **more: Any) -> Row:
    return Row(method=method, path=path, summary=_FOR + summary, auth="gate", answer="Page", **more)


def _rows(noun: str, body: str) -> tuple[Row, ...]:
    root, pages = f"/turn/{noun}s", TurnTriggerPages
    return (
        _row("GET", root, f"the {noun}s there are", endpoint=pages.list),
        _row("POST", root, f"make a {noun}", endpoint=pages.add, body=body),
        _row("POST", root + "/{name}/delete", f"delete a {noun}", endpoint=pages.delete),
    )


SCHEDULES: Final = _rows("schedule", "NewSchedule")
HOOKS: Final = _rows("hook", "NewHook")
