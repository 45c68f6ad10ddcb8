"""The turn that a loop elsewhere answers, found by the bearer that it shows.

Law 1. The bearer is good while its stream is open (see `turn_calls`), and for what the caller of
       the turn may.
Law 2. Who shows something else is nobody here, whatever that opens elsewhere.
"""

from carnet.errors import PermissionMissing, TokenInvalid
from carnet.gateway.loops.turn_calls import shown_bearer
from carnet.guards.caller.turn_bearer import TurnBearers
from carnet.http.exchange import Exchange
from carnet.ports.engine.loop import LoopTurn, OpenLoops


class ShownTurns:
    """Finds turns by their bearers."""

    def __init__(self, bearers: TurnBearers, loops: OpenLoops) -> None:
        """`loops` are the turns whose loops are being asked."""
        self._bearers = bearers
        self._loops = loops

    async def find(self, exchange: Exchange, permission: str | None) -> LoopTurn:
        """The turn of a request, if its caller has this permission, where one is needed."""
        shown = shown_bearer(exchange.headers)
        if shown is None:
            raise TokenInvalid("no bearer of a turn is shown")
        bearer = await self._bearers.verify(shown)
        turn = self._loops.turn(bearer.id, bearer.turn, bearer.agent)
        if turn is None:
            raise TokenInvalid("the turn of this bearer has ended")
        if permission is not None and not turn.actor.may(permission):
            raise PermissionMissing(permission=permission)
        return turn
