"""The endpoints of a person's hooks and schedules.

Law. Who may not have any is refused before anything is looked up; and a machine has none.
"""

from collections.abc import Mapping
from typing import Any, Final

from carnet.core.people.identity import Caller
from carnet.gateway.triggers.own_triggers import OwnTriggers
from carnet.http.exchange import Exchange, Row, check_json_body, reply_json
from carnet.wire.grammar import json

MOST_BYTES: Final = 64 * 1024  # of what is asked for
TRIGGERS: Final = "triggers"  # the permission


class TriggerPages:
    """Hooks and schedules over HTTP."""

    def __init__(self, triggers: OwnTriggers) -> None:
        self._triggers = triggers

    async def list_schedules(self, exchange: Exchange, caller: Caller) -> None:
        """GET /schedules."""
        await reply_json(exchange, await self._triggers.list_schedules(caller))

    async def add_schedule(self, exchange: Exchange, caller: Caller) -> None:
        """POST /schedules."""
        asked = await _asked(exchange)
        await reply_json(exchange, await self._triggers.add_schedule(caller, asked), 201)

    async def show_schedule(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """GET /schedules/{name}."""
        await reply_json(exchange, await self._triggers.show_schedule(caller, name))

    async def pause_schedule(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """POST /schedules/{name}/pause."""
        await reply_json(exchange, await self._triggers.pause_schedule(caller, name))

    async def resume_schedule(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """POST /schedules/{name}/resume."""
        await reply_json(exchange, await self._triggers.resume_schedule(caller, name))

    async def fire_schedule(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """POST /schedules/{name}/fire."""
        await reply_json(exchange, await self._triggers.fire_schedule(caller, name), 202)

    async def delete_schedule(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """POST /schedules/{name}/delete."""
        await reply_json(exchange, await self._triggers.delete_schedule(caller, name))

    async def list_hooks(self, exchange: Exchange, caller: Caller) -> None:
        """GET /hooks."""
        await reply_json(exchange, await self._triggers.list_hooks(caller))

    async def add_hook(self, exchange: Exchange, caller: Caller) -> None:
        """POST /hooks."""
        asked = await _asked(exchange)
        await reply_json(exchange, await self._triggers.add_hook(caller, asked), 201)

    async def show_hook(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """GET /hooks/{name}."""
        await reply_json(exchange, await self._triggers.show_hook(caller, name))

    async def pause_hook(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """POST /hooks/{name}/pause."""
        await reply_json(exchange, await self._triggers.pause_hook(caller, name))

    async def resume_hook(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """POST /hooks/{name}/resume."""
        await reply_json(exchange, await self._triggers.resume_hook(caller, name))

    async def rotate_hook(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """POST /hooks/{name}/rotate."""
        asked = await _asked(exchange)
        await reply_json(exchange, await self._triggers.rotate_hook(caller, name, asked))

    async def fire_hook(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """POST /hooks/{name}/fire."""
        body = await _asked(exchange)
        await reply_json(exchange, await self._triggers.fire_hook(caller, name, body), 202)

    async def delete_hook(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """POST /hooks/{name}/delete."""
        await reply_json(exchange, await self._triggers.delete_hook(caller, name))


async def _asked(exchange: Exchange) -> Mapping[str, Any]:
    check_json_body(exchange.headers)
    return json.read_object(await exchange.read(MOST_BYTES))


def _row(method: str, path: str, summary: str, **more: Any) -> Row:
    return Row(
        method=method, path=path, summary=summary, permission=TRIGGERS, answer="Page", **more
    )


ROUTES: Final = (
    _row("GET", "/schedules", "List your schedules", endpoint=TriggerPages.list_schedules),
    _row(
        "POST",
        "/schedules",
        "Make a schedule",
        endpoint=TriggerPages.add_schedule,
        body="NewSchedule",
        status=201,
    ),
    _row(
        "GET",
        "/schedules/{name}",
        "One schedule: when it is due, and what became of it",
        endpoint=TriggerPages.show_schedule,
    ),
    _row(
        "POST",
        "/schedules/{name}/pause",
        "Let a schedule rest",
        endpoint=TriggerPages.pause_schedule,
    ),
    _row(
        "POST",
        "/schedules/{name}/resume",
        "Let a schedule go on",
        endpoint=TriggerPages.resume_schedule,
    ),
    _row(
        "POST",
        "/schedules/{name}/fire",
        "Have a schedule begin now",
        endpoint=TriggerPages.fire_schedule,
        status=202,
    ),
    _row(
        "POST",
        "/schedules/{name}/delete",
        "Delete a schedule",
        endpoint=TriggerPages.delete_schedule,
    ),
    _row("GET", "/hooks", "List your hooks", endpoint=TriggerPages.list_hooks),
    _row(
        "POST",
        "/hooks",
        "Make a hook; its secret is shown this once",
        endpoint=TriggerPages.add_hook,
        body="NewHook",
        status=201,
    ),
    _row(
        "GET",
        "/hooks/{name}",
        "One hook, and what became of what was sent to it",
        endpoint=TriggerPages.show_hook,
    ),
    _row("POST", "/hooks/{name}/pause", "Let a hook rest", endpoint=TriggerPages.pause_hook),
    _row("POST", "/hooks/{name}/resume", "Let a hook go on", endpoint=TriggerPages.resume_hook),
    _row(
        "POST",
        "/hooks/{name}/rotate",
        "Give a hook another secret, which is shown this once",
        endpoint=TriggerPages.rotate_hook,
        body="NewSecret",
    ),
    _row(
        "POST",
        "/hooks/{name}/fire",
        "Have a hook begin now, as if it were sent this event",
        endpoint=TriggerPages.fire_hook,
        body="HookEvent",
        status=202,
    ),
    _row("POST", "/hooks/{name}/delete", "Delete a hook", endpoint=TriggerPages.delete_hook),
)
