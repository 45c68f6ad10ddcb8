"""The statements of a hot batch on PostgreSQL. Many rows come as one array for each column.

They are planned once, perhaps while the tables are empty, and must be as good when they are full. A
table is joined by `= ANY (ARRAY[key])`: that can be answered by looking a key up and in no other
way, while of `= key` the planner may believe that reading the whole index once is cheaper.
"""
# ruff: noqa: S608  the texts are put together from our own words; every value is an argument

from collections.abc import Sequence
from typing import Final

from carnet.stores.turn import answers, interrupts, outbound_calls
from carnet.stores.turn.callbacks import CALLBACK_COLUMNS
from carnet.stores.turn.moves import becomes, may_become, moves
from carnet.stores.turn.row import (
    AGAIN,
    BEGUN,
    BYTES,
    ENDED,
    INT,
    RESUMED,
    TEXT,
    TURN_COLUMNS,
    Column,
    Type,
    names,
)

# By the clock of the database: those of the gateways may differ from one another.
NOW: Final = "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint"

# A run is inserted or, if it exists, locked: one pass in the order of the keys. The update changes
# nothing, but unlike DO NOTHING it locks the row and gives it back as it is now. Below the runs
# come numbers for as many new turns as there may be, and whether the worker's own lease holds.
LOCK_RUNS: Final = f"""
WITH locked AS (
    INSERT INTO run (id, issuer, account, calls, started)
    SELECT w.id, w.issuer, w.account, 0, w.started
    FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[])
        AS w (id, issuer, account, started)
    ON CONFLICT (id, issuer, account) DO UPDATE SET calls = run.calls
    RETURNING n, id, issuer, account, calls, cost, xmax = 0 AS is_new
)
SELECT n, id, issuer, account, calls, cost, is_new FROM locked
UNION ALL
SELECT nextval('turn_n_seq'), NULL, NULL, NULL, 0, 0, FALSE FROM generate_series(1, $5::bigint)
UNION ALL
SELECT NULL, NULL, NULL, NULL, 0, 0,
    EXISTS (SELECT 1 FROM worker l WHERE l.id = $6::text AND l.until > {NOW})
"""

# A nonce that is used for the first time, or whose last use has expired, comes back with its
# number. One that another process has just used is waited for.
USE_NONCES: Final = """
INSERT INTO nonce (sender, nonce, expires)
SELECT w.sender, w.nonce, w.expires
FROM unnest($1::text[], $2::text[], $3::bigint[]) AS w (sender, nonce, expires)
ON CONFLICT (sender, nonce) DO UPDATE
    SET n = nextval('nonce_n_seq'), expires = excluded.expires WHERE nonce.expires <= $4::bigint
RETURNING n, sender, nonce
"""

# What calls below a turn must have: its own depth and one, and the depth of its siblings.
DEPTHS: Final = """
SELECT DISTINCT w.run, w.turn, t.depth + (t.turn = w.turn)::int
FROM unnest($1::bigint[], $2::text[]) AS w (run, turn)
JOIN turn t ON t.run = ANY (ARRAY[w.run]) AND (t.turn = w.turn OR t.parent = w.turn)
"""

KNOWN_TURNS: Final = f"""
SELECT {TURN_COLUMNS}, COALESCE(l.until > {NOW}, FALSE)
FROM unnest($1::bigint[], $2::bytea[]) AS w (run, key)
JOIN turn t ON t.run = ANY (ARRAY[w.run]) AND t.key = w.key
JOIN run r ON r.n = ANY (ARRAY[t.run]) LEFT JOIN worker l ON l.id = ANY (ARRAY[t.worker])
"""

# Below the turns come numbers for as many postings as there may be; they have no quota. The state
# is compared so that no index of it is used: that one names everything that runs.
HELD_TURNS: Final = """
SELECT t.n, t.fence, t.reserve, t.purse, t.run, t.state, t.holds, t.cost, t.budget
FROM unnest($1::bigint[]) AS w (n) JOIN turn t ON t.n = ANY (ARRAY[w.n])
WHERE t.state || '' IN ('running', 'waiting')
UNION ALL
SELECT nextval('ledger_n_seq'), 0, 0, NULL, 0, '', NULL, 0, NULL FROM generate_series(1, $2::bigint)
"""

CALLBACKS: Final = f"""
SELECT {CALLBACK_COLUMNS} FROM unnest($1::bigint[]) AS w (n)
JOIN callback b ON b.turn = ANY (ARRAY[w.n])
"""

LOCK_RATES: Final = """
INSERT INTO rate (bucket, tat) SELECT w.bucket, 0 FROM unnest($1::text[]) AS w (bucket)
ON CONFLICT (bucket) DO UPDATE SET tat = rate.tat RETURNING bucket, tat, xmax = 0
"""

LOCK_QUOTAS: Final = """
INSERT INTO purse (name, spent, reserved) SELECT w.name, 0, 0 FROM unnest($1::text[]) AS w (name)
ON CONFLICT (name) DO UPDATE SET spent = purse.spent
RETURNING name, spent + reserved, unpaid, xmax = 0
"""

READ_QUOTAS: Final = """
SELECT p.name, p.spent + p.reserved, p.unpaid FROM unnest($1::text[]) AS w (name)
JOIN purse p ON p.name = ANY (ARRAY[w.name])
"""

# Of turns that seem to have lost their worker: those that wait for another one.
LOST_TASKS: Final = """
SELECT w.n FROM unnest($1::bigint[]) AS w (n)
WHERE (SELECT k.turn FROM task k WHERE k.turn = ANY (ARRAY[w.n])) IS NOT NULL
    AND (SELECT c.turn FROM kept_call c WHERE c.turn = ANY (ARRAY[w.n])) IS NOT NULL
"""


class _Arrays:
    """Numbers the arguments of one statement: each column of its rows is an array."""

    def __init__(self) -> None:
        self._count = 0

    def rows(self, columns: Sequence[Column]) -> str:
        """Rows `w` of these columns."""
        first = self._count + 1
        self._count += len(columns)
        given = (f"${n}::{column.type.lower()}[]" for n, column in enumerate(columns, first))
        return f"unnest({', '.join(given)}) AS w ({names(columns)})"


def _columns(**types: str) -> tuple[Column, ...]:
    """Columns of a table, by their types, in the order in which its rows are given."""
    kinds: dict[str, Type] = {"int": INT, "text": TEXT, "bytes": BYTES}
    return tuple(Column(name, kinds[kind]) for name, kind in types.items())


_N: Final = Column("n", INT)
RUN: Final = _columns(n="int", calls="int", cost="int")
JOURNAL: Final = _columns(turn="int", kind="text", first="int", last="int", data="bytes", crc="int")
LEDGER: Final = _columns(
    n="int",
    at="int",
    run="text",
    turn="text",
    issuer="text",
    account="text",
    credit="text",
    amount="int",
    lane="text",
    seq="int",
    hash="bytes",
    run_n="int",
)
SHARD: Final = _columns(id="text", postings="int", head="bytes", seal="bytes")
_BYTES: Final = ("state_hash", "state_sealed")
_INTS: Final = (
    *("turn", "place", "amount", "retry_after", "created", "expires"),
    *("fence", "ordinal", "depth", "cost", "peer_status"),
)


def _named(columns: Sequence[str]) -> tuple[Column, ...]:
    kinds = dict.fromkeys(columns, TEXT) | dict.fromkeys(_INTS, INT) | dict.fromkeys(_BYTES, BYTES)
    return tuple(Column(name, kinds[name]) for name in columns)


INTERRUPT: Final = _named(interrupts.COLUMNS)
OUTBOUND: Final = _named(outbound_calls.COLUMNS)
RESOLVED: Final = _columns(
    resolved="int", resolver="text", outcome="text", value_sealed="bytes", turn="int", id="text"
)
RATE: Final = _columns(bucket="text", tat="int")
CALLBACK: Final = _columns(
    turn="int",
    url="text",
    dialect="text",
    created="int",
    name="text",
    token="text",  # noqa: S106  a column
    auth_sealed="bytes",
    key_id="text",
)
TASK: Final = _columns(
    turn="int", id="text", sender="text", skill="text", context="text", updated="int"
)
QUOTA: Final = _columns(name="text", spent="int", reserved="int")

# No row comes twice: a turn that is claimed again was not running, and one that ends was.
_write = _Arrays()
WRITE: Final = f"""
WITH begun AS (
    INSERT INTO turn ({names(BEGUN)}) SELECT {names(BEGUN, "w.{}")}
    FROM {_write.rows(BEGUN)}
), again AS (
    UPDATE turn SET {names(AGAIN, "{0} = w.{0}")} FROM {_write.rows([*AGAIN, _N])}
    WHERE turn.n = ANY (ARRAY[w.n]) AND {may_become("running")}
), ended AS (
    UPDATE turn SET {names(ENDED, "{0} = w.{0}")} FROM {_write.rows([*ENDED, _N])}
    WHERE turn.n = ANY (ARRAY[w.n]) AND {may_become("failed")}
), runs AS (
    UPDATE run SET calls = w.calls, cost = w.cost FROM {_write.rows(RUN)}
    WHERE run.n = ANY (ARRAY[w.n])
), entries AS (
    INSERT INTO journal ({names(JOURNAL)}) SELECT {names(JOURNAL, "w.{}")}
    FROM {_write.rows(JOURNAL)}
), postings AS (
    INSERT INTO ledger ({names(LEDGER)}) SELECT {names(LEDGER, "w.{}")}
    FROM {_write.rows(LEDGER)}
), shards AS (
    INSERT INTO lane ({names(SHARD)}) SELECT {names(SHARD, "w.{}")} FROM {_write.rows(SHARD)}
    ON CONFLICT (id) DO UPDATE
        SET postings = excluded.postings, head = excluded.head, seal = excluded.seal
), rates AS (
    UPDATE rate SET tat = w.tat FROM {_write.rows(RATE)} WHERE rate.bucket = ANY (ARRAY[w.bucket])
)
INSERT INTO purse ({names(QUOTA)}) SELECT {names(QUOTA, "w.{}")} FROM {_write.rows(QUOTA)}
ON CONFLICT (name) DO UPDATE
    SET spent = purse.spent + excluded.spent, reserved = purse.reserved + excluded.reserved
"""

# After WRITE, which has locked them, for what is owed above the limit of a quota.
ADD_UNPAID: Final = """
INSERT INTO purse (name, spent, reserved, unpaid)
SELECT w.name, 0, 0, w.unpaid FROM unnest($1::text[], $2::bigint[]) AS w (name, unpaid)
ON CONFLICT (name) DO UPDATE SET unpaid = purse.unpaid + excluded.unpaid
"""

_INSERT_TASKS: Final = f"""
INSERT INTO task ({names(TASK)}) SELECT {names(TASK, "w.{}")} FROM {_Arrays().rows(TASK)}
ON CONFLICT (turn) DO UPDATE SET updated = excluded.updated, lost = 0, ended = NULL"""

# After WRITE, for tasks that run at once. One that is sent again keeps its id, and who is told.
LIST_TASKS: Final = f"""{_INSERT_TASKS}, sender = excluded.sender,
    skill = excluded.skill, progress = NULL, note = NULL, cancelled = NULL
"""

# After WRITE, for the turns of tasks. One that is sent again keeps its id; what it was is replaced.
PUT_TASKS: Final = f"""
WITH forgotten AS (DELETE FROM callback WHERE turn = ANY ($1::bigint[]))
{LIST_TASKS}"""

# Turns that have waited for an answer and are run on as tasks; the call of each is kept already.
DRIVE_TASKS: Final = _INSERT_TASKS

# The rank of the first task that waits for each agent, and those of new ones.
FRONTS: Final = """
SELECT w.agent, (SELECT t.rank FROM turn t WHERE t.state = 'queued' AND t.agent = w.agent
    ORDER BY t.rank LIMIT 1) FROM unnest($1::text[]) AS w (agent)
"""
SET_RANKS: Final = """
UPDATE turn SET rank = w.rank FROM unnest($1::bigint[], $2::bigint[]) AS w (rank, n)
WHERE turn.n = ANY (ARRAY[w.n])
"""

# And what is needed to run them, also of a turn that waits for an answer.
KEEP_CALLS: Final = """
INSERT INTO kept_call (turn, sealed, key_id) SELECT w.turn, w.sealed, w.key_id
FROM unnest($1::bigint[], $2::bytea[], $3::text[]) AS w (turn, sealed, key_id)
ON CONFLICT (turn) DO UPDATE SET sealed = excluded.sealed, key_id = excluded.key_id
"""

PUT_CALLBACKS: Final = f"""
INSERT INTO callback (place, {names(CALLBACK)})
SELECT 0, {names(CALLBACK, "w.{}")} FROM {_Arrays().rows(CALLBACK)}
ON CONFLICT (turn, place) DO NOTHING
"""

# After WRITE, for what comes with a call now and then.
PENDING: Final = answers.pending(
    "ANY (ARRAY[{}])",
    "unnest($1::bigint[]) AS w (n) JOIN interrupt i ON i.turn = ANY (ARRAY[w.n])",
)

# How many turns wait to be run at each of these agents, of the payer beside it.
QUEUED: Final = """
SELECT w.agent, w.purse, (SELECT COUNT(*) FROM (SELECT 1 FROM turn t WHERE t.state = 'queued'
    AND t.agent = ANY (ARRAY[w.agent]) AND t.purse = ANY (ARRAY[w.purse]) LIMIT $3::bigint) AS q)
FROM unnest($1::text[], $2::text[]) AS w (agent, purse)
"""

_resolve = _Arrays()
RESOLVE: Final = f"""
WITH answered AS (
    UPDATE interrupt SET status = 'resolved', resolved = w.resolved, resolver = w.resolver,
        outcome = w.outcome, value_sealed = w.value_sealed FROM {_resolve.rows(RESOLVED)}
    WHERE interrupt.turn = ANY (ARRAY[w.turn]) AND interrupt.id || '' = w.id
        AND interrupt.status || '' = 'open'
)
UPDATE turn SET {names(RESUMED, "{0} = w.{0}")} FROM {_resolve.rows([*RESUMED, _N])}
WHERE turn.n = ANY (ARRAY[w.n]) AND {moves("waiting", "running")}
"""

HOLD_MORE: Final = """
UPDATE turn SET holds = w.holds FROM unnest($1::text[], $2::bigint[]) AS w (holds, n)
WHERE turn.n = ANY (ARRAY[w.n]) AND turn.state || '' = 'waiting'
"""

PUT_INTERRUPTS: Final = f"""
INSERT INTO interrupt ({names(INTERRUPT)}) SELECT {names(INTERRUPT, "w.{}")}
FROM {_Arrays().rows(INTERRUPT)} {interrupts.ASK_AGAIN}
"""

REFUNDS: Final = f"""
SELECT i.owner, i.resolver, i.amount FROM unnest($1::bigint[], $2::text[]) AS w (n, name)
JOIN interrupt i ON i.turn = ANY (ARRAY[w.n])
WHERE (w.name = '' OR i.id || '' = w.name) AND {interrupts.BY_RULE}
"""

REFUND: Final = """
UPDATE rule SET used = rule.used - w.amount
FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS w (amount, n, owner)
WHERE rule.n = ANY (ARRAY[w.n]) AND rule.owner || '' = w.owner
"""

EXPIRE: Final = """
UPDATE interrupt SET status = 'expired' FROM unnest($1::bigint[]) AS w (n)
WHERE interrupt.turn = ANY (ARRAY[w.n]) AND interrupt.status || '' = 'open'
"""

REOPEN: Final = f"""
WITH open AS (
    UPDATE interrupt SET status = 'open', {interrupts.UNANSWERED}
    FROM unnest($1::bigint[], $2::bytea[]) AS w (n, state_hash)
    WHERE interrupt.turn = ANY (ARRAY[w.n]) AND interrupt.state_hash = w.state_hash
        AND interrupt.status || '' = 'resolved'
), undiscarded AS (
    DELETE FROM journal USING unnest($1::bigint[]) AS w (n)
    WHERE journal.n = ANY (ARRAY[(
        SELECT MAX(j.n) FROM journal j WHERE j.turn = ANY (ARRAY[w.n]) AND j.kind = 'discard')])
)
UPDATE turn SET {becomes("waiting")}, reserve = 0, waits_until = (
    SELECT MAX(i.expires) FROM interrupt i
    WHERE i.turn = ANY (ARRAY[w.n]) AND i.state_hash = w.state_hash)
FROM unnest($1::bigint[], $2::bytea[]) AS w (n, state_hash)
WHERE turn.n = ANY (ARRAY[w.n]) AND {moves("running", "waiting")}
"""

PUT_OUTBOUND: Final = f"""
INSERT INTO outbound ({names(OUTBOUND)}) SELECT {names(OUTBOUND, "w.{}")}
FROM {_Arrays().rows(OUTBOUND)} ON CONFLICT (turn, fence, ordinal) DO UPDATE
    SET {names(OUTBOUND[3:], "{0} = excluded.{0}")}
"""

# After WRITE, for turns whose attempt is over and that wait for the next one.
WAIT_AGAIN: Final = f"""
WITH waiting AS (
    UPDATE turn SET {becomes("queued")}, worker = NULL, fence = w.fence, attempt = w.attempt
    FROM unnest($1::bigint[], $2::bigint[], $4::bigint[]) AS w (fence, attempt, n)
    WHERE turn.n = ANY (ARRAY[w.n]) AND {may_become("queued")}
)
UPDATE task SET progress = NULL, note = NULL, lost = task.lost + w.lost
FROM unnest($3::bigint[], $4::bigint[]) AS w (lost, n) WHERE task.turn = ANY (ARRAY[w.n])
"""

END_TASKS: Final = """
WITH done AS (DELETE FROM kept_call WHERE turn = ANY ($2::bigint[]))
UPDATE task SET ended = w.ended, updated = w.ended
FROM unnest($1::bigint[], $2::bigint[]) AS w (ended, n) WHERE task.turn = ANY (ARRAY[w.n])
"""

TOUCH_TASKS: Final = """
UPDATE task SET updated = w.updated
FROM unnest($1::bigint[], $2::bigint[]) AS w (updated, n) WHERE task.turn = ANY (ARRAY[w.n])
"""

# A delivery to an address that is gone is dead from the start.
PUT_DELIVERIES: Final = """
INSERT INTO outbox (id, kind, receiver, url, body, task, secret_of, learned, turn, state, attempts,
    due, fence, created, ended, reason)
SELECT w.id, w.kind, w.receiver, w.url, w.body, w.task, w.secret_of, w.learned, w.turn,
    CASE WHEN w.gone IS NULL THEN 'pending' ELSE 'dead' END, 0, w.due, 0, w.created,
    CASE WHEN w.gone IS NULL THEN NULL ELSE w.created END,
    CASE WHEN w.gone IS NULL THEN NULL ELSE $12::text END
FROM (
    SELECT u.*, (SELECT MIN(g.at) FROM gone g
        WHERE g.owner = ANY (ARRAY[u.secret_of, '']) AND g.url = ANY (ARRAY[u.url])) AS gone
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::text[],
        $7::text[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[])
        AS u (id, kind, receiver, url, body, task, secret_of, learned, turn, due, created)
) AS w
ON CONFLICT (id) DO NOTHING
"""

CLEAN: Final = """
WITH runs AS (DELETE FROM run WHERE n = ANY($1::bigint[])),
rates AS (DELETE FROM rate WHERE bucket = ANY($2::text[])),
nonces AS (DELETE FROM nonce WHERE n = ANY($4::bigint[]))
DELETE FROM purse WHERE name = ANY($3::text[])
"""

# Leases that ran out a day ago are forgotten on the way.
RENEW: Final = f"""
WITH forgotten AS (DELETE FROM worker WHERE until < {NOW} - 86400000000 AND id <> $1)
INSERT INTO worker (id, started, until) VALUES ($1, {NOW}, {NOW} + $2::bigint)
ON CONFLICT (id) DO UPDATE SET until = excluded.until,
    fence = worker.fence + (worker.until < {NOW})::int
RETURNING fence
"""

# Of a running turn `t`: its worker is gone.
ABANDONED: Final = f"NOT EXISTS (SELECT 1 FROM worker w WHERE w.id = t.worker AND w.until > {NOW})"
