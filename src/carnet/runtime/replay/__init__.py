"""A run that is over, told again: exported, or run once more against its own record."""
