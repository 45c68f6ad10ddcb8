"""`carnet chat`: conversations with agents, in a terminal."""
