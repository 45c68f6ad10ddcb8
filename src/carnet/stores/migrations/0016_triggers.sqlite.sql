-- Schedules and hooks as they are used: the tables of 0006, which nothing has filled, made anew. A
-- name is its owner's: two people may choose the same. Each runs with the token that made it.
DROP TABLE firing;

DROP TABLE schedule;

DROP TABLE hook_seen;

DROP TABLE hook;

CREATE TABLE schedule (
    n INTEGER PRIMARY KEY,
    person INTEGER NOT NULL,
    name TEXT NOT NULL,
    token INTEGER NOT NULL,
    agent TEXT NOT NULL,
    content TEXT NOT NULL,
    cron TEXT NOT NULL,
    zone TEXT NOT NULL,
    missed TEXT NOT NULL,
    next INTEGER,
    created INTEGER NOT NULL,
    paused INTEGER,
    UNIQUE (person, name)
) STRICT;

CREATE INDEX schedule_next ON schedule (next) WHERE paused IS NULL;

-- The secrets are sealed; the former one is good until `previous_until`.
CREATE TABLE hook (
    n INTEGER PRIMARY KEY,
    person INTEGER NOT NULL,
    name TEXT NOT NULL,
    token INTEGER NOT NULL,
    agent TEXT NOT NULL,
    scheme TEXT NOT NULL,
    sealed BLOB NOT NULL,
    previous_sealed BLOB,
    previous_until INTEGER,
    key_id TEXT NOT NULL,
    template TEXT NOT NULL,
    created INTEGER NOT NULL,
    paused INTEGER,
    UNIQUE (person, name)
) STRICT;

-- Events that a hook has taken. Of two that come at once one is `claim`ed.
CREATE TABLE hook_seen (
    hook INTEGER NOT NULL,
    event TEXT NOT NULL,
    expires INTEGER NOT NULL,
    claim TEXT NOT NULL,
    PRIMARY KEY (hook, event)
) STRICT, WITHOUT ROWID;

CREATE INDEX hook_seen_expires ON hook_seen (expires);

-- What is to be begun, and what was: of the schedule or the hook whose number `source` is. `state` is
-- due, fired or failed; what it says is kept until then. Who holds it does so until `held`.
CREATE TABLE firing (
    n INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    source INTEGER NOT NULL,
    name TEXT NOT NULL,
    person INTEGER NOT NULL,
    token INTEGER NOT NULL,
    agent TEXT NOT NULL,
    content TEXT NOT NULL,
    tick INTEGER NOT NULL,
    state TEXT NOT NULL,
    due INTEGER NOT NULL,
    worker TEXT,
    held INTEGER NOT NULL DEFAULT 0,
    fence INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,
    conversation TEXT,
    code TEXT,
    ended INTEGER
) STRICT;

CREATE INDEX firing_due ON firing (due) WHERE state = 'due';

CREATE INDEX firing_person ON firing (person) WHERE state = 'due';

CREATE INDEX firing_source ON firing (person, kind, name, n);

CREATE INDEX firing_ended ON firing (ended) WHERE ended IS NOT NULL;
