"""The schedules and hooks of whoever a turn is for, as agent loops reach them.

Law. A loop is shown no secret, and gives none: its owner has one made.
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from carnet.core.people.identity import Caller
from carnet.errors import InvalidRequest
from carnet.gateway.triggers.own_triggers import OwnTriggers
from carnet.ports.calls.triggers import Hook, Schedule
from carnet.ports.engine.tools import TurnTriggers

NEXT_STEP: Final = "Its owner has its secret made: carnet hooks rotate {name}"
_SECRET: Final = "secret"  # noqa: S105  the name of a member


class CallerTriggers:
    """The schedules, or the hooks, of one caller: `carnet.ports.engine.tools.TurnOwned`."""

    def __init__(self, triggers: OwnTriggers[Schedule] | OwnTriggers[Hook], caller: Caller) -> None:
        self._triggers = triggers
        self._caller = caller

    async def add(self, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        """Make one; what it is, without its secret."""
        if _SECRET in asked:
            raise InvalidRequest(_SECRET, "is not given here: its owner gives it, or has one made")
        page = await self._triggers.add(self._caller, asked)
        secret = page.pop(_SECRET, None)
        if secret is None:
            return page
        page["address"] = str(page["address"]).replace(secret, "SECRET")
        return {**page, "hint": NEXT_STEP.format(name=page["name"])}

    async def list(self) -> Mapping[str, Any]:
        """All of hers."""
        return await self._triggers.list(self._caller)

    async def delete(self, name: str) -> Mapping[str, Any]:
        """Forget one of hers."""
        return await self._triggers.delete(self._caller, name)


class _Own(Struct, frozen=True, eq=False):
    """Those of everybody at one gateway."""

    schedules: OwnTriggers[Schedule]
    hooks: OwnTriggers[Hook]


class TriggersOfCalls:
    """Gives each call those of whoever made it; who is no person has none."""

    def __init__(self) -> None:
        self._own: _Own | None = None  # until the gateway is put together

    def take(self, schedules: OwnTriggers[Schedule], hooks: OwnTriggers[Hook]) -> None:
        """Give those from now on."""
        self._own = _Own(schedules, hooks)

    def __call__(self, caller: Caller, /) -> TurnTriggers | None:
        """Those of a caller."""
        if self._own is None or caller.person is None or caller.token is None:
            return None
        return TurnTriggers(
            schedules=CallerTriggers(self._own.schedules, caller),
            hooks=CallerTriggers(self._own.hooks, caller),
        )
