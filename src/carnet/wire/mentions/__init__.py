"""Finding an agent by its address `@name@domain`: WebFinger, Mentionable cards, a directory."""
