-- The hosts that call, as they are used: the table of 0006, which nothing has filled, made anew. A key is
-- kept by its hash; the one before the last rotation holds until `former_until`.
DROP TABLE caller;

CREATE TABLE caller (
    url TEXT PRIMARY KEY,
    hash BLOB,
    key_id TEXT,
    former BLOB,
    former_until INTEGER,
    certificate TEXT,
    metadata TEXT NOT NULL,
    rate_calls INTEGER,
    rate_seconds INTEGER NOT NULL,
    added INTEGER NOT NULL,
    ended INTEGER
) STRICT, WITHOUT ROWID;

-- Whom a token stands for and which program holds it, by which many are ended at once; the most that may
-- be used with it, as lists of permissions; and the first depth at which its chains are refused.
ALTER TABLE token ADD COLUMN agent TEXT;

ALTER TABLE token ADD COLUMN client TEXT;

ALTER TABLE token ADD COLUMN workspace TEXT;

ALTER TABLE token ADD COLUMN allowed TEXT;

ALTER TABLE token ADD COLUMN denied TEXT;

ALTER TABLE token ADD COLUMN chain_depth INTEGER;
