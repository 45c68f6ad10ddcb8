-- What the callee of a turn said above what it may charge: nobody owes it, and nobody asks for it twice.
ALTER TABLE turn ADD COLUMN disputed INTEGER;

-- What was paid or forgiven of what is unpaid in a purse: no posting is changed for it.
CREATE TABLE settlement (
    id TEXT PRIMARY KEY,
    at INTEGER NOT NULL,
    name TEXT NOT NULL,
    amount INTEGER NOT NULL,
    how TEXT NOT NULL,
    seal BLOB NOT NULL
) STRICT, WITHOUT ROWID;
