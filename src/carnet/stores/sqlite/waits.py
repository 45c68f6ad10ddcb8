"""What a claim on SQLite reads and writes of turns that wait: to be run, or for an answer.

Few claims have any of it; those that do come here from `claims`, in the same transaction.
"""

from collections.abc import Sequence
from typing import Final

from carnet.ports.calls.turns import TurnClaim
from carnet.stores.turn.answers import MOST_COUNTED, pending, queues
from carnet.stores.turn.claim_rules import ClaimRules
from carnet.stores.turn.interrupts import RESOLVE
from carnet.stores.turn.row import RESUME, SqlConnection, has_waited, place

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
_SET_RANK: Final = "UPDATE turn SET rank = ? WHERE n = ?"
# A task that is sent again keeps its id; what it was is replaced.
_PUT_TASK: Final = (
    "INSERT INTO task (turn, id, sender, skill) VALUES (?, ?, ?, ?) ON CONFLICT (turn) DO UPDATE"
    " SET sender = excluded.sender, skill = excluded.skill, progress = NULL, note = NULL,"
    " cancelled = NULL, lost = 0, ended = NULL"
)
_DRIVE_TASK: Final = (
    "INSERT INTO task (turn, id, sender, skill) VALUES (?, ?, ?, ?) ON CONFLICT (turn) DO UPDATE"
    " SET lost = 0, ended = NULL"
)
_FORGET_CALLBACKS: Final = "DELETE FROM callback WHERE turn = ?"
_PUT_CALLBACK: Final = (
    "INSERT INTO callback (turn, place, url, dialect, created) VALUES (?, 0, ?, ?, ?)"
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
        many(_PUT_TASK, rules.waiting.tasks)
        many(KEEP_CALL, rules.waiting.calls)
        many(_FORGET_CALLBACKS, [row[:1] for row in rules.waiting.tasks])
        many(_PUT_CALLBACK, rules.waiting.callbacks)
    many(_SET_RANK, rules.waiting.ranks)
