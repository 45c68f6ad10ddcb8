-- Whose an interrupt is to answer: the caller of a call that began here. None of those that go on to
-- whoever called.
ALTER TABLE interrupt ADD COLUMN owner TEXT;

CREATE INDEX interrupt_owner ON interrupt (owner, n);
