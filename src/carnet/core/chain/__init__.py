"""Where a call stands in its chain: its Carnet, its turn, and what is left of its budget."""
