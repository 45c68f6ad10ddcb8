"""`carnet tokens`, `agents`, `peers` and `keys`."""
