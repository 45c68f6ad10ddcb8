-- What a task waits for is found by the state that an answer names, among what is open.
CREATE INDEX interrupt_state ON interrupt (state_hash) WHERE status = 'open';
