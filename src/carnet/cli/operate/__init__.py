"""`carnet config`, `migrate`, `backup`, `prune`, `version` and `completion`."""
