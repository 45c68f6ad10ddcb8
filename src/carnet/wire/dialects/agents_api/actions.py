"""Pending actions: what a run waits for, as agents-api tells it, and back.

    action_id kind summary preview apply_input created_at expires_at agent status metadata

Law 1. An action is named by its task and its interrupt: who may not see the task cannot decide it.
Law 2. The secret of an interrupt is not told: who decides is known by a token or a signature.
Law 3. `read_actions(envelopes of write_actions(x))` is x, as far as another agent may say it: the
       members that only a Carnet knows stand in the metadata.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from carnet.core.messages.events import Waiting
from carnet.core.messages.interrupt import Interrupt, InterruptRecord
from carnet.wire.dialects.agents_api.parts import MOST_PARTS
from carnet.wire.dialects.agents_api.request import MOST_ACTION, action_id
from carnet.wire.dialects.policy import (
    MOST_INTERRUPTS,
    MOST_SHOWN,
    interrupt_object,
    kept,
    read_interrupts,
)
from carnet.wire.grammar.times import when

SCHEMA: Final = "agents-api.message"
TYPE: Final = "approval_required"
OWN: Final = "carnet"  # the member of the metadata that a Carnet reads
KEPT: Final = "agents_api"  # the member of an interrupt that says where it is decided
_STATUSES: Final = {"open": "pending", "expired": "expired"}
_SILENT: Final = "The agent waits for a decision before it goes on."


class ActionPlace(Struct, frozen=True):
    """Where a decision goes."""

    action: str


def write_action(asked: Interrupt, task: str, *, created: int | None) -> dict[str, Any]:
    """A pending action; `created` is when it was asked."""
    more = asked.more or {}
    shown = interrupt_object(replace(asked, state=""))
    known = {
        "action_id": action_id(task, asked.id),
        "kind": asked.kind,
        "summary": asked.message,
        "preview": more.get("preview", {}),
        "apply_input": more.get("arguments", {}),
        "created_at": when(created) or "",
        "status": "pending",
        "expires_at": asked.expires_at,
        "agent": asked.origin,
        "metadata": {OWN: shown},
    }
    return {name: value for name, value in known.items() if value is not None}


def write_record(record: InterruptRecord, task: str) -> dict[str, Any]:
    """An action as it is, perhaps decided."""
    action = write_action(record.interrupt, task, created=record.asked or None)
    status = _STATUSES.get(record.status) or record.outcome or "rejected"
    more = {
        "status": status,
        "resolved_at": when(record.resolved),
        "resolver": record.resolver,
        "expires_at": when(record.expires),
    }
    return action | {name: value for name, value in more.items() if value is not None}


def write_envelopes(waiting: Waiting, task: str, *, created: int | None) -> list[dict[str, Any]]:
    """What stands in an answer for each action."""
    return [
        {
            "schema": SCHEMA,
            "version": 1,
            "type": TYPE,
            "role": "tool",
            "content": asked.message,
            "payload": write_action(asked, task, created=created),
            "metadata": {},
        }
        for asked in waiting.interrupts[:MOST_SHOWN]
    ]


# ------------------------------------------------------------------ read


def read_actions(values: Sequence[object], *, currency: str) -> tuple[Interrupt, ...]:
    """The interrupts that the envelopes of an answer stand for; what is none is left out."""
    found: dict[str, Interrupt] = {}
    for value in values[:MOST_PARTS]:
        asked = _read_envelope(value, currency)
        if asked is not None and len(found) < MOST_INTERRUPTS:
            found.setdefault(asked.id, asked)
    return tuple(found.values())


def _read_envelope(value: object, currency: str) -> Interrupt | None:
    if not isinstance(value, Mapping) or value.get("type") != TYPE:
        return None
    action = value.get("payload")
    if not isinstance(action, Mapping):
        return None
    name = action.get("action_id")
    if not isinstance(name, str) or not name or len(name) > MOST_ACTION or not name.isprintable():
        return None
    asked, *_ = _own(action.get("metadata"), currency) or _plain(action, currency)
    more = {**(asked.more or {}), KEPT: {"action": name}}
    more |= {key: action[key] for key in ("preview",) if action.get(key)}
    if action.get("apply_input"):
        more["arguments"] = action["apply_input"]
    found = kept(replace(asked, id=name[:128], state="", more=more))
    if found is not None and found.more is not None:
        return found
    # It is too wide to be kept: all but where it is decided is left out.
    return replace(asked, id=name[:128], state="", schema=None, more={KEPT: {"action": name}})


def _own(metadata: object, currency: str) -> tuple[Interrupt, ...]:
    """What a Carnet says of it, if one does."""
    own = metadata.get(OWN) if isinstance(metadata, Mapping) else None
    return read_interrupts(own, currency=currency) if isinstance(own, dict) else ()


def _plain(action: Mapping[str, Any], currency: str) -> tuple[Interrupt, ...]:
    """What anybody says of it: it is approved, or it is not."""
    summary = action.get("summary")
    entry = {
        "kind": "approval",
        "message": summary if isinstance(summary, str) else _SILENT,
        "expires_at": action.get("expires_at"),
    }
    return read_interrupts(entry, currency=currency)  # never none: a kind and a message are enough


def place_of(asked: Interrupt) -> ActionPlace | None:
    """Where an interrupt of our turn is decided; None if no pending action asks for it."""
    found = (asked.more or {}).get(KEPT)
    action = found.get("action") if isinstance(found, Mapping) else None
    return ActionPlace(action) if isinstance(action, str) and action else None
