"""Log lines for people."""
