"""What the system is about, as pure values: no I/O, no clock, no randomness, no logging."""
