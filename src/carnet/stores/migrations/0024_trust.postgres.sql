-- By what a peer knows us, also of one that no file lists.
ALTER TABLE peer ADD COLUMN auth TEXT NOT NULL DEFAULT 'auto';

-- Whose calls met a stranger first: of each caller so many are remembered, whatever others do.
ALTER TABLE stranger ADD COLUMN met_by TEXT NOT NULL DEFAULT '';

CREATE INDEX stranger_met_by ON stranger (met_by);
