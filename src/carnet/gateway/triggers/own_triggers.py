"""What a person does with her hooks and schedules, by whichever way: HTTP, or an agent of hers.

Law 1. Everything is looked up as hers. What is another's does not exist for her.
Law 2. Nobody has something begun that it could not ask for itself: an agent that it may not call
       is refused when a trigger is made, and judged again each time.
Law 3. A secret is shown once: when it is made.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from carnet.core.people.identity import Caller
from carnet.core.people.proof import SECOND_US
from carnet.core.triggers.template import read_template
from carnet.errors import InvalidRequest, PersonRequired, TriggerNotFound
from carnet.gateway.triggers.forms import (
    SCHEMAS,
    FindZone,
    Page,
    coming,
    following,
    hook_page,
    read_new_hook,
    read_new_schedule,
    read_secret,
    recent_page,
    refuse_unknown,
    schedule_page,
    secret_page,
)
from carnet.guards.target.target import permit
from carnet.ports.calls.agent import Router
from carnet.ports.calls.triggers import (
    Firings,
    Hook,
    Hooks,
    NewFiring,
    Schedule,
    Schedules,
    TriggerKind,
)
from carnet.ports.trust.people import People
from carnet.ports.world.clock import Clock, Ids
from carnet.wire.grammar import json
from carnet.wire.hooks.scheme import SCHEMES, new_secret

SHOWN_FIRINGS: Final = 10
USUAL_HOURS: Final = 24  # that a former secret is good for
MOST_HOURS: Final = 168
_HOUR_US: Final = 3600 * SECOND_US


class TriggerBounds(Struct, frozen=True, kw_only=True):
    """How much one person may have."""

    schedules: int
    hooks: int
    firings: int  # that are still to begin


class TriggerParts(Struct, frozen=True, kw_only=True, eq=False):
    """What triggers are kept in, and judged with."""

    schedules: Schedules
    hooks: Hooks
    firings: Firings
    people: People
    router: Router
    find_zone: FindZone
    clock: Clock
    ids: Ids
    bounds: TriggerBounds
    public_url: str
    wake: Callable[[], None]  # when something is to begin

    def address(self, hook: Hook) -> str:
        """Where events of a hook are sent."""
        person = self.people.numbered(hook.person)
        return f"{self.public_url}/hooks/{'' if person is None else person.name}.{hook.name}"


class OwnTriggers:
    """The hooks and schedules of whoever asks."""

    def __init__(self, parts: TriggerParts) -> None:
        self._parts = parts

    # ------------------------------------------------------------------ schedules

    async def add_schedule(self, caller: Caller, asked: Mapping[str, Any]) -> Page:
        """Make a schedule."""
        parts, now = self._parts, self._parts.clock.wall_us()
        new = read_new_schedule(
            asked,
            whose=_whose(caller),
            check_agent=lambda name: self._agent(caller, name),
            find_zone=parts.find_zone,
            now=now,
        )
        return schedule_page(await parts.schedules.add(new, most=parts.bounds.schedules, now=now))

    async def list_schedules(self, caller: Caller) -> Page:
        """All of hers."""
        found = await self._parts.schedules.list(_whose(caller)[0])
        return {"schedules": [schedule_page(each) for each in found]}

    async def show_schedule(self, caller: Caller, name: str) -> Page:
        """One of hers: when it is due, and what became of it."""
        schedule = await self._schedule(caller, name)
        parts = self._parts
        ticks = coming(schedule, parts.find_zone, parts.clock.wall_us())
        recent = await self._recent("schedule", schedule)
        return {**schedule_page(schedule), "coming": ticks, "recent": recent}

    async def pause_schedule(self, caller: Caller, name: str) -> Page:
        """Let one rest."""
        schedules, now = self._parts.schedules, self._parts.clock.wall_us()
        _need(await schedules.pause(_whose(caller)[0], name, now))
        return schedule_page(await self._schedule(caller, name))

    async def resume_schedule(self, caller: Caller, name: str) -> Page:
        """Let one go on, from now: what it missed meanwhile was not to be."""
        schedule, parts = await self._schedule(caller, name), self._parts
        now = parts.clock.wall_us()
        tick = following(schedule.cron, schedule.zone, parts.find_zone, now)
        if schedule.paused is not None:
            _need(await parts.schedules.resume(schedule.person, name, tick))
        return schedule_page(await self._schedule(caller, name))

    async def fire_schedule(self, caller: Caller, name: str) -> Page:
        """Have one begin now, beside its ticks."""
        schedule, parts = await self._schedule(caller, name), self._parts
        firing = self._firing(schedule.content)
        await parts.schedules.fire(schedule, firing, most=parts.bounds.firings)
        parts.wake()
        return {"name": name, "state": "due"}

    async def delete_schedule(self, caller: Caller, name: str) -> Page:
        """Forget one."""
        _need(await self._parts.schedules.delete(_whose(caller)[0], name))
        return {"name": name, "state": "deleted"}

    # ------------------------------------------------------------------ hooks

    async def add_hook(self, caller: Caller, asked: Mapping[str, Any]) -> Page:
        """Make a hook; its secret is shown this once."""
        parts = self._parts
        new, given = read_new_hook(
            asked, whose=_whose(caller), check_agent=lambda name: self._agent(caller, name)
        )
        secret = given or new_secret(SCHEMES[new.scheme], parts.ids.token())
        most, now = parts.bounds.hooks, parts.clock.wall_us()
        hook = await parts.hooks.add(new, secret, most=most, now=now)
        return secret_page(hook, parts.address(hook), secret)

    async def list_hooks(self, caller: Caller) -> Page:
        """All of hers."""
        found = await self._parts.hooks.list(_whose(caller)[0])
        return {"hooks": [hook_page(each, self._parts.address(each)) for each in found]}

    async def show_hook(self, caller: Caller, name: str) -> Page:
        """One of hers, and what became of what was sent to it."""
        hook = await self._hook(caller, name)
        recent = await self._recent("webhook", hook)
        return {**hook_page(hook, self._parts.address(hook)), "recent": recent}

    async def pause_hook(self, caller: Caller, name: str) -> Page:
        """Let one take nothing."""
        hooks, now = self._parts.hooks, self._parts.clock.wall_us()
        _need(await hooks.pause(_whose(caller)[0], name, now))
        return await self._hook_page(caller, name)

    async def resume_hook(self, caller: Caller, name: str) -> Page:
        """Let one go on."""
        _need(await self._parts.hooks.resume(_whose(caller)[0], name))
        return await self._hook_page(caller, name)

    async def rotate_hook(self, caller: Caller, name: str, asked: Mapping[str, Any]) -> Page:
        """Give one another secret, which is shown this once; the former is good for a while."""
        refuse_unknown(asked, SCHEMAS["NewSecret"]["properties"])
        hook, parts = await self._hook(caller, name), self._parts
        hours = asked.get("hours", USUAL_HOURS)
        if type(hours) is not int or not 0 <= hours <= MOST_HOURS:
            raise InvalidRequest("hours", f"must be a whole number from 0 to {MOST_HOURS}")
        given = read_secret(asked.get("secret"), hook.scheme)
        secret = given or new_secret(SCHEMES[hook.scheme], parts.ids.token())
        until = parts.clock.wall_us() + hours * _HOUR_US
        _need(await parts.hooks.rotate(hook, secret, until=until))
        hook = await self._hook(caller, name)
        return secret_page(hook, parts.address(hook), secret)

    async def fire_hook(self, caller: Caller, name: str, body: Any) -> Page:  # noqa: ANN401, RUF100
        """Have one begin now, as if it had been sent this body."""
        hook, parts = await self._hook(caller, name), self._parts
        event = parts.ids.uuid()
        values = {"body": body, "event": event, "hook": name}
        content = read_template(hook.template).write(values, json.write_text)
        now = parts.clock.wall_us()
        firing = self._firing(content)
        most = parts.bounds.firings
        await parts.hooks.receive(hook, event, firing, expires=now, most=most, now=now)
        parts.wake()
        return {"name": name, "state": "due"}

    async def delete_hook(self, caller: Caller, name: str) -> Page:
        """Forget one, and its secrets."""
        _need(await self._parts.hooks.delete(_whose(caller)[0], name))
        return {"name": name, "state": "deleted"}

    # ------------------------------------------------------------------ both

    def _agent(self, caller: Caller, name: str) -> str:
        """The stored name of an agent that the caller may have asked."""
        target = self._parts.router.find(name)
        permit(caller, target)
        return target.name

    def _firing(self, content: str) -> NewFiring:
        parts = self._parts
        return NewFiring(key=parts.ids.uuid(), content=content, tick=parts.clock.wall_us())

    async def _recent(self, kind: TriggerKind, source: Schedule | Hook) -> list[Page]:
        firings = self._parts.firings
        return recent_page(await firings.recent(kind, source.person, source.name, SHOWN_FIRINGS))

    async def _schedule(self, caller: Caller, name: str) -> Schedule:
        found = await self._parts.schedules.find(_whose(caller)[0], name)
        if found is None:
            raise TriggerNotFound
        return found

    async def _hook(self, caller: Caller, name: str) -> Hook:
        found = await self._parts.hooks.find(_whose(caller)[0], name)
        if found is None:
            raise TriggerNotFound
        return found

    async def _hook_page(self, caller: Caller, name: str) -> Page:
        hook = await self._hook(caller, name)
        return hook_page(hook, self._parts.address(hook))


def _whose(caller: Caller) -> tuple[int, int]:
    """The numbers of the person who asks, and of her token."""
    if caller.person is None or caller.token is None:
        raise PersonRequired
    return caller.person, int(caller.token)


def _need(is_there: bool) -> None:  # noqa: FBT001  the one thing it asks
    if not is_there:
        raise TriggerNotFound
