-- What calls, and all that is called for them, may spend; and what is held and spent of it. `parent` is
-- the budget that a share was taken from. Of one that a day renews `period` has its microseconds.
CREATE TABLE budget (
    name TEXT PRIMARY KEY,
    parent TEXT,
    run TEXT NOT NULL DEFAULT '',
    money BIGINT,
    currency TEXT,
    calls BIGINT,
    tokens BIGINT,
    until BIGINT,
    period BIGINT,
    since BIGINT NOT NULL DEFAULT 0,
    spent_money BIGINT NOT NULL DEFAULT 0,
    spent_calls BIGINT NOT NULL DEFAULT 0,
    spent_tokens BIGINT NOT NULL DEFAULT 0,
    held_money BIGINT NOT NULL DEFAULT 0,
    held_calls BIGINT NOT NULL DEFAULT 0,
    held_tokens BIGINT NOT NULL DEFAULT 0,
    closed BIGINT NOT NULL DEFAULT 0,
    asks BIGINT NOT NULL DEFAULT 0,
    written BIGINT NOT NULL DEFAULT 0
);

CREATE INDEX budget_run ON budget (run) WHERE run <> '';

CREATE INDEX budget_standing ON budget (name) WHERE run = '';

-- Who was told that most of it is used, and when: once for each.
CREATE TABLE budget_warning (
    name TEXT NOT NULL,
    since BIGINT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (name, since)
);

-- What a turn holds of budgets: JSON, [[names], [money, calls, tokens], the one that it has opened].
ALTER TABLE turn ADD COLUMN budget TEXT;

-- Which ones operators have set is a change that every gateway looks at; those of calls are none.
CREATE TRIGGER budget_set AFTER INSERT ON budget FOR EACH ROW
    WHEN (NEW.name NOT LIKE 'call:%') EXECUTE FUNCTION count_change();

CREATE TRIGGER budget_cleared AFTER DELETE ON budget FOR EACH ROW
    WHEN (OLD.name NOT LIKE 'call:%') EXECUTE FUNCTION count_change();
