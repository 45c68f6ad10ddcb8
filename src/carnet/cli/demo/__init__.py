"""`carnet demo`: three organisations on this machine, and a run that waits for a person."""
