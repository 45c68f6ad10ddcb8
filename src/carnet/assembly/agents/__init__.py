"""From configuration to agents: their kinds, their functions, and agents of peers."""
