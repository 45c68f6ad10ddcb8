"""A schedule or a hook on the way between a page and the store: what is asked for, what is shown.

Law. Whatever is wrong is refused here, for the command line, HTTP and agents alike, by the field
     that it is in.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Any, Final

from carnet.core.people.identity import Secret
from carnet.core.people.proof import SECOND_US
from carnet.core.triggers.cron import MOST_CHARACTERS as MOST_CRON
from carnet.core.triggers.cron import read_cron
from carnet.core.triggers.template import MOST_CHARACTERS as MOST_TEMPLATE
from carnet.core.triggers.template import read_template
from carnet.core.triggers.ticks import MISSED, next_tick
from carnet.errors import InvalidRequest
from carnet.ports.calls.triggers import (
    EndReason,
    FiringRecord,
    Hook,
    NewHook,
    NewSchedule,
    Schedule,
)
from carnet.wire.grammar.times import when
from carnet.wire.hooks.scheme import SCHEMES, STANDARD, URL, check_secret

Page = dict[str, Any]
FindZone = Callable[[str], tzinfo]
CheckAgent = Callable[[str], str]  # gives its stored name; refuses who may not call it

MOST_MESSAGE: Final = 8_000  # characters
SHOWN_TICKS: Final = 5
DEFAULT_TEMPLATE: Final = "An event came to the hook {{ hook }}:\n\n{{ body }}"

_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
_TEXT: Final = {"type": "string"}

# What `POST /schedules` and `POST /hooks` take, as /openapi.json shows it.
SCHEMAS: Final[dict[str, Any]] = {
    "NewSchedule": {
        "type": "object",
        "required": ["name", "agent", "cron", "message"],
        "additionalProperties": False,
        "properties": {
            "name": _TEXT,
            "agent": _TEXT,
            "cron": {**_TEXT, "maxLength": MOST_CRON},
            "zone": {**_TEXT, "default": "UTC"},
            "missed": {"enum": list(MISSED), "default": "last"},
            "message": {**_TEXT, "maxLength": MOST_MESSAGE},
        },
    },
    "NewHook": {
        "type": "object",
        "required": ["name", "agent"],
        "additionalProperties": False,
        "properties": {
            "name": _TEXT,
            "agent": _TEXT,
            "scheme": {"enum": list(SCHEMES), "default": STANDARD.name},
            "template": {**_TEXT, "maxLength": MOST_TEMPLATE, "default": DEFAULT_TEMPLATE},
            "secret": _TEXT,
        },
    },
    "HookEvent": {"description": "Whatever its sender says."},
    "NewSecret": {
        "type": "object",
        "additionalProperties": False,
        "properties": {"secret": _TEXT, "hours": {"type": "integer", "minimum": 0}},
    },
}


def check_name(name: object) -> str:
    """Return the name of a schedule or a hook if it can be one, else refuse it."""
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise InvalidRequest("name", "must be 1 to 63 of a-z, 0-9 and '-'")
    return name


def read_new_schedule(
    asked: Mapping[str, Any],
    *,
    whose: tuple[int, int],
    check_agent: CheckAgent,
    find_zone: FindZone,
    now: int,
) -> NewSchedule:
    """The schedule that is asked for; `whose` are the numbers of a person and of her token."""
    refuse_unknown(asked, SCHEMAS["NewSchedule"]["properties"])
    name, missed = check_name(asked.get("name")), asked.get("missed", "last")
    cron, zone = _text(asked, "cron", MOST_CRON), asked.get("zone", "UTC")
    if missed not in MISSED:
        raise InvalidRequest("missed", f"must be one of {', '.join(MISSED)}")
    if not isinstance(zone, str):
        raise InvalidRequest("zone", "must be a text")
    person, token = whose
    return NewSchedule(
        name=name,
        person=person,
        token=token,
        agent=check_agent(_text(asked, "agent", 300)),
        content=_text(asked, "message", MOST_MESSAGE),
        cron=cron,
        zone=zone,
        missed=missed,
        next=following(cron, zone, find_zone, now),
    )


def following(cron: str, zone: str, find_zone: FindZone, now: int) -> int | None:
    """When an expression is due next, in microseconds."""
    tick = next_tick(read_cron(cron), find_zone(zone), now // SECOND_US)
    return None if tick is None else tick * SECOND_US


def read_new_hook(
    asked: Mapping[str, Any],
    *,
    whose: tuple[int, int],
    check_agent: CheckAgent,
) -> tuple[NewHook, Secret | None]:
    """The hook that is asked for, and its secret where one was given."""
    refuse_unknown(asked, SCHEMAS["NewHook"]["properties"])
    name, scheme = check_name(asked.get("name")), asked.get("scheme", STANDARD.name)
    if scheme not in SCHEMES:
        raise InvalidRequest("scheme", f"must be one of {', '.join(SCHEMES)}")
    template = asked.get("template", DEFAULT_TEMPLATE)
    if not isinstance(template, str):
        raise InvalidRequest("template", "must be a text")
    read_template(template)
    new = NewHook(
        name=name,
        person=whose[0],
        token=whose[1],
        agent=check_agent(_text(asked, "agent", 300)),
        scheme=scheme,
        template=template,
    )
    return new, read_secret(asked.get("secret"), scheme)


def read_secret(given: object, scheme: str) -> Secret | None:
    """A secret that its owner brings, since the sender has made it."""
    if given is None:
        return None
    if not isinstance(given, str):
        raise InvalidRequest("secret", "must be a text")
    return check_secret(SCHEMES[scheme], given)


def refuse_unknown(asked: Mapping[str, Any], fields: Collection[str]) -> None:
    """Refuse what is no field of what is asked for."""
    unknown = sorted(set(asked) - set(fields))
    if unknown:
        raise InvalidRequest(unknown[0][:64], f"is none of {', '.join(fields)}")


def _text(asked: Mapping[str, Any], field: str, most: int) -> str:
    given = asked.get(field)
    if not isinstance(given, str) or not given.strip() or len(given) > most or "\0" in given:
        raise InvalidRequest(field, f"must be a text of 1 to {most} characters, none of them NUL")
    return given


# ------------------------------------------------------------------------------------ shown


def schedule_page(schedule: Schedule, ended: EndReason | None) -> Page:
    """A schedule as it is listed; `ended` is why it rests, where nobody has paused it."""
    is_paused = schedule.paused is not None or ended is not None
    return {
        "name": schedule.name,
        "agent": schedule.agent,
        "cron": schedule.cron,
        "zone": schedule.zone,
        "missed": schedule.missed,
        "message": schedule.content,
        "state": "paused" if is_paused else "active",
        "reason": ended,
        "next": None if is_paused else when(schedule.next),
        "created": when(schedule.created),
    }


def coming(schedule: Schedule, find_zone: FindZone, now: int) -> list[str]:
    """Its next ticks, as the clocks of its zone show them."""
    cron, zone = read_cron(schedule.cron), find_zone(schedule.zone)
    found: list[str] = []
    after: int | None = now // SECOND_US
    while after is not None and len(found) < SHOWN_TICKS:
        after = next_tick(cron, zone, after)
        if after is not None:
            found.append(datetime.fromtimestamp(after, zone).isoformat())
    return found


def hook_page(hook: Hook, address: str, ended: EndReason | None) -> Page:
    """A hook as it is listed; `address` is where events are sent, `ended` why it rests."""
    is_paused = hook.paused is not None or ended is not None
    return {
        "name": hook.name,
        "agent": hook.agent,
        "scheme": hook.scheme,
        "template": hook.template,
        "address": f"{address}/SECRET" if hook.scheme == URL.name else address,
        "state": "paused" if is_paused else "active",
        "reason": ended,
        "created": when(hook.created),
        "former_secret_until": when(hook.previous_until),
    }


def secret_page(page: Page, address: str, secret: Secret) -> Page:
    """The page of a hook with its secret, which is shown this once."""
    shown = secret.reveal()
    where = {"address": f"{address}/{shown}"} if page["scheme"] == URL.name else {}
    return {**page, **where, "secret": shown}


def recent_page(recent: Sequence[FiringRecord]) -> list[Page]:
    """What became of those that were begun."""
    return [
        {
            "at": when(each.tick),
            "state": each.state,
            "conversation": each.conversation,
            "code": each.code,
            "ended": when(each.ended),
        }
        for each in recent
    ]
