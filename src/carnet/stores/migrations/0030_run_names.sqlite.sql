-- Names of runs that somebody else has chosen are random, and an index of them takes a page of its
-- own for each new run. So they come into it many at a time, and `named` is 0 until then: the process
-- that writes turns knows them by heart, and whoever else looks for one finds it in the view.
-- A constraint cannot be dropped, so the table is made anew.
CREATE TABLE run_new (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    issuer TEXT NOT NULL,
    account TEXT NOT NULL,
    calls INTEGER NOT NULL,
    cost INTEGER NOT NULL DEFAULT 0,
    started INTEGER NOT NULL,
    root_agent TEXT,
    person INTEGER,
    budget INTEGER,
    state TEXT,
    updated INTEGER,
    named INTEGER NOT NULL DEFAULT 1
) STRICT;

INSERT INTO run_new
SELECT n, id, issuer, account, calls, cost, started, root_agent, person, budget, state, updated, 1
FROM run ORDER BY n;

DROP TABLE run;

ALTER TABLE run_new RENAME TO run;

CREATE UNIQUE INDEX run_named ON run (id, issuer, account) WHERE named = 1;

CREATE INDEX run_unnamed ON run (n, id, issuer, account) WHERE named = 0;

CREATE VIEW run_by_name AS
SELECT n, id, issuer, account FROM run WHERE named = 1
UNION ALL
SELECT n, id, issuer, account FROM run INDEXED BY run_unnamed WHERE named = 0;
