-- People: whose a token is, and the account that it bills where that is not of its name. Tokens that
-- are there are services, with the account they have.
ALTER TABLE token ADD COLUMN payer TEXT;

UPDATE token SET service = CASE WHEN name LIKE '%#%' THEN substr(name, 1, instr(name, '#') - 1)
    ELSE name END
WHERE peer IS NULL AND person IS NULL;

CREATE UNIQUE INDEX person_number ON person (number) WHERE ended IS NULL;

CREATE INDEX delegation_parent ON delegation (parent);

-- What stood for all is written out as the names that there were: it does not grow with the program.
UPDATE token SET scopes = trim(replace(' ' || scopes || ' ', ' * ', ' call:* call:remote pay run:read run:cancel metrics admin:runs admin:reload '))
WHERE ' ' || scopes || ' ' LIKE '% * %';

UPDATE token SET scopes = trim(replace(' ' || scopes || ' ', ' run:* ', ' run:read run:cancel '))
WHERE ' ' || scopes || ' ' LIKE '% run:* %';

UPDATE token SET scopes = trim(replace(' ' || scopes || ' ', ' admin:* ', ' admin:runs admin:reload '))
WHERE ' ' || scopes || ' ' LIKE '% admin:* %';

-- Names that could be granted and that nothing asked for are taken back, before they mean something;
-- which ones, the token tells.
ALTER TABLE token ADD COLUMN taken_back TEXT;

UPDATE token SET taken_back = (
    SELECT group_concat(value, ' ') FROM (
        SELECT value FROM json_each('[' || replace(json_quote(scopes), ' ', '","') || ']')
        WHERE value <> '' AND NOT (value IN ('pay', 'run:read', 'run:cancel', 'metrics', 'admin:runs', 'admin:reload')
        OR (value LIKE 'call:_%')) ORDER BY value
    ));

UPDATE token SET scopes = COALESCE((
    SELECT group_concat(value, ' ') FROM (
        SELECT value FROM json_each('[' || replace(json_quote(scopes), ' ', '","') || ']')
        WHERE value IN ('pay', 'run:read', 'run:cancel', 'metrics', 'admin:runs', 'admin:reload')
        OR (value LIKE 'call:_%') ORDER BY value
    )), '');

-- Who pays is listed what it paid for: by its own rows, and through nobody else's.
ALTER TABLE turn_seen ADD COLUMN payer TEXT;

UPDATE turn_seen SET payer = (
    SELECT r.account || '@' || r.issuer FROM run r WHERE r.n = turn_seen.run);

CREATE INDEX turn_seen_payer ON turn_seen (payer, run);

CREATE INDEX ledger_payer ON ledger (account, issuer, n);
