-- The attempt of a call that said last what it may spend: one that is made again may be given more.
ALTER TABLE budget ADD COLUMN attempt BIGINT NOT NULL DEFAULT 1;
