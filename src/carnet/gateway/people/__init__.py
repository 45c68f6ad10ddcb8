"""Pages about people: who is known here, and what somebody pays for."""
