-- What the callee of a turn said above what it may charge: nobody owes it, and nobody asks for it twice.
ALTER TABLE turn ADD COLUMN disputed BIGINT;

-- What was paid or forgiven of what is unpaid in a purse: no posting is changed for it.
CREATE TABLE settlement (
    id TEXT PRIMARY KEY,
    at BIGINT NOT NULL,
    name TEXT NOT NULL,
    amount BIGINT NOT NULL,
    how TEXT NOT NULL,
    seal BYTEA NOT NULL
);
