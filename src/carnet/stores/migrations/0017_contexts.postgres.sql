-- Tasks that their senders group by a context, and list by when their state changed last.
ALTER TABLE task ADD COLUMN context TEXT;

ALTER TABLE task ADD COLUMN updated BIGINT;

CREATE INDEX task_updated ON task (sender, updated, turn) WHERE context IS NOT NULL;

-- By which whoever named an address finds it again.
ALTER TABLE callback ADD COLUMN name TEXT;
