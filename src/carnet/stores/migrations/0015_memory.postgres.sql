-- `folded` is the path in small letters: two that differ in capitals alone are one. `origin` is the
-- version whose words a version has brought back.
ALTER TABLE memory ADD COLUMN folded TEXT NOT NULL DEFAULT '';

CREATE UNIQUE INDEX memory_folded ON memory (person, agent, folded);

ALTER TABLE memory_version ADD COLUMN origin BIGINT;

CREATE INDEX memory_version_conversation ON memory_version (conversation)
    WHERE conversation IS NOT NULL;
