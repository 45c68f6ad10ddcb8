-- Whose an interrupt is to answer: the caller of a call that began here. None of those that go on to
-- whoever called.
ALTER TABLE interrupt ADD COLUMN owner TEXT;

CREATE INDEX interrupt_owner ON interrupt (owner, n);

-- Whose a rule is, until people own them; `agent` is who asks and through whom.
ALTER TABLE rule ADD COLUMN owner TEXT;

CREATE INDEX rule_owner ON rule (owner, n) WHERE ended IS NULL;
