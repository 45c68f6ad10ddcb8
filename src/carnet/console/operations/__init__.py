"""Pages about the gateway itself: its agents, its money, its keys, its people, its settings."""
