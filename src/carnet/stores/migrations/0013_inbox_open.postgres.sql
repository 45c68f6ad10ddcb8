-- What somebody is asked and has not answered is found without what was answered before.
DROP INDEX interrupt_open;

CREATE INDEX interrupt_open ON interrupt (owner, n) WHERE status = 'open';

-- How many turns of a payer wait to be run at an agent: one that is answered waits behind them.
CREATE INDEX turn_queued_payer ON turn (agent, purse) WHERE state = 'queued';

-- A turn that runs on with an answer keeps its place among those that wait; those that run on now have
-- given theirs back.
UPDATE turn SET holds = NULL WHERE state = 'queued' AND holds IS NOT NULL;

UPDATE turn SET holds = NULL WHERE state = 'running' AND holds IS NOT NULL;
