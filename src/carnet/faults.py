"""Named crash and delay points, off unless switched on.

`CRASH_AT=name` kills the process with SIGKILL the first time a point is passed (`name:3` the third
time); `DELAY_AT=name:seconds` sleeps there. Points that a process passes are noted in memory, so
that a test can ask which ones a scene reaches.

Where every call counts, `is_armed` is asked before: passing a point then means something.

Law. Every point is listed in POINTS; passing an unlisted one is an error in our code.
"""

import os
import signal
import time

POINTS = frozenset(
    {
        "recv.body",
        "parse.ok",
        "t1.begin",
        "t1.nonce",
        "t1.before_commit",
        "t1.after_commit",
        "upstream.before_connect",
        "upstream.request_sent",
        "upstream.first_byte",
        "upstream.mid_event",
        "upstream.done",
        "event.before_t2",
        "event.after_t2",
        "event.after_socket_write",
        "budget.written",
        "t3.begin",
        "t3.before_commit",
        "t3.after_commit",
        "reply.before_write",
        "reply.half_written",
        "reply.after_write",
        "wait.kept",
        "resolve.used",
        "config.written",
        "config.replaced",
        "expire.each_turn",
        "answer.begin",
        "answer.done",
        "question.begin",
        "question.asked",
        "question.withheld",
        "task.queued",
        "task.leased",
        "task.released",
        "step.begin",
        "step.done",
        "step.kept",
        "memory.begin",
        "memory.kept",
        "dialogue.before_keep",
        "dialogue.kept",
        "schedule.before_tick",
        "schedule.ticked",
        "hook.before_keep",
        "hook.kept",
        "firing.leased",
        "firing.begun",
        "firing.before_end",
        "firing.ended",
        "session.before_keep",
        "session.kept",
        "session.before_end",
        "session.ended",
        "message.before_keep",
        "message.kept",
        "message.before_settle",
        "message.settled",
        "conversation.before_delete",
        "conversation.deleted",
        "voucher.before_record",
        "voucher.after_record",
        "voucher.after_end",
        "outbox.leased",
        "outbox.before_send",
        "outbox.after_send",
        "outbox.before_mark",
        "outbox.after_mark",
        "recover.begin",
        "recover.each_turn",
        "recover.end",
        "purge.mid",
        "migrate.mid",
        "restore.checked",
        "restore.mid",
        "restore.done",
        "rotate.before_switch",
        "rotate.after_switch",
        "drain.begin",
        "drain.mid",
    }
)


def _plan(variable: str) -> tuple[str, float]:
    name, _, number = os.environ.get(variable, "").partition(":")
    return name, float(number or 1)


_crash_at, _crash_on = _plan("CRASH_AT")
_delay_at, _delay_seconds = _plan("DELAY_AT")
is_armed = bool(_crash_at or _delay_at or os.environ.get("CARNET_NOTE_POINTS"))
_passed: dict[str, int] = {}


def passed() -> dict[str, int]:
    """How often each point was passed while the points were armed."""
    return dict(_passed)


def armed() -> bool:
    """Whether passing a point means anything in this process."""
    return is_armed


def point(name: str) -> None:
    """Pass a named point."""
    if is_armed:
        _pass(name)


def _pass(name: str) -> None:
    if name not in POINTS:
        raise AssertionError(f"{name} is not a listed fault point")
    _passed[name] = _passed.get(name, 0) + 1
    if name == _crash_at and _passed[name] >= _crash_on:
        os.kill(os.getpid(), signal.SIGKILL)
    if name == _delay_at:
        time.sleep(_delay_seconds)
