-- Sessions as they are used: the table of 0006, which nothing has filled, made anew. Each stands for
-- a token. One that was not `begun` is a link: its hash is that of a code, until somebody shows it.
DROP TABLE session;

CREATE TABLE session (
    n INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    key_id TEXT NOT NULL,
    person INTEGER NOT NULL,
    token INTEGER NOT NULL,
    created INTEGER NOT NULL,
    begun INTEGER,
    used INTEGER,
    until INTEGER NOT NULL,
    last INTEGER NOT NULL,
    device TEXT NOT NULL,
    ended INTEGER
) STRICT;

CREATE INDEX session_person ON session (person) WHERE ended IS NULL;

CREATE INDEX session_token ON session (token) WHERE ended IS NULL;
