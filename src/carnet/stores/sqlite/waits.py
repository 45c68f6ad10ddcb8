"""What a claim on SQLite reads and writes of turns that wait: to be run, or for an answer.

Few claims have any of it; those that do come here from `claims`, in the same transaction.
"""

from collections.abc import Sequence
from typing import Final

from carnet.ports.calls.turns import TurnClaim
from carnet.stores.database import marks
from carnet.stores.turn.answers import MOST_COUNTED, pending, queues
from carnet.stores.turn.claim_rules import ClaimRules
from carnet.stores.turn.finish_rules import FinishRules
from carnet.stores.turn.interrupts import (
    EXPIRE,
    REFUND,
    REFUNDS,
    REOPEN,
    RESOLVE,
    UNDISCARD,
    WAIT_ON,
    refunded,
)
from carnet.stores.turn.interrupts import INSERT as INSERT_INTERRUPT
from carnet.stores.turn.row import RESUME, SqlConnection, has_waited, place
from carnet.stores.turn.sealed_calls import CALLBACK, TASK

KEEP_CALL: Final = (
    "INSERT INTO kept_call (turn, sealed, key_id) VALUES (?, ?, ?) ON CONFLICT (turn) DO UPDATE"
    " SET sealed = excluded.sealed, key_id = excluded.key_id"
)
PENDING: Final = pending("{}", "interrupt i WHERE i.turn = ?")
QUEUED: Final = (
    "SELECT COUNT(*) FROM (SELECT 1 FROM turn"
    " WHERE state = 'queued' AND agent = ? AND purse = ? LIMIT ?)"
)
_HOLD_MORE: Final = "UPDATE turn SET holds = ? WHERE n = ? AND state || '' = 'waiting'"
_TOUCH_TASK: Final = "UPDATE task SET updated = ? WHERE turn = ?"
_SET_RANK: Final = "UPDATE turn SET rank = ? WHERE n = ?"
# A task that is sent or run again keeps its id, and who is told; what it was is replaced.
_INSERT_TASK: Final = (
    f"INSERT INTO task ({', '.join(TASK)}) VALUES ({marks(len(TASK))})"  # noqa: S608  our own words
    " ON CONFLICT (turn) DO UPDATE SET updated = excluded.updated, lost = 0, ended = NULL"
)
PUT_TASK: Final = (
    f"{_INSERT_TASK}, sender = excluded.sender, skill = excluded.skill, progress = NULL,"
    " note = NULL, cancelled = NULL"
)
_DRIVE_TASK: Final = _INSERT_TASK
_FORGET_CALLBACKS: Final = "DELETE FROM callback WHERE turn = ?"
_PUT_CALLBACK: Final = (
    f"INSERT INTO callback (place, {', '.join(CALLBACK)}) VALUES (0, {marks(len(CALLBACK))})"  # noqa: S608
    " ON CONFLICT (turn, place) DO NOTHING"
)

_N: Final = place("n")


def read(connection: SqlConnection, rules: ClaimRules, claims: Sequence[TurnClaim]) -> None:
    """What turns wait for that are known, or have waited for; and behind whom they will wait."""
    for claim in claims:
        row = rules.known.get(claim.key)
        if row is not None and (claim.resolution is not None or has_waited(row)):
            rules.pending += connection.execute(PENDING, (row[_N],)).fetchall()
    for queue in queues(claims, rules.known):
        counted = connection.execute(QUEUED, (*queue, MOST_COUNTED)).fetchone()
        rules.queued[queue] = counted[0]


def write(connection: SqlConnection, rules: ClaimRules) -> None:
    """Write the answers, and the turns that are to run later."""
    many = connection.executemany
    if rules.resolved:
        many(RESOLVE, rules.resolved)
        many(RESUME, rules.resumed)
        many(_HOLD_MORE, rules.holding)
        many(_DRIVE_TASK, rules.driven)
    if rules.waiting.tasks:
        many(PUT_TASK, rules.waiting.tasks)
        many(KEEP_CALL, rules.waiting.calls)
        many(_FORGET_CALLBACKS, [row[:1] for row in rules.waiting.tasks])
    many(_SET_RANK, rules.waiting.ranks)


def put_callbacks(connection: SqlConnection, rules: ClaimRules) -> None:
    """Write where the end of a task is told; one that runs again tells it where it would have."""
    connection.executemany(_PUT_CALLBACK, rules.waiting.callbacks)


def end(connection: SqlConnection, rules: FinishRules) -> None:
    """Write what turns leave behind that wait for an answer, or have waited."""
    write = connection.executemany
    if rules.refunds:  # before what is asked again is a new question
        found = [connection.execute(REFUNDS, (*row, row[1])) for row in rules.refunds]
        write(REFUND, refunded(row for rows in found for row in rows.fetchall()))
    if rules.calls or rules.closed:
        write(_TOUCH_TASK, rules.touched)
        write(KEEP_CALL, rules.calls)
        write(INSERT_INTERRUPT, rules.interrupts)
        write(EXPIRE, [(turn,) for turn in rules.closed])
    if rules.reopened:
        write(REOPEN, rules.reopened)
        write(WAIT_ON, [(state_hash, turn) for turn, state_hash in rules.reopened])
        write(UNDISCARD, [row[:1] for row in rules.reopened])
