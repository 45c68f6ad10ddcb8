"""A task as A2A shows it, from its record.

Law 1. What a task shows is a function of its turn, its events and what it waits for.
Law 2. The history begins with what was asked; of a task that waits, what it asks is the message of
       its status.
"""

from typing import Any

from msgspec.structs import replace

from carnet.core.messages.events import Done, Event, Failed, Waiting, is_terminal
from carnet.errors import InvalidJson
from carnet.wire.dialects.a2a import extensions
from carnet.wire.dialects.a2a.answers.answer import artifacts_of, plain_status, status_of
from carnet.wire.dialects.a2a.answers.facts import facts_of_turn, with_events
from carnet.wire.dialects.a2a.answers.history import history_of
from carnet.wire.dialects.a2a.extensions import TaskFacts
from carnet.wire.dialects.a2a.form import Form
from carnet.wire.dialects.a2a.states import state_of
from carnet.wire.dialects.dialect import TaskView
from carnet.wire.grammar import json
from carnet.wire.grammar.times import when


def moment(micros: int | None) -> str | None:
    """A moment as ProtoJSON writes it."""
    text = when(micros)
    return None if text is None else text.replace("+00:00", "Z")


def write_task(
    *,
    context: str,
    status: dict[str, Any],
    artifacts: list[dict[str, Any]],
    history: list[dict[str, Any]],
    facts: TaskFacts,
    form: Form,
) -> dict[str, Any]:
    """A task; what is empty is left out."""
    written: dict[str, Any] = {"id": facts.task, "contextId": context, "status": status}
    if artifacts:
        written["artifacts"] = artifacts
    if history:
        written["history"] = history
    metadata = extensions.write_task(facts, form.extensions)
    if metadata:
        written["metadata"] = metadata
    return written


def task_of(view: TaskView, form: Form) -> dict[str, Any]:
    """A task, from its record."""
    context, turn = view.context or "", view.turn
    timestamp = moment(view.updated or turn.ended or turn.created)
    facts = replace(facts_of_turn(turn, view.id, view.currency), receipt=view.receipt)
    return write_task(
        context=context,
        status=_status(view, timestamp, form),
        artifacts=artifacts_of(view.events) if form.artifacts else [],
        history=history_of(
            _message(view.request),
            task=view.id,
            context=context,
            form=form,
            answered=view.answered,
        ),
        facts=with_events(facts, view.events, view.currency),
        form=form,
    )


def _status(view: TaskView, timestamp: str | None, form: Form) -> dict[str, Any]:
    given: dict[str, Any] = {"task": view.id, "context": view.context or ""}
    given |= {"timestamp": timestamp, "extensions": form.extensions}
    if view.interrupts:
        return status_of(Waiting(view.interrupts), **given)
    last: Event | None = view.events[-1] if view.events else None
    if last is not None and is_terminal(last) and isinstance(last, Failed | Done):
        return status_of(last, events=view.events, **given)
    if view.turn.state in {"failed", "unknown"} and view.turn.code is not None:
        return status_of(Failed(view.turn.code), **given)
    return plain_status(state_of(view.turn.state, view.turn.code, view.interrupts), timestamp)


def _message(request: bytes) -> dict[str, Any] | None:
    """What was asked; None where it is not kept any more, or was asked in other words."""
    if not request:
        return None
    try:
        message = json.read_object(request).get("message")
    except InvalidJson:
        return None
    return message if isinstance(message, dict) else None
