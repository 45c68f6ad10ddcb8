"""Commands for hooks and schedules."""
