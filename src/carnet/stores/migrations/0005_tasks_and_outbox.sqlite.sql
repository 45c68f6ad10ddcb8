-- A task is a turn that waits (`queued`, of no worker), and what is needed to run it later: `sealed`
-- under the seal of the secrets file `key_id`, and removed when it ends. Its `id` is what a sender
-- polls with. `cancelled` is when somebody asked for its end. `progress` is in thousandths.
-- `lost` is how often whoever ran it was gone before its end.
CREATE TABLE task (
    turn INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    sender TEXT NOT NULL,
    skill TEXT,
    callback TEXT,
    sealed BLOB,
    key_id TEXT NOT NULL,
    progress INTEGER,
    note TEXT,
    cancelled INTEGER,
    lost INTEGER NOT NULL DEFAULT 0,
    ended INTEGER
) STRICT;

CREATE INDEX turn_queued ON turn (agent, n) WHERE state = 'queued';

CREATE INDEX task_cancelled ON task (turn) WHERE cancelled IS NOT NULL AND ended IS NULL;

CREATE INDEX task_ended ON task (ended) WHERE ended IS NOT NULL;

-- What an agent did already, by the place of the step in its turn.
CREATE TABLE step (
    turn INTEGER NOT NULL,
    place INTEGER NOT NULL,
    name TEXT NOT NULL,
    data BLOB NOT NULL,
    crc INTEGER NOT NULL,
    PRIMARY KEY (turn, place)
) STRICT;

-- Letters to others. While one is being sent its `due` is the end of the lease, `leased_until`:
-- who sends it may die. `fence` grows with every lease and every outcome. `replayed` is when it was
-- let begin again: its age is counted from then on.
CREATE TABLE outbox (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    receiver TEXT NOT NULL,
    url TEXT NOT NULL,
    body BLOB NOT NULL,
    task TEXT,
    secret_of TEXT NOT NULL,
    learned INTEGER NOT NULL,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    due INTEGER NOT NULL,
    leased_until INTEGER,
    fence INTEGER NOT NULL,
    created INTEGER NOT NULL,
    replayed INTEGER,
    ended INTEGER,
    status INTEGER,
    reason TEXT
) STRICT;

CREATE INDEX outbox_pending ON outbox (receiver, due, n) WHERE state = 'pending';

CREATE INDEX outbox_leased ON outbox (receiver, leased_until) WHERE leased_until IS NOT NULL;

CREATE INDEX outbox_dead ON outbox (n) WHERE state = 'dead';

CREATE INDEX outbox_ended ON outbox (ended) WHERE ended IS NOT NULL;

-- Who failed lately: how often in a row, and until when nothing is sent there.
CREATE TABLE receiver (
    name TEXT PRIMARY KEY,
    paused_until INTEGER NOT NULL,
    failures INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Addresses that said that they will never take letters again.
CREATE TABLE gone (
    url TEXT PRIMARY KEY,
    at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
