-- Conversations as they are used: the tables of 0006, which nothing has filled, made anew.
DROP TABLE message_word;

DROP TABLE message;

DROP TABLE conversation;

-- `head` is the last message of the branch that is shown, `answering` the id of the answer that is
-- being given. Of one that was deleted its number, its id and its owner are left for a while.
CREATE TABLE conversation (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    agent TEXT NOT NULL,
    title TEXT,
    cause TEXT NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    head INTEGER,
    answering TEXT,
    unread INTEGER NOT NULL DEFAULT 0,
    archived INTEGER,
    deleted INTEGER,
    size INTEGER NOT NULL DEFAULT 0,
    tokens_in INTEGER NOT NULL DEFAULT 0,
    tokens_out INTEGER NOT NULL DEFAULT 0,
    cost INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX conversation_live ON conversation (owner, updated, n)
WHERE deleted IS NULL AND archived IS NULL;

CREATE INDEX conversation_archived ON conversation (owner, updated, n)
WHERE deleted IS NULL AND archived IS NOT NULL;

CREATE INDEX conversation_answering ON conversation (n) WHERE answering IS NOT NULL;

CREATE INDEX conversation_deleted ON conversation (deleted) WHERE deleted IS NOT NULL;

CREATE INDEX conversation_unwiped ON conversation (n) WHERE deleted IS NOT NULL AND size > 0;

-- `state` is unanswered, partial, whole or failed; deleted of one that is gone. `parts` are events, as
-- the journal writes them; `run` and `turn` name the turn that an answer is given in, and `waits` says
-- that it waits for somebody. `client_hash` names what a client has sent, to tell that it comes again.
CREATE TABLE message (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    conversation INTEGER NOT NULL,
    owner TEXT NOT NULL,
    parent INTEGER,
    role TEXT NOT NULL,
    author TEXT,
    parts BLOB NOT NULL,
    metadata BLOB,
    state TEXT NOT NULL,
    run TEXT,
    turn TEXT,
    waits INTEGER NOT NULL DEFAULT 0,
    code TEXT,
    client_id TEXT,
    client_hash BLOB,
    digest BLOB,
    tokens_in INTEGER,
    tokens_out INTEGER,
    cost INTEGER,
    created INTEGER NOT NULL,
    ended INTEGER
) STRICT;

CREATE UNIQUE INDEX message_client ON message (owner, client_hash) WHERE client_hash IS NOT NULL;

CREATE INDEX message_conversation ON message (conversation, parent, n);

CREATE INDEX message_waits ON message (n) WHERE waits = 1;

-- By which conversations are found: what was said (0), and their titles (1).
CREATE TABLE message_word (
    owner TEXT NOT NULL,
    word TEXT NOT NULL,
    conversation INTEGER NOT NULL,
    source INTEGER NOT NULL,
    PRIMARY KEY (owner, word, conversation, source)
) STRICT, WITHOUT ROWID;

CREATE INDEX message_word_conversation ON message_word (conversation);
