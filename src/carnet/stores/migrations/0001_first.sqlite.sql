-- The first layout. A statement ends with a semicolon at the end of a line and an empty line.
-- Times are microseconds since the epoch, amounts are micro-units of the ledger's currency.

-- A run as ONE payer sees it. The id is chosen by callers, so it is not ours to trust: another
-- payer that uses the same id has a row, a count and a cost of its own (A41, A42).
CREATE TABLE run (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    issuer TEXT NOT NULL,
    account TEXT NOT NULL,
    calls INTEGER NOT NULL,
    cost INTEGER NOT NULL DEFAULT 0,
    started INTEGER NOT NULL,
    UNIQUE (id, issuer, account)
) STRICT;

-- The payer of a turn is that of its run. `key` holds the run already; beside the run's number it
-- keeps the index growing at its end, where a random key alone would touch a page a call.
CREATE TABLE turn (
    n INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES run (n),
    key BLOB NOT NULL,
    digest BLOB NOT NULL,
    state TEXT NOT NULL,
    worker TEXT,
    fence INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    turn TEXT NOT NULL,
    parent TEXT,
    speaker TEXT,
    depth INTEGER NOT NULL,
    agent TEXT NOT NULL,
    actor TEXT NOT NULL,
    created INTEGER NOT NULL,
    ended INTEGER,
    tokens_in INTEGER,
    tokens_out INTEGER,
    cost INTEGER,
    run_cost INTEGER,
    reserve INTEGER NOT NULL,
    purse TEXT NOT NULL,
    code TEXT,
    retryable INTEGER NOT NULL DEFAULT 0,
    UNIQUE (run, key)
) STRICT;

CREATE INDEX turn_running ON turn (n) WHERE state = 'running';

CREATE TABLE journal (
    n INTEGER PRIMARY KEY,
    turn INTEGER NOT NULL REFERENCES turn (n),
    kind TEXT NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    data BLOB NOT NULL,
    crc INTEGER NOT NULL
) STRICT;

CREATE INDEX journal_turn ON journal (turn);

-- Written once and never again; it names runs and turns by their text, which outlives their rows.
CREATE TABLE ledger (
    n INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    run TEXT NOT NULL,
    turn TEXT NOT NULL,
    issuer TEXT NOT NULL,
    account TEXT NOT NULL,
    credit TEXT NOT NULL,
    amount INTEGER NOT NULL
) STRICT;

CREATE TRIGGER ledger_unchanged BEFORE UPDATE ON ledger BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only');
END;

CREATE TRIGGER ledger_kept BEFORE DELETE ON ledger BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only');
END;

CREATE TABLE purse (
    name TEXT PRIMARY KEY,
    spent INTEGER NOT NULL,
    reserved INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE rate (
    bucket TEXT PRIMARY KEY,
    tat INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE worker (
    id TEXT PRIMARY KEY,
    started INTEGER NOT NULL,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE token (
    n INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    hash BLOB NOT NULL UNIQUE,
    key_id TEXT NOT NULL,
    prefix TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created INTEGER NOT NULL,
    peer TEXT,
    forwardable INTEGER NOT NULL,
    may_forward INTEGER NOT NULL,
    rate_calls INTEGER,
    rate_seconds INTEGER NOT NULL,
    spending_limit INTEGER,
    expires INTEGER,
    revoked INTEGER,
    last_used INTEGER
) STRICT;

CREATE UNIQUE INDEX token_live ON token (name) WHERE revoked IS NULL;

CREATE TABLE peer (
    domain TEXT PRIMARY KEY,
    url TEXT NOT NULL,
    may_forward INTEGER NOT NULL,
    sealed BLOB,
    key_id TEXT NOT NULL,
    dialect TEXT NOT NULL,
    credit INTEGER NOT NULL,
    most_cost INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
