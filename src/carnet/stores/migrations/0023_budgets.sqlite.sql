-- What calls, and all that is called for them, may spend; and what is held and spent of it. `parent` is
-- the budget that a share was taken from. Of one that a day renews `period` has its microseconds.
CREATE TABLE budget (
    name TEXT PRIMARY KEY,
    parent TEXT,
    run TEXT NOT NULL DEFAULT '',
    money INTEGER,
    currency TEXT,
    calls INTEGER,
    tokens INTEGER,
    until INTEGER,
    period INTEGER,
    since INTEGER NOT NULL DEFAULT 0,
    spent_money INTEGER NOT NULL DEFAULT 0,
    spent_calls INTEGER NOT NULL DEFAULT 0,
    spent_tokens INTEGER NOT NULL DEFAULT 0,
    held_money INTEGER NOT NULL DEFAULT 0,
    held_calls INTEGER NOT NULL DEFAULT 0,
    held_tokens INTEGER NOT NULL DEFAULT 0,
    closed INTEGER NOT NULL DEFAULT 0,
    asks INTEGER NOT NULL DEFAULT 0,
    written INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE INDEX budget_run ON budget (run) WHERE run <> '';

CREATE INDEX budget_standing ON budget (name) WHERE run = '';

-- Who was told that most of it is used, and when: once for each.
CREATE TABLE budget_warning (
    name TEXT NOT NULL,
    since INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (name, since)
) STRICT, WITHOUT ROWID;

-- What a turn holds of budgets: JSON, [[names], [money, calls, tokens], the one that it has opened].
ALTER TABLE turn ADD COLUMN budget TEXT;
