-- Tasks whose agent is elsewhere are begun by who pays for them, whatever names others have asked for.
CREATE INDEX turn_elsewhere ON turn (purse, n)
WHERE state = 'queued' AND (substr(agent, 1, 1) = '@' OR substr(agent, 1, 8) = 'agent://');
