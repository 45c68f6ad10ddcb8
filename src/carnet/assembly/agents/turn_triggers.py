"""The schedules and hooks of whoever a turn is for, as agent loops in this process reach them."""

from collections.abc import Mapping
from typing import Any

from carnet.core.people.identity import Caller
from carnet.gateway.triggers.own_triggers import OwnTriggers


class CallerTriggers:
    """Those of one caller: the port `carnet.ports.engine.tools.TurnTriggers`."""

    def __init__(self, triggers: OwnTriggers, caller: Caller) -> None:
        self._triggers = triggers
        self._caller = caller

    async def add_schedule(self, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        """Make a schedule."""
        return await self._triggers.add_schedule(self._caller, asked)

    async def list_schedules(self) -> Mapping[str, Any]:
        """All of hers."""
        return await self._triggers.list_schedules(self._caller)

    async def delete_schedule(self, name: str) -> Mapping[str, Any]:
        """Forget one of hers."""
        return await self._triggers.delete_schedule(self._caller, name)

    async def add_hook(self, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        """Make a hook."""
        return await self._triggers.add_hook(self._caller, asked)

    async def list_hooks(self) -> Mapping[str, Any]:
        """All of hers."""
        return await self._triggers.list_hooks(self._caller)

    async def delete_hook(self, name: str) -> Mapping[str, Any]:
        """Forget one of hers."""
        return await self._triggers.delete_hook(self._caller, name)


class TriggersOfCalls:
    """Gives each call those of whoever made it; who is no person has none."""

    def __init__(self) -> None:
        self.own: OwnTriggers | None = None  # until the gateway is put together

    def __call__(self, caller: Caller, /) -> CallerTriggers | None:
        """Those of a caller."""
        if self.own is None or caller.person is None or caller.token is None:
            return None
        return CallerTriggers(self.own, caller)
