-- The turn that a notice tells of, by which it is deleted with the conversation; of those that are there
-- it is that of the question that they tell of.
ALTER TABLE outbox ADD COLUMN turn BIGINT;

UPDATE outbox SET turn = (SELECT MAX(i.turn) FROM interrupt i WHERE i.id =
    convert_from(outbox.body, 'UTF8')::json #>> '{data,id}')
    WHERE kind = 'notice';

CREATE INDEX outbox_turn ON outbox (turn) WHERE turn IS NOT NULL;

CREATE INDEX outbox_task ON outbox (task) WHERE task IS NOT NULL;
