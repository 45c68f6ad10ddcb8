"""What a person does with her schedules, as far as it is not what she does with hooks."""

from collections.abc import Mapping
from typing import Any, Final

from carnet.core.people.identity import Caller
from carnet.gateway.triggers.forms import (
    Page,
    coming,
    following,
    read_new_schedule,
    schedule_page,
)
from carnet.gateway.triggers.own_triggers import TriggerParts
from carnet.ports.calls.triggers import Owned, Schedule, TriggerKind


class ScheduleNoun:
    """Schedules: `own_triggers.TriggerNoun`."""

    kind: TriggerKind = "schedule"
    plural: str = "schedules"

    def __init__(self, parts: TriggerParts) -> None:
        self._parts = parts
        self.owned: Final[Owned[Schedule]] = parts.schedules.own

    async def add(self, caller: Caller, whose: tuple[int, int], asked: Mapping[str, Any]) -> Page:
        """Make a schedule."""
        parts, now = self._parts, self._parts.clock.wall_us()
        new = read_new_schedule(
            asked,
            whose=whose,
            check_agent=lambda name: parts.agent(caller, name),
            find_zone=parts.find_zone,
            now=now,
        )
        return self.page(await parts.schedules.add(new, most=parts.bounds.schedules, now=now))

    def page(self, trigger: Schedule) -> Page:
        """One as it is listed."""
        return schedule_page(trigger, self._parts.ends.known(trigger.token))

    def details(self, trigger: Schedule) -> Page:
        """When it is due."""
        parts = self._parts
        return {"coming": coming(trigger, parts.find_zone, parts.clock.wall_us())}

    async def resume(self, trigger: Schedule, token: int) -> bool:
        """Let it go on from now: what it missed meanwhile was not to be."""
        parts = self._parts
        tick = following(trigger.cron, trigger.zone, parts.find_zone, parts.clock.wall_us())
        return await self.owned.resume(trigger.person, trigger.name, token=token, following=tick)

    async def fire(self, trigger: Schedule, event: Mapping[str, Any]) -> None:
        """Have it begin now, beside its ticks."""
        del event
        parts = self._parts
        firing = parts.firing(trigger.content)
        await parts.schedules.fire(trigger, firing, most=parts.bounds.firings)
