-- What was signed of a call out, without credentials: for the page that shows what was sent.
ALTER TABLE outbound ADD COLUMN sent TEXT;
