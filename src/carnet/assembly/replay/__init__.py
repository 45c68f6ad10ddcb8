"""A recorded run, run again."""
