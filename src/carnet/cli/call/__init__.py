"""`carnet call` and `carnet tasks`."""
