"""Tasks as tokens see them: a chat request that is answered later, in a list and by itself."""

from typing import Any, Final

from carnet.core.chain.turn import Turn
from carnet.core.messages.events import Failed, Usage
from carnet.errors import TaskNotFound
from carnet.wire.dialects.dialect import TaskView
from carnet.wire.dialects.openai.answer import usage_object
from carnet.wire.dialects.openai.refusals import error_object
from carnet.wire.dialects.policy import interrupt_object
from carnet.wire.dialects.results import result_of
from carnet.wire.grammar.times import when

_THOUSAND: Final = 1000
_WORDS: Final = {"queued": "pending", "done": "done", "failed": "failed"}
_RUNNING: Final = "running"  # also while it waits for a decision, or nobody knows


def task_line(view: TaskView) -> dict[str, Any]:
    """One task in a list."""
    turn, word = view.turn, _WORDS.get(view.turn.state, _RUNNING)
    waits = {"waits": True} if turn.state == "waiting" else {}
    return {
        "taskId": view.id,
        "status": word,
        "agent": turn.agent,
        "skill": view.skill,
        "sender": view.sender,
        "progress": (view.progress or 0) / _THOUSAND if word == _RUNNING else None,
        "note": view.note,
        "attempt": turn.attempt,
        "created": when(turn.created),
        "ended": when(turn.ended),
        "tokens": tokens_of(turn),
        "cancelled": when(view.cancelled),
        "code": turn.code,
        "run": turn.run,
        "turn": turn.turn,
        **waits,
    }


def task_page(view: TaskView) -> dict[str, Any]:
    """One task, with its result or its error, and what it used."""
    page = {**task_line(view), "callback": view.callback}
    if view.interrupts:
        asked = [interrupt_object(each) for each in view.interrupts]
        page |= {"interrupt": asked[0], "interrupts": asked}
    if view.turn.state not in {"done", "failed"}:
        return page
    if not view.events:
        raise TaskNotFound  # its events are forgotten before the task is
    last = view.events[-1]
    page["usage"] = usage_object(_used(view), view.currency)
    if isinstance(last, Failed):
        return {**page, "error": error_object(last.error(), run=view.turn.run)}
    return {**page, "result": result_of(view.events)}


def _used(view: TaskView) -> Usage:
    """What whoever had waited for the answer would have been told that it used."""
    reported = [event for event in view.events if isinstance(event, Usage)]
    if reported:
        return reported[-1]
    turn = view.turn
    return Usage(turn.tokens_in, turn.tokens_out, turn.cost, turn.run_cost)


def tokens_of(turn: Turn) -> dict[str, int] | None:
    """What the agent has reported to have used; None while it runs, and where it reported none."""
    if turn.tokens_in is None and turn.tokens_out is None:
        return None
    return {"in": turn.tokens_in or 0, "out": turn.tokens_out or 0}
