-- Tasks are listed for whoever asked for them: one step in an index after another, and never through
-- the tasks of everybody.
CREATE INDEX task_sender ON task (sender, turn);
