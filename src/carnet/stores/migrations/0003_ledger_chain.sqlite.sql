-- The chain of the ledger: each posting carries a hash over the one before it in its lane and over
-- all of itself. A lane is one writer process. Postings from before the chain have none of these.
ALTER TABLE ledger ADD COLUMN lane TEXT;

ALTER TABLE ledger ADD COLUMN seq INTEGER;

ALTER TABLE ledger ADD COLUMN hash BLOB;

-- Where each lane ends: written with its postings, in the same transaction.
CREATE TABLE lane (
    id TEXT PRIMARY KEY,
    postings INTEGER NOT NULL,
    head BLOB NOT NULL,
    seal BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- Each minute the ends of all lanes that grew, in one row that is chained to the row before it.
-- `lanes` is JSON: [[lane, postings, head in hexadecimal], ...].
CREATE TABLE checkpoint (
    n INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    lanes TEXT NOT NULL,
    seal BLOB NOT NULL
) STRICT;

-- How far each lane stands in checkpoints, so that the next one need not read them.
CREATE TABLE sealed (
    lane TEXT PRIMARY KEY,
    postings INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER checkpoint_unchanged BEFORE UPDATE ON checkpoint BEGIN
    SELECT RAISE(ABORT, 'checkpoints are append-only');
END;

CREATE TRIGGER checkpoint_kept BEFORE DELETE ON checkpoint BEGIN
    SELECT RAISE(ABORT, 'checkpoints are append-only');
END;
