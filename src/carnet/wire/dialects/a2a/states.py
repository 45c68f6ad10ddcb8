"""The states of a task, in the words of A2A, and back.

Law. Every state of a turn is one state of a task. What cannot end otherwise is shown as failed.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from carnet.core.chain.turn import TurnState
from carnet.core.messages.events import Done, End, Waiting
from carnet.core.messages.interrupt import Interrupt

SUBMITTED: Final = "TASK_STATE_SUBMITTED"
WORKING: Final = "TASK_STATE_WORKING"
COMPLETED: Final = "TASK_STATE_COMPLETED"
FAILED: Final = "TASK_STATE_FAILED"
CANCELED: Final = "TASK_STATE_CANCELED"
REJECTED: Final = "TASK_STATE_REJECTED"
INPUT_REQUIRED: Final = "TASK_STATE_INPUT_REQUIRED"
AUTH_REQUIRED: Final = "TASK_STATE_AUTH_REQUIRED"
UNSPECIFIED: Final = "TASK_STATE_UNSPECIFIED"

TERMINAL: Final = frozenset({COMPLETED, FAILED, CANCELED, REJECTED})

_PLAIN: Final[dict[TurnState, str]] = {
    "queued": SUBMITTED,
    "running": WORKING,
    "done": COMPLETED,
    "failed": FAILED,
    "unknown": FAILED,
}
CANCELLED: Final = "cancelled"  # the code of a turn that somebody has ended
REFUSED: Final = "rejected"  # and of one that its agent does not take on
_FAILURES: Final = {CANCELLED: CANCELED, REFUSED: REJECTED}


def state_of(state: TurnState, code: str | None, asked: Sequence[Interrupt] = ()) -> str:
    """The state of a task, of its turn, and of what that waits for."""
    if state == "waiting":
        return waiting_state(asked)
    if state == "failed" and code in _FAILURES:
        return _FAILURES[code]
    return _PLAIN[state]


def waiting_state(asked: Sequence[Interrupt]) -> str:
    """The state of a task that waits: for a sign-in alone, or for whatever else."""
    return (
        AUTH_REQUIRED if asked and all(one.kind == "sign_in" for one in asked) else INPUT_REQUIRED
    )


def end_state(end: End) -> str:
    """The state of a task that ends so."""
    match end:
        case Done():
            return COMPLETED
        case Waiting():
            return waiting_state(end.interrupts)
    return _FAILURES.get(end.code, FAILED)


class StateFilter(Struct, frozen=True, kw_only=True):
    """Which turns have a state."""

    states: tuple[TurnState, ...]
    codes: tuple[str, ...] | None = None  # that they failed with
    other_codes: tuple[str, ...] = ()  # that they did not fail with


# Those that wait for a sign-in are listed with those that wait for anything.
WANTED: Final[dict[str, StateFilter]] = {
    SUBMITTED: StateFilter(states=("queued",)),
    WORKING: StateFilter(states=("running",)),
    COMPLETED: StateFilter(states=("done",)),
    FAILED: StateFilter(states=("failed", "unknown"), other_codes=(CANCELLED, REFUSED)),
    CANCELED: StateFilter(states=("failed",), codes=(CANCELLED,)),
    REJECTED: StateFilter(states=("failed",), codes=(REFUSED,)),
    INPUT_REQUIRED: StateFilter(states=("waiting",)),
    AUTH_REQUIRED: StateFilter(states=("waiting",)),
}
