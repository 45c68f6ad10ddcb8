-- Runs are listed for a reader, or by a filter, in the order of their numbers: one step in an index
-- after another, and never through the runs of everybody. The indexes stay off `turn`.
CREATE INDEX turn_seen_reader ON turn_seen (actor, run);

DROP INDEX turn_seen_agent;

CREATE INDEX turn_seen_agent ON turn_seen (agent, run);

DROP INDEX turn_seen_code;

CREATE INDEX turn_seen_code ON turn_seen (code, run) WHERE code IS NOT NULL;

DROP INDEX turn_seen_correlation;

CREATE INDEX turn_seen_correlation ON turn_seen (correlation, run) WHERE correlation IS NOT NULL;

-- What a run has cost is looked up by its id, whoever else has postings.
CREATE INDEX ledger_run ON ledger (run);
