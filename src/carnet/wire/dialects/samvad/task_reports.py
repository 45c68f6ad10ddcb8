"""What a peer tells about work that it took on for later: that it took it, and how it goes.

Law 1. What the reference SDKs and their demo agents write is read as well as what the schema
       allows: further fields, `completed` for `done`, an error that is a mere text.
Law 2. Of an error only the word is kept, as in `reports`; a result is bounded as that of an answer.
Law 3. A status that we do not know is a fault of the peer, and never an end.
"""

import math
import re
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from carnet.core.messages.events import Done, Event
from carnet.core.messages.interrupt import Interrupt
from carnet.errors import (
    BY_CODE,
    Cancelled,
    CarnetError,
    InvalidJson,
    PeerRefused,
    ProviderError,
)
from carnet.wire.dialects.results import Gathered
from carnet.wire.dialects.samvad.answer import MOST_LEVELS, UNREADABLE, result_events
from carnet.wire.dialects.samvad.reports import read_chain, read_failure
from carnet.wire.grammar import json

TaskStatus = Literal["pending", "running", "done", "failed"]

NOT_FOUND: Final = "Task not found"  # in the words of the SDKs, and a mere text

_ENDED: Final = frozenset({"done", "failed"})
_STATUSES: Final[dict[str, TaskStatus]] = {
    "accepted": "pending",
    "pending": "pending",
    "queued": "pending",
    "running": "running",
    "done": "done",
    "completed": "done",
    "failed": "failed",
}
_ID: Final = re.compile(r"(?!\.{1,2}\Z)[!-~]{1,256}", re.ASCII)


class TaskRecord(Struct, frozen=True, kw_only=True):
    """How a task goes: `error` is set if it failed, `result` if it is done."""

    id: str
    status: TaskStatus
    progress: float | None = None  # 0 to 1, as far as the other side tells
    result: dict[str, Any] | None = None
    error: CarnetError | None = None
    interrupts: tuple[Interrupt, ...] = ()  # what it waits for, if it is a Carnet's

    @property
    def is_over(self) -> bool:
        """Whether it has ended, one way or the other."""
        return self.status in _ENDED


class _Accepted(Struct, gc=False):
    taskId: str  # noqa: N815  the protocol's name


class _Record(Struct, gc=False):
    status: str
    taskId: str | None = None  # noqa: N815
    progress: object = None
    result: object = None
    error: object = None


_ACCEPTED: Final = msgspec.json.Decoder(_Accepted)
_RECORD: Final = msgspec.json.Decoder(_Record)


def is_task_id(text: str) -> bool:
    """Whether a text can be the id of a task: it becomes one part of a path."""
    return _ID.fullmatch(text) is not None


def read_accepted(body: bytes) -> str:
    """The id of a task that was accepted."""
    try:
        accepted = _ACCEPTED.decode(body)
    except UNREADABLE as error:
        raise ProviderError(f"the answer names no task: {error}") from None
    if not is_task_id(accepted.taskId):
        raise ProviderError("the answer names a task by no id")
    return accepted.taskId


def is_unknown_task(body: bytes) -> bool:
    """Whether a refusal says that there is no such task, and not that there is no such path."""
    try:
        return json.read_object(body).get("error") == NOT_FOUND
    except InvalidJson:
        return False


def read_task(
    body: bytes,
    *,
    task: str,
    carnet_code: str | None = None,
    asked: tuple[Interrupt, ...] = (),
) -> TaskRecord:
    """The record of a task; `carnet_code` is the header of that name, beside a failure.

    `asked` is what another header says that it waits for.
    """
    try:
        record = _RECORD.decode(body)
        json.refuse_depth(record.result, MOST_LEVELS)
    except UNREADABLE as error:
        raise ProviderError(f"the answer is not the record of a task: {error}") from None
    status = _STATUSES.get(record.status)
    if status is None:
        raise ProviderError("the record of the task has a status that is not known")
    if record.taskId not in {None, task}:
        raise ProviderError("the record is that of another task")
    return TaskRecord(
        id=task,
        status=status,
        progress=_read_progress(record.progress),
        result=_read_result(record.result) if status == "done" else None,
        error=_read_error(record.error, carnet_code) if status == "failed" else None,
        interrupts=() if status in _ENDED else asked,
    )


def task_events(record: TaskRecord) -> list[Event]:
    """The end of a task as the events of an answer; that of one which failed is raised."""
    if record.error is not None:
        raise record.error
    return [*result_events(record.result or {}, Gathered()), Done()]


def _read_progress(value: object) -> float | None:
    """A fraction; whatever is none was not told."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return min(max(float(value), 0.0), 1.0)


def _read_result(value: object) -> dict[str, Any]:
    if value is None:
        raise ProviderError("the task is done and has no result")
    return value if isinstance(value, dict) else {"result": value}


def _read_error(value: object, carnet_code: str | None) -> CarnetError:
    if not isinstance(value, dict):
        return ProviderError("the task has failed, and its error has no code")
    if (chain := read_chain(carnet_code, value.get("message"))) is not None:
        return chain
    error = read_failure(value)
    if carnet_code == Cancelled.code:  # its end was asked for, perhaps by us
        return Cancelled("the other side says so", **error.facts)
    if carnet_code in BY_CODE and isinstance(error, PeerRefused | ProviderError):
        error.facts["peer_reason"] = carnet_code
    return error
