-- The tables of everything that is to come, made at once and empty until used. Names of columns
-- that a database reserves are replaced: `callee` is to whom a call went, `cause` what triggered a
-- turn, `most` a limit.

-- What the row of a turn holds beside. `last_depth` and `bound_by`: the bound that held, and the
-- stamp that set it. `holds` is JSON, [[purse, money, calls, tokens], ...]: what a turn that waits
-- for an answer goes on to hold. `rank` is the order among those that wait to be run.
ALTER TABLE turn ADD COLUMN last_depth INTEGER;

ALTER TABLE turn ADD COLUMN bound_by TEXT;

ALTER TABLE turn ADD COLUMN dialect TEXT;

ALTER TABLE turn ADD COLUMN parent_n INTEGER;

ALTER TABLE turn ADD COLUMN ordinal INTEGER;

ALTER TABLE turn ADD COLUMN token TEXT;

ALTER TABLE turn ADD COLUMN person INTEGER;

ALTER TABLE turn ADD COLUMN delegation TEXT;

ALTER TABLE turn ADD COLUMN context TEXT;

ALTER TABLE turn ADD COLUMN correlation TEXT;

ALTER TABLE turn ADD COLUMN conversation INTEGER;

ALTER TABLE turn ADD COLUMN cause TEXT;

ALTER TABLE turn ADD COLUMN waits_until INTEGER;

ALTER TABLE turn ADD COLUMN holds TEXT;

ALTER TABLE turn ADD COLUMN facts TEXT;

ALTER TABLE turn ADD COLUMN wiped INTEGER;

ALTER TABLE turn ADD COLUMN rank INTEGER NOT NULL DEFAULT 0;

DROP INDEX turn_queued;

CREATE INDEX turn_queued ON turn (agent, rank, n) WHERE state = 'queued';

CREATE INDEX turn_waiting ON turn (waits_until) WHERE state = 'waiting';

ALTER TABLE run ADD COLUMN root_agent TEXT;

ALTER TABLE run ADD COLUMN person INTEGER;

ALTER TABLE run ADD COLUMN budget INTEGER;

ALTER TABLE run ADD COLUMN state TEXT;

ALTER TABLE run ADD COLUMN updated INTEGER;

-- By what runs are looked for. Filled behind the calls; the indexes are here and never on `turn`.
CREATE TABLE turn_seen (
    turn INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    agent TEXT NOT NULL,
    actor TEXT NOT NULL,
    speaker TEXT,
    state TEXT NOT NULL,
    code TEXT,
    correlation TEXT,
    created INTEGER NOT NULL
) STRICT;

INSERT INTO turn_seen (turn, run, agent, actor, speaker, state, code, created)
SELECT n, run, agent, actor, speaker, state, code, created FROM turn ORDER BY n;

CREATE INDEX turn_seen_run ON turn_seen (run);

CREATE INDEX turn_seen_agent ON turn_seen (agent, turn);

CREATE INDEX turn_seen_actor ON turn_seen (actor, turn);

CREATE INDEX turn_seen_state ON turn_seen (state, turn);

CREATE INDEX turn_seen_code ON turn_seen (code, turn) WHERE code IS NOT NULL;

CREATE INDEX turn_seen_correlation ON turn_seen (correlation, turn) WHERE correlation IS NOT NULL;

-- What is needed to run a turn that outlives its request (it is queued, or waits for an answer):
-- under the seal of the secrets file `key_id`, and removed when it ends.
CREATE TABLE kept_call (
    turn INTEGER PRIMARY KEY,
    sealed BLOB NOT NULL,
    key_id TEXT NOT NULL
) STRICT;

INSERT INTO kept_call (turn, sealed, key_id)
SELECT turn, sealed, key_id FROM task WHERE sealed IS NOT NULL;

-- Where the end of a task is told: several addresses, each in the words of its dialect.
CREATE TABLE callback (
    turn INTEGER NOT NULL,
    place INTEGER NOT NULL,
    url TEXT NOT NULL,
    dialect TEXT,
    auth_sealed BLOB,
    key_id TEXT,
    token TEXT,
    created INTEGER NOT NULL,
    PRIMARY KEY (turn, place)
) STRICT;

INSERT INTO callback (turn, place, url, created)
SELECT k.turn, 0, k.callback, t.created FROM task k JOIN turn t ON t.n = k.turn
WHERE k.callback IS NOT NULL;

ALTER TABLE task DROP COLUMN sealed;

ALTER TABLE task DROP COLUMN key_id;

ALTER TABLE task DROP COLUMN callback;

-- Addresses that said that they will never take letters again, to whom the letters belong. Of those
-- from before, nobody is known any more where no letter is left: they are gone for everybody.
ALTER TABLE gone RENAME TO gone_before;

CREATE TABLE gone (
    owner TEXT NOT NULL,
    url TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (owner, url)
) STRICT, WITHOUT ROWID;

INSERT INTO gone (owner, url, at)
SELECT DISTINCT o.secret_of, g.url, g.at FROM gone_before g JOIN outbox o ON o.url = g.url
WHERE o.state = 'dead';

INSERT INTO gone (owner, url, at)
SELECT '', g.url, g.at FROM gone_before g
WHERE NOT EXISTS (SELECT 1 FROM gone x WHERE x.url = g.url);

DROP TABLE gone_before;

-- Calls to other organisations, written with the end of their turn, by the fence under which it ran.
-- Turns from before have theirs among their events. `matched` is whose ledger has it: ours, theirs or both.
CREATE TABLE outbound (
    turn INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    child_turn TEXT NOT NULL,
    callee TEXT NOT NULL,
    dialect TEXT NOT NULL,
    depth INTEGER NOT NULL,
    state TEXT NOT NULL,
    cost INTEGER,
    currency TEXT,
    code TEXT,
    peer_status INTEGER,
    peer_code TEXT,
    receipt TEXT,
    matched TEXT,
    PRIMARY KEY (turn, fence, ordinal)
) STRICT;

-- What a turn waits for. `state_hash` is compared, once; `state_sealed` is what is told again to who
-- repeats the call. `data` is JSON: members that we do not know are kept.
CREATE TABLE interrupt (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    turn INTEGER NOT NULL,
    place INTEGER NOT NULL,
    kind TEXT NOT NULL,
    origin TEXT,
    message TEXT NOT NULL,
    data TEXT,
    amount INTEGER,
    currency TEXT,
    url TEXT,
    schema TEXT,
    retry_after INTEGER,
    state_hash BLOB NOT NULL,
    state_sealed BLOB NOT NULL,
    key_id TEXT NOT NULL,
    person INTEGER,
    issuer TEXT,
    account TEXT,
    status TEXT NOT NULL,
    created INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    resolved INTEGER,
    resolver TEXT,
    outcome TEXT,
    value_sealed BLOB,
    rule INTEGER,
    UNIQUE (turn, id)
) STRICT;

CREATE INDEX interrupt_id ON interrupt (id);

CREATE INDEX interrupt_open ON interrupt (person, n) WHERE status = 'open';

-- Answers that a person has given for the future.
CREATE TABLE rule (
    n INTEGER PRIMARY KEY,
    person INTEGER NOT NULL,
    agent TEXT,
    kind TEXT NOT NULL,
    tool TEXT,
    ceiling INTEGER,
    used INTEGER NOT NULL DEFAULT 0,
    created INTEGER NOT NULL,
    ended INTEGER
) STRICT;

CREATE TABLE person (
    n INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    display TEXT,
    number INTEGER,
    roles TEXT NOT NULL,
    permissions TEXT NOT NULL,
    issuer TEXT,
    account TEXT,
    state TEXT NOT NULL,
    created INTEGER NOT NULL,
    ended INTEGER
) STRICT;

CREATE UNIQUE INDEX person_live ON person (name) WHERE ended IS NULL;

CREATE TABLE address (
    address TEXT PRIMARY KEY,
    person INTEGER NOT NULL,
    how TEXT NOT NULL,
    verified INTEGER,
    added INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE session (
    n INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    key_id TEXT NOT NULL,
    person INTEGER NOT NULL,
    created INTEGER NOT NULL,
    until INTEGER NOT NULL,
    ended INTEGER
) STRICT;

CREATE TABLE delegation (
    n INTEGER PRIMARY KEY,
    jti TEXT NOT NULL UNIQUE,
    parent INTEGER,
    person INTEGER,
    token INTEGER,
    audience TEXT NOT NULL,
    scopes TEXT NOT NULL,
    budget INTEGER,
    until INTEGER NOT NULL,
    ended INTEGER
) STRICT;

-- Whose a token or a key is: a person's, or a service's.
ALTER TABLE token ADD COLUMN person INTEGER;

ALTER TABLE token ADD COLUMN service TEXT;

ALTER TABLE pinned_key ADD COLUMN person INTEGER;

ALTER TABLE pinned_key ADD COLUMN service TEXT;

-- A purse is what a quota counts in. `most` is its limit, `period` the seconds it is counted over.
ALTER TABLE purse ADD COLUMN unpaid INTEGER NOT NULL DEFAULT 0;

ALTER TABLE purse ADD COLUMN calls INTEGER NOT NULL DEFAULT 0;

ALTER TABLE purse ADD COLUMN tokens INTEGER NOT NULL DEFAULT 0;

ALTER TABLE purse ADD COLUMN seconds INTEGER NOT NULL DEFAULT 0;

ALTER TABLE purse ADD COLUMN most INTEGER;

ALTER TABLE purse ADD COLUMN period INTEGER;

ALTER TABLE purse ADD COLUMN since INTEGER;

ALTER TABLE purse ADD COLUMN paused INTEGER;

-- price, peer, payment, unpaid, disputed or give_back; none where a posting is from before.
ALTER TABLE ledger ADD COLUMN kind TEXT;

ALTER TABLE ledger ADD COLUMN interrupt INTEGER;

CREATE TABLE voucher (
    issuer TEXT NOT NULL,
    id TEXT NOT NULL,
    amount INTEGER NOT NULL,
    turn INTEGER,
    used INTEGER,
    PRIMARY KEY (issuer, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE statement (
    peer TEXT NOT NULL,
    period TEXT NOT NULL,
    ours INTEGER NOT NULL,
    theirs INTEGER,
    jws TEXT,
    compared INTEGER,
    PRIMARY KEY (peer, period)
) STRICT, WITHOUT ROWID;

CREATE TABLE dialogue (
    run TEXT PRIMARY KEY,
    seed TEXT NOT NULL,
    participants TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    limits TEXT NOT NULL,
    state TEXT NOT NULL,
    halt TEXT,
    worker TEXT,
    fence INTEGER NOT NULL,
    person INTEGER,
    started INTEGER NOT NULL,
    ended INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE dialogue_turn (
    run TEXT NOT NULL,
    i INTEGER NOT NULL,
    speaker TEXT NOT NULL,
    turn INTEGER,
    attempts INTEGER NOT NULL,
    cost INTEGER,
    PRIMARY KEY (run, i)
) STRICT, WITHOUT ROWID;

CREATE TABLE conversation (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    person INTEGER NOT NULL,
    agent TEXT NOT NULL,
    title TEXT,
    cause TEXT,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    head INTEGER,
    unread INTEGER NOT NULL DEFAULT 0,
    archived INTEGER,
    deleted INTEGER,
    tokens INTEGER NOT NULL DEFAULT 0,
    cost INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX conversation_person ON conversation (person, updated);

-- `state` is unanswered, partial, whole or failed. `client_id` is the client's own: the same again
-- is the same message.
CREATE TABLE message (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    conversation INTEGER NOT NULL,
    parent INTEGER,
    role TEXT NOT NULL,
    author TEXT,
    parts BLOB NOT NULL,
    state TEXT NOT NULL,
    turn INTEGER,
    client_id TEXT,
    created INTEGER NOT NULL,
    UNIQUE (conversation, client_id)
) STRICT;

CREATE TABLE message_word (
    word TEXT NOT NULL,
    message INTEGER NOT NULL,
    PRIMARY KEY (word, message)
) STRICT, WITHOUT ROWID;

CREATE TABLE memory (
    n INTEGER PRIMARY KEY,
    person INTEGER NOT NULL,
    agent TEXT NOT NULL,
    path TEXT NOT NULL,
    UNIQUE (person, agent, path)
) STRICT;

CREATE TABLE memory_version (
    memory INTEGER NOT NULL,
    version INTEGER NOT NULL,
    data BLOB,
    size INTEGER NOT NULL,
    conversation INTEGER,
    turn INTEGER,
    at INTEGER NOT NULL,
    erased INTEGER,
    PRIMARY KEY (memory, version)
) STRICT;

CREATE TABLE schedule (
    n INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    person INTEGER NOT NULL,
    agent TEXT NOT NULL,
    cron TEXT NOT NULL,
    zone TEXT NOT NULL,
    missed TEXT NOT NULL,
    template TEXT NOT NULL,
    next INTEGER,
    paused INTEGER,
    worker TEXT,
    fence INTEGER NOT NULL DEFAULT 1
) STRICT;

CREATE INDEX schedule_next ON schedule (next) WHERE paused IS NULL;

CREATE TABLE firing (
    schedule INTEGER NOT NULL,
    tick INTEGER NOT NULL,
    conversation INTEGER,
    state TEXT NOT NULL,
    PRIMARY KEY (schedule, tick)
) STRICT, WITHOUT ROWID;

CREATE TABLE hook (
    n INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    person INTEGER NOT NULL,
    agent TEXT NOT NULL,
    scheme TEXT NOT NULL,
    sealed BLOB NOT NULL,
    previous_sealed BLOB,
    key_id TEXT NOT NULL,
    template TEXT NOT NULL,
    paused INTEGER
) STRICT;

CREATE TABLE hook_seen (
    hook INTEGER NOT NULL,
    event TEXT NOT NULL,
    expires INTEGER NOT NULL,
    PRIMARY KEY (hook, event)
) STRICT, WITHOUT ROWID;

CREATE TABLE caller (
    url TEXT PRIMARY KEY,
    hash BLOB,
    certificate TEXT,
    added INTEGER NOT NULL,
    ended INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE stranger (
    domain TEXT PRIMARY KEY,
    key BLOB NOT NULL,
    first_seen INTEGER NOT NULL,
    confirmed_by INTEGER
) STRICT, WITHOUT ROWID;

-- The form of sealed calls and of events that is written; the one before it is read as well.
INSERT INTO meta (name, value) VALUES ('form_of_calls', '2'), ('form_of_events', '2');
