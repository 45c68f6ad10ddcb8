"""Schedules, hooks and what they are to begin, as the store keeps them."""
