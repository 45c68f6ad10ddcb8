"""What begins a conversation without its owner: schedules and hooks."""
