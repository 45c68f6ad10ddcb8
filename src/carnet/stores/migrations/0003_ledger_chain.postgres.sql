-- The chain of the ledger: each posting carries a hash over the one before it in its lane and over
-- all of itself. A lane is one writer process. Postings from before the chain have none of these.
ALTER TABLE ledger ADD COLUMN lane TEXT, ADD COLUMN seq BIGINT, ADD COLUMN hash BYTEA;

-- Where each lane ends: written with its postings, in the same transaction, by its process alone.
CREATE TABLE lane (
    id TEXT COLLATE "C" PRIMARY KEY,
    postings BIGINT NOT NULL,
    head BYTEA NOT NULL,
    seal BYTEA NOT NULL
) WITH (fillfactor = 50);

-- Each minute the ends of all lanes that grew, in one row that is chained to the row before it.
-- `lanes` is JSON: [[lane, postings, head in hexadecimal], ...]. The number is given by hand: two
-- gateways that write a checkpoint at once want the same one, and one of them writes it.
CREATE TABLE checkpoint (
    n BIGINT PRIMARY KEY,
    at BIGINT NOT NULL,
    lanes TEXT NOT NULL,
    seal BYTEA NOT NULL
);

-- How far each lane stands in checkpoints, so that the next one need not read them. It is not a
-- column of `lane`: no batch of turns shall wait for a checkpoint.
CREATE TABLE sealed (
    lane TEXT COLLATE "C" PRIMARY KEY,
    postings BIGINT NOT NULL
);

CREATE FUNCTION refuse_checkpoint_change() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'checkpoints are append-only';
END
$$;

CREATE TRIGGER checkpoint_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON checkpoint
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_checkpoint_change();
