-- People: whose a token is, and the account that it bills where that is not of its name. Tokens that
-- are there are services, with the account they have.
ALTER TABLE token ADD COLUMN payer TEXT;

UPDATE token SET service = CASE WHEN name LIKE '%#%' THEN substr(name, 1, strpos(name, '#') - 1)
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
    SELECT string_agg(word, ' ' ORDER BY word) FROM unnest(string_to_array(scopes, ' ')) AS word
    WHERE word <> '' AND NOT (word IN ('pay', 'run:read', 'run:cancel', 'metrics', 'admin:runs', 'admin:reload')
        OR (word LIKE 'call:_%')));

UPDATE token SET scopes = COALESCE((
    SELECT string_agg(word, ' ' ORDER BY word) FROM unnest(string_to_array(scopes, ' ')) AS word
    WHERE word IN ('pay', 'run:read', 'run:cancel', 'metrics', 'admin:runs', 'admin:reload')
        OR (word LIKE 'call:_%')), '');

-- Whose a token is counts as a change of it; so does what becomes of people.
DROP TRIGGER token_changed ON token;

CREATE TRIGGER token_changed AFTER INSERT OR DELETE OR TRUNCATE OR UPDATE OF name, hash, scopes,
    peer, forwardable, may_forward, rate_calls, rate_seconds, spending_limit, expires, revoked,
    person, payer
    ON token FOR EACH STATEMENT EXECUTE FUNCTION count_change();

CREATE TRIGGER person_changed AFTER INSERT OR DELETE OR TRUNCATE OR UPDATE
    ON person FOR EACH STATEMENT EXECUTE FUNCTION count_change();

CREATE TRIGGER address_changed AFTER INSERT OR DELETE OR TRUNCATE OR UPDATE
    ON address FOR EACH STATEMENT EXECUTE FUNCTION count_change();

CREATE TRIGGER delegation_changed AFTER INSERT OR DELETE OR TRUNCATE OR UPDATE
    ON delegation FOR EACH STATEMENT EXECUTE FUNCTION count_change();

-- Who pays is listed what it paid for: by its own rows, and through nobody else's.
ALTER TABLE turn_seen ADD COLUMN payer TEXT;

UPDATE turn_seen SET payer = (
    SELECT r.account || '@' || r.issuer FROM run r WHERE r.n = turn_seen.run);

CREATE INDEX turn_seen_payer ON turn_seen (payer, run);

CREATE INDEX ledger_payer ON ledger (account, issuer, n);
