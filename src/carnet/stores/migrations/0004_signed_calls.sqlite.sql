-- The nonces of signed requests. A row is written with the turn that it claims, and refuses the same
-- nonce of the same sender until it expires. The numbers are in the order of arrival, so that what
-- has expired is deleted as a range.
CREATE TABLE nonce (
    n INTEGER PRIMARY KEY,
    sender TEXT NOT NULL,
    nonce TEXT NOT NULL,
    expires INTEGER NOT NULL,
    UNIQUE (sender, nonce)
) STRICT;

-- The keys we sign with. `sealed` is the private one, under the seal of the secrets file `key_id`.
-- One is active: the last, which signs from `signs_from` on, when others have had time to learn it.
-- The one before it signs until then, its `signs_until`, and is honoured until `not_after`.
CREATE TABLE own_key (
    n INTEGER PRIMARY KEY,
    kid TEXT NOT NULL UNIQUE,
    public BLOB NOT NULL,
    sealed BLOB NOT NULL,
    key_id TEXT NOT NULL,
    active INTEGER NOT NULL,
    created INTEGER NOT NULL,
    signs_from INTEGER NOT NULL,
    signs_until INTEGER,
    not_after INTEGER,
    revoked INTEGER
) STRICT;

CREATE UNIQUE INDEX own_key_active ON own_key (active) WHERE active = 1;

-- Keys of others that the operator wrote down. An empty `kid` matches any keyid of the sender.
CREATE TABLE pinned_key (
    sender TEXT NOT NULL,
    kid TEXT NOT NULL,
    public BLOB NOT NULL,
    added INTEGER NOT NULL,
    revoked INTEGER,
    PRIMARY KEY (sender, kid)
) STRICT, WITHOUT ROWID;

-- The receipt of each attempt that was answered to another organisation.
CREATE TABLE receipt (
    turn INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    jws TEXT NOT NULL,
    PRIMARY KEY (turn, attempt)
) STRICT, WITHOUT ROWID;
