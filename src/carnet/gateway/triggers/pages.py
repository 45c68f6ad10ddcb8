"""The endpoints of a person's hooks and schedules.

Law. Who may not have any is refused before anything is looked up; and a machine has none.
"""

from collections.abc import Mapping
from typing import Any, Final

from carnet.core.people.identity import Caller
from carnet.gateway.triggers.hooks import HookNoun
from carnet.gateway.triggers.own_triggers import OwnTriggers
from carnet.http.exchange import Exchange, Row, check_json_body, reply_json
from carnet.ports.calls.triggers import Hook, Schedule
from carnet.wire.grammar import json

MOST_BYTES: Final = 64 * 1024  # of what is asked for
TRIGGERS: Final = "triggers"  # the permission


class TriggerPages:
    """Schedules, or hooks, over HTTP."""

    def __init__(self, own: OwnTriggers[Schedule] | OwnTriggers[Hook]) -> None:
        self._own = own

    async def list(self, exchange: Exchange, caller: Caller) -> None:
        """GET /schedules, GET /hooks."""
        await reply_json(exchange, await self._own.list(caller))

    async def add(self, exchange: Exchange, caller: Caller) -> None:
        """POST /schedules, POST /hooks."""
        await reply_json(exchange, await self._own.add(caller, await read_asked(exchange)), 201)

    async def show(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """GET .../{name}."""
        await reply_json(exchange, await self._own.show(caller, name))

    async def pause(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """POST .../{name}/pause."""
        await reply_json(exchange, await self._own.pause(caller, name))

    async def resume(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """POST .../{name}/resume."""
        await reply_json(exchange, await self._own.resume(caller, name))

    async def fire(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """POST .../{name}/fire, with nothing."""
        await reply_json(exchange, await self._own.fire(caller, name, {}), 202)

    async def fire_with(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """POST .../{name}/fire, with what is to have happened."""
        event = await read_asked(exchange)
        await reply_json(exchange, await self._own.fire(caller, name, event), 202)

    async def delete(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """POST .../{name}/delete."""
        await reply_json(exchange, await self._own.delete(caller, name))


class SecretPages:
    """The secrets of hooks over HTTP."""

    def __init__(self, own: OwnTriggers[Hook], noun: HookNoun) -> None:
        self._own = own
        self._noun = noun

    async def rotate(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """POST /hooks/{name}/rotate."""
        asked = await read_asked(exchange)
        await reply_json(exchange, await self._noun.rotate(self._own, caller, name, asked))


async def read_asked(exchange: Exchange) -> Mapping[str, Any]:
    """What is asked for."""
    check_json_body(exchange.headers)
    return json.read_object(await exchange.read(MOST_BYTES))


def _row(method: str, path: str, summary: str, **more: Any) -> Row:
    return Row(
        method=method, path=path, summary=summary, permission=TRIGGERS, answer="Page", **more
    )


def _rows(noun: str, add: Mapping[str, str], show: str, fire: Mapping[str, Any]) -> tuple[Row, ...]:
    """The rows of schedules, or of hooks; `add`, `show` and `fire` say what is their own."""
    root = f"/{noun}s"
    one = root + "/{name}"
    pages = TriggerPages
    return (
        _row("GET", root, f"List your {noun}s", endpoint=pages.list),
        _row("POST", root, **add, endpoint=pages.add, status=201),
        _row("GET", one, show, endpoint=pages.show),
        _row("POST", f"{one}/pause", f"Let a {noun} rest", endpoint=pages.pause),
        _row("POST", f"{one}/resume", f"Let a {noun} go on", endpoint=pages.resume),
        _row("POST", f"{one}/fire", **fire, status=202),
        _row("POST", f"{one}/delete", f"Delete a {noun}", endpoint=pages.delete),
    )


SCHEDULES: Final = _rows(
    "schedule",
    {"summary": "Make a schedule", "body": "NewSchedule"},
    "One schedule: when it is due, and what became of it",
    {"summary": "Have a schedule begin now", "endpoint": TriggerPages.fire},
)
HOOKS: Final = _rows(
    "hook",
    {"summary": "Make a hook; its secret is shown this once", "body": "NewHook"},
    "One hook, and what became of what was sent to it",
    {
        "summary": "Have a hook begin now, as if it were sent this event",
        "endpoint": TriggerPages.fire_with,
        "body": "HookEvent",
    },
)
SECRETS: Final = (
    _row(
        "POST",
        "/hooks/{name}/rotate",
        "Give a hook another secret, which is shown this once",
        endpoint=SecretPages.rotate,
        body="NewSecret",
    ),
)
