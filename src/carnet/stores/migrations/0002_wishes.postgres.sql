-- What other gateways want of a running turn: to read it, so that it goes on when its own readers
-- have left, or to have it cancelled. A wish is for one attempt, and counts while the gateway that
-- has it lives. Few rows, and none for a turn that is read and ended where it runs.
CREATE TABLE wish (
    turn BIGINT NOT NULL,
    fence BIGINT NOT NULL,
    kind TEXT NOT NULL,
    worker TEXT NOT NULL,
    PRIMARY KEY (turn, fence, kind, worker)
);
