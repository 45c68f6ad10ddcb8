"""Where in its chain a program stands while it answers, for the calls that it makes by itself."""
