"""A turn: one logical call, however often it is sent.

Law 1. The key names who pays, who calls, whom, and where in which run; the request's digest is
       compared and is not part of it (but see `core.call.turn_key` for the one exception).
Law 2. States change along `TRANSITIONS` and in no other way.
Law 3. What a repeat gets is decided by `on_repeat` alone.
"""

from typing import Final, Literal

from msgspec import Struct

from carnet.core.people.identity import Account

IN_PROCESS: Final = "agent:"  # how the name of an actor in process begins

TurnState = Literal["queued", "running", "waiting", "done", "failed", "unknown"]

TRANSITIONS: dict[TurnState, frozenset[TurnState]] = {
    "queued": frozenset({"running", "failed"}),
    # A task waits again; a worker that is gone gives way to another one.
    "running": frozenset({"done", "failed", "waiting", "unknown", "queued", "running"}),
    "waiting": frozenset({"running", "queued", "failed"}),  # answered, or not in time
    "failed": frozenset({"running", "queued"}),
    "unknown": frozenset({"running", "queued"}),
    "done": frozenset(),
}

BEGINNINGS: frozenset[TurnState] = frozenset({"running", "queued"})

Repeat = Literal["replay", "attach", "run_again", "mismatch"]


def may_become(state: TurnState, after: TurnState) -> bool:
    """Whether a turn may change from one state to the other."""
    return after in TRANSITIONS[state]


def on_repeat(
    state: TurnState, *, same_digest: bool, retryable: bool, worker_alive: bool
) -> Repeat:
    """What the same turn gets when it is sent again."""
    if not same_digest:
        return "mismatch"
    if state == "queued":
        return "attach"  # it waits for whoever will run it
    if state == "running":
        return "attach" if worker_alive else "run_again"
    if state == "unknown" or (state == "failed" and retryable):
        return "run_again"
    return "replay"  # done, failed for good, waiting (the same interrupt again)


class Turn(Struct, frozen=True, kw_only=True):
    """The record of a turn, as the store keeps it. With the events it is the whole answer."""

    n: int
    key: bytes = b""  # of `core.call.turn_key`: whose turn it is
    agent: str
    run: str
    turn: str
    parent_turn: str | None = None
    speaker: str | None = None
    depth: int = 0
    state: TurnState = "running"
    attempt: int = 1
    fence: int = 1
    actor: str = ""
    payer: Account
    created: int  # microseconds since the epoch
    ended: int | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: int | None = None  # micro-units, frozen at finish
    run_cost: int | None = None
    code: str | None = None  # of a failed turn
    worker: str | None = None
    last_depth: int | None = None  # the bound that held; None: no stamp had set one
    bound_by: str | None = None  # the stamp that set it
    dialect: str | None = None  # it was asked in
    correlation: str | None = None  # the caller's own name for the request
    context: str | None = None  # what its caller said of itself: `core.people.context`
    waits_until: int | None = None  # of one that waits for an answer
    facts: str | None = None  # of a failure: the words of whoever was called, for the operator
    disputed: int | None = None  # what the callee says above what it may charge: nobody owes it
