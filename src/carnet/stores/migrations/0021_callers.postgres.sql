-- The hosts that call, as they are used: the table of 0006, which nothing has filled, made anew. A key is
-- kept by its hash; the one before the last rotation holds until `former_until`.
DROP TABLE caller;

CREATE TABLE caller (
    url TEXT COLLATE "C" PRIMARY KEY,
    hash BYTEA,
    key_id TEXT,
    former BYTEA,
    former_until BIGINT,
    certificate TEXT,
    metadata TEXT NOT NULL,
    rate_calls BIGINT,
    rate_seconds BIGINT NOT NULL,
    added BIGINT NOT NULL,
    ended BIGINT
);

-- Whom a token stands for and which program holds it, by which many are ended at once; the most that may
-- be used with it, as lists of permissions; and the first depth at which its chains are refused.
ALTER TABLE token ADD COLUMN agent TEXT;

ALTER TABLE token ADD COLUMN client TEXT;

ALTER TABLE token ADD COLUMN workspace TEXT;

ALTER TABLE token ADD COLUMN allowed TEXT;

ALTER TABLE token ADD COLUMN denied TEXT;

ALTER TABLE token ADD COLUMN chain_depth BIGINT;

CREATE TRIGGER caller_changed AFTER INSERT OR DELETE OR TRUNCATE OR UPDATE
    ON caller FOR EACH STATEMENT EXECUTE FUNCTION count_change();
