"""Pages of one's own: what one says to agents, what they ask, what they keep."""
