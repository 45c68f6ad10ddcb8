"""The ports of work over a database: turns, tasks, steps, records."""
