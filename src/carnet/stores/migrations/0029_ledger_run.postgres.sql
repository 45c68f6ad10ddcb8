-- The postings of a run are found by its number, which grows: an index of ids, which are random where
-- a caller names its messages, wrote a page of its own for each call. Postings from before keep theirs.
ALTER TABLE ledger ADD COLUMN run_n BIGINT;

DROP INDEX ledger_run;

CREATE INDEX ledger_run ON ledger (run_n, n) WHERE run_n IS NOT NULL;

CREATE INDEX ledger_run_former ON ledger (run) WHERE run_n IS NULL;

-- Runs that were pruned: their postings are kept, and found by the id that they had.
CREATE TABLE pruned_run (
    n BIGINT PRIMARY KEY,
    id TEXT NOT NULL
);

CREATE INDEX pruned_run_id ON pruned_run (id);
